package connector

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"prp/controller/bridge"
	"prp/protocol"
)

// said is an event of a run.
func said(seq int64, kind protocol.EventType, item, payload string) *protocol.Event {
	return &protocol.Event{
		EventType: kind, SourceSeq: seq, ItemID: item, EmittedAt: "2026-01-01T00:00:00.001Z", Payload: json.RawMessage(payload),
	}
}

// TestEventKinds: which of the seven kinds each event of a run is (row 10).
func TestEventKinds(t *testing.T) {
	started := func(kind string) *protocol.Event {
		return said(1, protocol.EventItemStarted, "i", fmt.Sprintf(`{"kind":%q}`, kind))
	}
	for _, c := range []struct {
		name   string
		before *protocol.Event
		event  *protocol.Event
		want   eventKind
	}{
		{"a command starts", nil, said(1, protocol.EventItemStarted, "i", `{"kind":"command","command":"ls"}`), kindToolCall},
		{"a tool starts", nil, said(1, protocol.EventItemStarted, "i", `{"kind":"tool","toolKind":"fetch"}`), kindToolCall},
		{"a file change starts", nil, said(1, protocol.EventItemStarted, "i", `{"kind":"file_change"}`), kindToolCall},
		{"a message starts", nil, said(1, protocol.EventItemStarted, "i", `{"kind":"assistant_message"}`), kindProgress},
		{"a command completes", started("command"), said(2, protocol.EventItemCompleted, "i", `{"kind":"command","exitCode":0}`), kindToolResult},
		{"a tool completes", started("tool"), said(2, protocol.EventItemCompleted, "i", `{}`), kindToolResult},
		{"a message completes", started("assistant_message"), said(2, protocol.EventItemCompleted, "i", `{}`), kindProgress},
		{"a command fails", started("command"), said(2, protocol.EventItemFailed, "i", `{}`), kindError},
		{"a message fails", started("assistant_message"), said(2, protocol.EventItemFailed, "i", `{}`), kindError},
		{"a piece of reasoning", started("reasoning"), said(2, protocol.EventItemDelta, "i", `{"kind":"reasoning","delta":"hm"}`), kindThinking},
		{"reasoning that names no kind", started("reasoning"), said(2, protocol.EventItemDelta, "i", `{"delta":"hm"}`), kindThinking},
		{"a piece of a message", started("assistant_message"), said(2, protocol.EventItemDelta, "i", `{"kind":"assistant_message","delta":"hi"}`), kindProgress},
		{"a piece of output", started("command"), said(2, protocol.EventItemDelta, "i", `{"kind":"command","delta":"x"}`), kindProgress},
		{"a diagnostic of the harness", nil, said(1, protocol.EventHarnessDiag, "", `{"code":"x"}`), kindWarning},
		{"a diagnostic of the runner", nil, said(1, protocol.EventRunnerDiag, "", `{"code":"x"}`), kindWarning},
		{"a fault of the protocol", nil, said(1, protocol.EventHarnessDiag, "", `{"code":"harness_invalid_json"}`), kindError},
		{"the turn failed", nil, said(1, protocol.EventTurnFailed, "", `{}`), kindError},
		{"the session failed", nil, said(1, protocol.EventSessionFailed, "", `{}`), kindError},
		{"the turn completed", nil, said(1, protocol.EventTurnCompleted, "", `{}`), kindProgress},
		{"a phase", nil, said(1, protocol.EventPhaseChanged, "", `{"phase":"executing"}`), kindProgress},
		{"usage", nil, said(1, protocol.EventUsageReported, "", `{"used":3}`), kindProgress},
		{"a question", nil, said(1, protocol.EventRequestCreated, "", `{"request":{}}`), kindProgress},
		{"the result", nil, said(1, protocol.EventResultProposed, "", `{"result":{}}`), kindProgress},
		{"the end", nil, said(1, protocol.EventRunTerminal, "", `{"runTerminalState":"succeeded"}`), kindCompletion},
	} {
		tr := newTranslation(bridge.NewMasker(nil))
		if c.before != nil {
			tr.apply(c.before)
		}
		got := tr.apply(c.event)
		if len(got) != 1 || got[0].kind != c.want {
			t.Errorf("%s: %+v, want one %s", c.name, got, c.want)
			continue
		}
		if soft := c.event.EventType == protocol.EventItemDelta; got[0].soft != soft {
			t.Errorf("%s: soft is %v, want %v", c.name, got[0].soft, soft)
		}
		if string(got[0].payload["source_seq"]) != fmt.Sprint(c.event.SourceSeq) {
			t.Errorf("%s: the payload does not tell its source: %s", c.name, marshal(got[0].payload))
		}
	}
}

// TestEveryEventType: each event of the protocol is exactly one of the seven, so
// none is lost on the way (row 10).
func TestEveryEventType(t *testing.T) {
	seven := []eventKind{kindThinking, kindToolCall, kindToolResult, kindProgress, kindWarning, kindError, kindCompletion}
	for _, kind := range protocol.EventTypes() {
		got := newTranslation(bridge.NewMasker(nil)).apply(said(1, kind, "", `{}`))
		if len(got) != 1 || !slices.Contains(seven, got[0].kind) {
			t.Errorf("%s became %+v", kind, got)
		}
		if (got[0].kind == kindCompletion) != (kind == protocol.EventRunTerminal) {
			t.Errorf("%s became %s", kind, got[0].kind)
		}
	}
}

// frames translates the events of a recorded run.
func frames(t *testing.T, file string, tr *translation) []runEvent {
	t.Helper()
	raw, err := os.ReadFile("../../fixtures/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out []runEvent
	decoder := protocol.NewDecoder()
	for line := range strings.Lines(string(raw)) {
		m, err := decoder.Stream([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if m.Event == nil {
			continue
		}
		for _, ev := range tr.apply(m.Event) {
			var f runEvent
			if err := json.Unmarshal(ev.frame("run_1", int64(len(out)+1)), &f); err != nil {
				t.Fatal(err)
			}
			out = append(out, f)
		}
	}
	return out
}

// TestHappyRun: a whole run as the server sees it: the seed's members, seq from
// 1 without a gap, one completion, last (rows 9 and 10).
func TestHappyRun(t *testing.T) {
	list := frames(t, "happy.jsonl", newTranslation(bridge.NewMasker(nil)))
	var kinds []string
	for i, f := range list {
		kinds = append(kinds, string(f.Event))
		if f.Type != "run_event" || f.RunID != "run_1" || f.Seq != int64(i+1) || f.EventID != fmt.Sprintf("run_1_%d", i+1) {
			t.Errorf("frame %d is %+v", i+1, f)
		}
	}
	want := strings.Fields("progress progress progress progress progress progress progress progress progress " +
		"tool_call progress tool_result tool_call tool_result progress progress progress progress completion")
	if !slices.Equal(kinds, want) {
		t.Errorf("the kinds are %q, want %q", kinds, want)
	}
	call, result, end := list[9].Payload, list[11].Payload, list[18].Payload
	if unquoted(call["tool"]) != "terminal" || unquoted(call["command"]) != "go test ./greeting" {
		t.Errorf("the tool call is %s", marshal(call))
	}
	if !strings.Contains(unquoted(result["output"]), "--- FAIL") || string(result["exitCode"]) != "1" || unquoted(result["command"]) == "" {
		t.Errorf("the tool result is %s", marshal(result))
	}
	if unquoted(end["status"]) != "succeeded" || string(end["exit_code"]) != "0" || !strings.HasPrefix(unquoted(end["summary"]), "The greeting") || end["error"] != nil {
		t.Errorf("the completion is %s", marshal(end))
	}
}

// TestFailedRun: the completion of a failed run has its exit code and an error.
func TestFailedRun(t *testing.T) {
	list := frames(t, "failed.jsonl", newTranslation(bridge.NewMasker(nil)))
	var c completion
	if err := json.Unmarshal(marshal(list[len(list)-1].Payload), &c); err != nil {
		t.Fatal(err)
	}
	if c.Status != StatusFailed || c.ExitCode == nil || *c.ExitCode != 7 || c.Error == nil || c.Error.Code != CodeAdapter || c.Error.Reason != "harness_process_failed" {
		t.Errorf("the completion is %s", marshal(c))
	}
	if n := slices.IndexFunc(list, func(f runEvent) bool { return f.Event == kindError }); n < 0 {
		t.Error("the failed item is no error event")
	}
}

// TestCauses: an end of ours replaces the runner's word for it, but never a
// success (row 8).
func TestCauses(t *testing.T) {
	tokens := &cause{status: StatusFailed, code: CodeQuota, reason: reasonTokens, message: "too many"}
	for _, c := range []struct {
		state, want string
	}{{"cancelled", "failed"}, {"failed", "failed"}, {"succeeded", "succeeded"}} {
		tr := newTranslation(bridge.NewMasker(nil))
		tr.cause = tokens
		p := tr.apply(said(1, protocol.EventRunTerminal, "", fmt.Sprintf(`{"runTerminalState":%q}`, c.state)))[0].payload
		if unquoted(p["status"]) != c.want || (p["error"] != nil) != (c.want == "failed") {
			t.Errorf("%s became %s", c.state, marshal(p))
		}
	}
	// A member in other letters is not known (prp.md section 1).
	letters := newTranslation(bridge.NewMasker(nil)).apply(said(1, protocol.EventRunTerminal, "", `{"runTerminalState":"succeeded","RunTerminalState":"failed","Reconciliation":{"reason":"x"}}`))[0].payload
	if unquoted(letters["status"]) != "succeeded" || letters["reason"] != nil {
		t.Errorf("with other letters the completion is %s", marshal(letters))
	}
	handed := newTranslation(bridge.NewMasker(nil))
	handed.cause = &cause{status: StatusCancelled, reason: reasonHandedOff, newRunID: "r2"}
	p := handed.apply(said(1, protocol.EventRunTerminal, "", `{"runTerminalState":"cancelled"}`))[0].payload
	if unquoted(p["status"]) != "cancelled" || unquoted(p["cause"]) != reasonHandedOff || unquoted(p["new_run_id"]) != "r2" || p["error"] != nil {
		t.Errorf("a run that was handed off is %s", marshal(p))
	}
	tr := newTranslation(bridge.NewMasker(nil))
	if p := tr.lost("now", "the runner died").payload; unquoted(p["status"]) != "unknown" || !strings.Contains(string(p["error"]), reasonUnknown) {
		t.Errorf("an end that nobody saw is %s", marshal(p))
	}
}

// TestUsage: tokens in the words of several harnesses (row 8).
func TestUsage(t *testing.T) {
	for payload, want := range map[string]int64{
		`{"usage":{"totalTokens":12}}`:                    12,
		`{"usage":{"inputTokens":5,"outputTokens":6}}`:    11,
		`{"used":7,"size":100}`:                           7,
		`{"usage":{"input_tokens":1,"output_tokens":2}}`:  3,
		`{"usage":{"total_tokens":"many"}}`:               -1,
		`{"cost":{"amount":1}}`:                           -1,
		`{"usage":{"inputTokens":-1,"outputTokens":-10}}`: -1,
	} {
		tr := newTranslation(bridge.NewMasker(nil))
		tr.apply(said(1, protocol.EventUsageReported, "", payload))
		if tr.tokens != want || tr.usage == nil {
			t.Errorf("%s: %d tokens, want %d", payload, tr.tokens, want)
		}
	}
}

// TestMasked: secrets are hidden in every event, also when a text is split over
// several, and nothing of the text is lost (remote.md rule 7).
func TestMasked(t *testing.T) {
	tr := newTranslation(bridge.NewMasker([]string{"sesame-open"}))
	var shown strings.Builder
	add := func(e *protocol.Event) {
		for _, ev := range tr.apply(e) {
			raw := marshal(ev.payload)
			if strings.Contains(string(raw), "sesame") && strings.Contains(string(raw), "open") {
				t.Errorf("a secret is shown: %s", raw)
			}
			shown.WriteString(unquoted(ev.payload["text"]) + unquoted(ev.payload["text_rest"]))
		}
	}
	add(said(1, protocol.EventItemStarted, "i", `{"kind":"command","command":"echo sesame-open"}`))
	add(said(2, protocol.EventItemDelta, "i", `{"kind":"command","delta":"a sesa"}`))
	add(said(3, protocol.EventItemDelta, "i", `{"kind":"command","delta":"me-open b sesa"}`))
	add(said(4, protocol.EventItemCompleted, "i", `{"kind":"command"}`))
	add(said(5, protocol.EventItemDelta, "j", `{"kind":"assistant_message","delta":"c sesame-"}`))
	add(said(6, protocol.EventRunTerminal, "", `{"runTerminalState":"succeeded"}`))
	if got, want := shown.String(), "a [masked] b sesac sesame-"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}

// TestManyItems: items that never end neither pile up nor lose a text, and what is
// held back of each is told once (row 10).
func TestManyItems(t *testing.T) {
	tr := newTranslation(bridge.NewMasker([]string{"sesame-open"}))
	var shown strings.Builder
	const items = maxItems + 100
	take := func(e *protocol.Event) {
		for _, ev := range tr.apply(e) {
			shown.WriteString(unquoted(ev.payload["text"]) + unquoted(ev.payload["text_rest"]))
		}
	}
	for n := range items {
		take(said(int64(n+1), protocol.EventItemDelta, fmt.Sprint("item_", n), `{"kind":"assistant_message","delta":"a ses"}`))
		if len(tr.items) > maxItems || len(tr.order) != len(tr.items) {
			t.Fatalf("after %d there are %d items, %d in order", n+1, len(tr.items), len(tr.order))
		}
	}
	// A secret that is split is still seen.
	take(said(items+1, protocol.EventItemDelta, fmt.Sprint("item_", items-1), `{"kind":"assistant_message","delta":"ame-open"}`))
	take(said(items+2, protocol.EventRunTerminal, "", `{"runTerminalState":"succeeded"}`))
	if got, want := strings.Count(shown.String(), "ses"), items-1; got != want || strings.Count(shown.String(), "a ") != items || strings.Count(shown.String(), "[masked]") != 1 {
		t.Errorf("%d rests are told, want %d", got, want)
	}
}

// TestShorten: a frame above the server's limit loses text, never its number
// (rows 4 and 16).
func TestShorten(t *testing.T) {
	ev := event{kind: kindProgress, at: "now", payload: members{
		"text": quoted(strings.Repeat("ä", 20_000)), "input": marshal(map[string]string{"a": strings.Repeat("x", 9000)}), "n": marshal(1),
	}}
	frame := ev.frame("run_1", 7)
	for _, limit := range []int{30_000, 5_000, 400, 10} {
		got := shorten(frame, limit)
		var f runEvent
		if err := json.Unmarshal(got, &f); err != nil {
			t.Fatal(err)
		}
		if f.Seq != 7 || f.RunID != "run_1" || f.Payload["truncated_from_bytes"] == nil || len(got) > max(limit, 200) {
			t.Errorf("limit %d: %d bytes: %.200s", limit, len(got), got)
		}
	}
	if got := shorten(frame, len(frame)); string(got) != string(frame) {
		t.Error("a frame that fits was changed")
	}
}
