package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"prp/controller"
	"prp/protocol"
)

// oddTexts are texts that two languages could treat in two ways.
var oddTexts = []string{
	"", "x", "a b", "<b>&amp;</b>", `"quoted" \ back`, "two\nlines", " \t space \u00a0\u2003", "\u2028\u2029\u0085", "\u0000\u001b[31m\u007f",
	"é ü 日本語", "👩‍👩‍👧 😀", "\u202eright to left\u202c", "\ufeffmark", "\ufffd", strings.Repeat("ab\n", 90), strings.Repeat("長", 161),
	strings.Repeat("x", 158) + "\n\n\ny", strings.Repeat("y", 160), strings.Repeat("y", 161), "e\u0301", "\U000e0001tag", "\ue000private", "null", "{}",
}

// oddValues are members that are not what an event type asks for.
var oddValues = []string{
	"null", "true", "0", "-1", "1.5", "9007199254740993", "1e2", "[]", "{}", `[1, 2 , {"a" : null}]`, `{"b":1,"a":{"c":[ ]}}`,
	`{"decision":"allow"}`, `{"text":""}`, `{"text":"said"}`, `{"key":9007199254740993}`, `"a\u0062\/c"`,
}

// oddNames are the members that the fold looks at.
var oddNames = []string{
	"phase", "text", "delta", "content", "output", "kind", "type", "itemType", "itemKind", "title", "command", "path", "name", "summary",
	"requestId", "response", "reason", "message", "error", "code", "detail", "workingDirectory", "driverKind", "driverVersion", "transport",
	"result", "request", "harnessTerminalProposal",
}

// oddEvents makes a stream of events in and out of order, with payloads right
// and wrong. The types that the runner alone makes have payloads of its making
// in the recorded runs.
func oddEvents(random *rand.Rand) [][]byte {
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	value := func() string {
		if random.IntN(3) == 0 {
			return pick(oddValues)
		}
		return string(protocol.AppendString(nil, pick(oddTexts)))
	}
	var types []protocol.EventType
	for _, t := range append(protocol.EventTypes(), "mcp_app.x", "attention.y") {
		switch t {
		case protocol.EventHarnessExited, protocol.EventRunTerminal:
		default:
			types = append(types, t, protocol.EventItemDelta)
		}
	}
	var lines [][]byte
	seq := int64(0)
	for range 60 {
		seq += []int64{1, 1, 1, 1, 1, 1, 1, 2, 0, -1}[random.IntN(10)]
		seq = max(seq, 1)
		e := protocol.Event{
			SourceSeq: seq, SourceInstanceID: "runner_1", RunID: "run_1", NormalizedSessionID: "session_1",
			EventType: types[random.IntN(len(types))], EmittedAt: "2026-01-01T00:00:00.000Z",
		}
		if random.IntN(40) == 0 {
			e.RunID = "run_2"
		}
		e.SourceEventID = protocol.EventID(e.RunID, seq)
		e.Priority = e.EventType.Priority()
		if random.IntN(5) > 0 || e.EventType == protocol.EventTurnSubmitted {
			e.TurnID = pick([]string{"turn_1", "turn_2", "<t>"})
		}
		if random.IntN(5) > 0 {
			e.ItemID = pick([]string{"item_1", "item_2", "é"})
		}
		e.Payload = oddPayload(random, e.EventType, pick, value)
		lines = append(lines, bytes.TrimSpace(protocol.AppendEvent(nil, &e)))
	}
	return lines
}

func oddPayload(random *rand.Rand, t protocol.EventType, pick func([]string) string, value func() string) json.RawMessage {
	var members []string
	for _, i := range random.Perm(len(oddNames))[:random.IntN(7)] {
		members = append(members, fmt.Sprintf("%q: %s", oddNames[i], value()))
	}
	switch {
	case t == protocol.EventRequestCreated && random.IntN(4) > 0:
		members = append(members, fmt.Sprintf(`"request": {"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":%q,"type":%q,"status":"pending","prompt":%s,"Prompt":"decoy","REQUESTID":"decoy"}`,
			pick([]string{"r1", "r2"}), pick([]string{"input", "permission"}), protocol.AppendString(nil, pick(oddTexts))))
	case t.EndsRequest() && random.IntN(4) > 0:
		members = append(members, fmt.Sprintf(`"requestId":%q`, pick([]string{"r1", "r2"})))
	}
	seen := map[string]bool{}
	var kept []string
	for i := len(members) - 1; i >= 0; i-- { // no name twice: a runner refuses it
		name, _, _ := strings.Cut(members[i], ":")
		if !seen[name] {
			seen[name] = true
			kept = append(kept, members[i])
		}
	}
	return json.RawMessage("{" + strings.Join(kept, " ,") + "}")
}

// TestFoldsAgree: the page's fold and the controller's give the same JSON, byte
// for byte, for streams of any content.
func TestFoldsAgree(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs node, which is not here")
	}
	if _, err := os.ReadFile("nodetest/agree.js"); err != nil { // a change of it is a new test
		t.Fatal(err)
	}
	var in bytes.Buffer
	for seed := range uint64(300) {
		lines := oddEvents(rand.New(rand.NewPCG(seed, 7)))
		r, _, err := controller.Replay(bytes.NewReader(bytes.Join(lines, []byte("\n"))))
		if err != nil {
			t.Fatal(err)
		}
		if r.Events < 40 {
			t.Fatalf("seed %d: only %d lines can be read as events", seed, r.Events)
		}
		snapshot, err := json.Marshal(&r.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		texts := make([]string, 0, len(lines))
		for _, l := range lines {
			texts = append(texts, string(l))
		}
		one, err := json.Marshal(map[string]any{"lines": texts, "snapshot": string(snapshot)})
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(one, '\n'))
	}
	node := exec.Command("node", "nodetest/agree.js")
	node.Stdin, node.Stderr = &in, os.Stderr
	out, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) > 0 {
		differences := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Errorf("%d snapshots differ, the first ones:\n%s", len(differences), strings.Join(differences[:min(4, len(differences))], "\n"))
	}
}
