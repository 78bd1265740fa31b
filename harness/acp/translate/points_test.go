package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"prp/protocol"
)

// The tests here are named after the numbered points of what real agents do.
// Points 1 and 2 (processes and homes) are tested with processes, in package
// acp; so are the bounds of a line of point 3.

func TestPoint03LongAnswerInPieces(t *testing.T) {
	k := newTalk(t, Config{})
	k.open()
	p := k.turn("turn_1")
	want := strings.Repeat("o\u2603\"\n", 2<<20/6)
	k.message(want) // every message is checked against the bound of a line
	if got := k.deltas["item_1_assistant_message"]; got != want {
		t.Errorf("%d bytes of %d arrived", len(got), len(want))
	}
	k.stops(p, "end_turn")
	k.ends(Exit{})
	if !k.over {
		t.Error("not over")
	}
}

func TestPoint03OutputIsCutAndSaysSo(t *testing.T) {
	k := newTalk(t, Config{})
	k.open()
	k.turn("turn_1")
	out := strings.Repeat("x", maxToolOutput+1000)
	k.update(`{"sessionUpdate":"tool_call","toolCallId":"a","kind":"execute","title":"t","rawInput":{"x":"` + strings.Repeat("i", maxRaw) + `"}}`)
	input := k.payload("item.started")["input"].(map[string]any)
	if n, _ := input["truncatedBytes"].(float64); int(n)+len(input["head"].(string)) != maxRaw+len(`{"x":""}`) {
		t.Errorf("the input is %v", input["truncatedBytes"])
	}
	k.update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","rawOutput":"` + out + `"}`)
	end := k.payload("item.completed")
	if end["truncatedBytes"] != 1000.0 || end["outputBytes"] != float64(maxToolOutput) {
		t.Errorf("the item ended with %v", end)
	}
	if got := len(k.deltas["item_1_command"]); got != maxToolOutput {
		t.Errorf("%d bytes of the output arrived", got)
	}
}

func TestPoint03MetadataIsNotCopied(t *testing.T) {
	k := newTalk(t, Config{})
	k.open()
	big := `{"sessionUpdate":"available_commands_update","availableCommands":["` + strings.Repeat("c", 500<<10) + `"]}`
	for range 3 {
		if k.update(big); len(k.last) > 0 {
			t.Fatalf("metadata gave %q", k.last)
		}
	}
	k.update(`{"sessionUpdate":"current_mode_update","currentModeId":"plan"}`)
	k.runner(protocol.SessionClose, `{}`)
	meta := k.payload("session.closed")["agentMetadata"].(map[string]any)
	commands := meta["available_commands_update"].(map[string]any)
	if commands["updates"] != 3.0 || commands["truncatedBytes"] != float64(len(big)) || commands["last"] != nil {
		t.Errorf("commands: %v", commands)
	}
	if mode := fmt.Sprint(meta["current_mode_update"]); !strings.Contains(mode, "plan") {
		t.Errorf("mode: %v", mode)
	}
}

// TestPayloadsFit: whatever an agent sends in whatever member, the messages
// fit into a line; the check is in the kit.
func TestPayloadsFit(t *testing.T) {
	bad := `"` + strings.Repeat(`\u0001`, 3000) + `"`
	var options, diffs []string
	for i := range 200 {
		options = append(options, fmt.Sprintf(`{"optionId":"%d%s","name":%s,"kind":%s}`, i, strings.Repeat(`\u0001`, 200), bad, bad))
		diffs = append(diffs, fmt.Sprintf(`{"type":"diff","path":%s,"newText":%s,"oldText":null}`, bad, bad))
	}
	k := newTalk(t, Config{})
	k.open()
	p := k.turn("turn_1")
	k.update(`{"sessionUpdate":` + bad + `}`)
	k.update(`{"sessionUpdate":"agent_message_chunk","messageId":` + bad + `,"content":{"type":` + bad + `,"uri":` + bad + `,"name":` + bad + `,"mimeType":` + bad + `,"data":` + bad + `,"resource":{"uri":` + bad + `}}}`)
	k.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + bad + `}}`)
	k.update(`{"sessionUpdate":"tool_call","toolCallId":` + bad + `,"title":` + bad + `,"kind":` + bad + `,"rawInput":{"command":` + bad + `},"locations":[` + bad + `],"content":[` + strings.Join(diffs, ",") + `]}`)
	k.update(`{"sessionUpdate":"tool_call_update","toolCallId":` + bad + `,"status":"completed","rawOutput":{"a":` + bad + `}}`)
	if end := k.payload("item.completed"); end["changesLeftOut"] == nil {
		t.Errorf("%d changes of 200 and nothing about the others", len(end["changes"].([]any)))
	}
	k.update(`{"sessionUpdate":"plan","entries":[` + bad + `]}`)
	k.update(`{"sessionUpdate":"usage_update","used":` + bad + `,"cost":` + bad + `}`)
	k.agent(`{"jsonrpc":"2.0","id":` + bad + `,"method":"session/request_permission","params":{"toolCall":{"title":` + bad + `},"options":[` + strings.Join(options, ",") + `]}}`)
	k.agent(`{"jsonrpc":"2.0","id":8,"method":` + bad + `}`)
	k.agent(`{"jsonrpc":"2.0","method":` + bad + `}`)
	k.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":%s,"data":%s}}`, p, bad, bad))
	p = k.turn("turn_2")
	k.message(strings.Repeat("\x01", 20000)) // the longest summary there is
	k.stops(p, "end_turn")
	k.ends(Exit{})
}

func TestPoint04Noise(t *testing.T) {
	for _, line := range []string{"Warning: something", "[]", "1", `{"a":1}`, `{"jsonrpc":"2.0"`, `{"jsonrpc":"2.0"} x`, "\x00"} {
		k := newTalk(t, Config{})
		k.open()
		p := k.turn("turn_1")
		k.agent(line)
		if d := k.payload("harness.diagnostic"); d["code"] != "agent_noise" || d["bytes"] != float64(len(line)) {
			t.Errorf("%q: %v", line, d)
		}
		k.message("still here")
		if k.stops(p, "end_turn"); len(k.payloads["turn.completed"]) != 1 {
			t.Errorf("%q ended the turn with %q", line, k.last)
		}
	}
}

// TestNoiseBeforeReady: ready is the first message of all, whatever the agent
// writes before.
func TestNoiseBeforeReady(t *testing.T) {
	k := newTalk(t, Config{})
	k.agent("Loading...")
	k.want("note", "Loading...")
	k.agent(`{"jsonrpc":"2.0","method":"_early","params":{}}`)
	k.initialized()
	k.want("say event", "agent_noise")
	k.want("say event", "_early")
}

func TestPoint05Ids(t *testing.T) {
	t.Run("nothing before initialize is answered", func(t *testing.T) {
		k := newTalk(t, Config{})
		k.runner(protocol.SessionOpen, `{}`)
		k.runner(protocol.TurnStart, `{"turnId":"turn_1","text":"go"}`)
		if len(k.last) != 0 || len(k.all) != 1 {
			t.Fatalf("effects %q", k.all)
		}
		k.initialized()
		k.want(`"method":"session/new"`)
		k.wantNot("session/prompt")
		k.agent(`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}`)
		k.want(`"method":"session/prompt"`)
	})
	t.Run("ids of the agent come back as they were", func(t *testing.T) {
		for _, id := range []string{"0", `"a\u0041"`, "-7", "9007199254740993", `""`} {
			k := newTalk(t, Config{})
			k.open()
			k.turn("turn_1")
			k.agent(`{"method":"fs/read_text_file","params":{},"id":` + id + `,"jsonrpc":"2.0"}`)
			k.want("write", `"id":`+id, `"code":-32601`)
		}
	})
	t.Run("an id of another kind", func(t *testing.T) {
		k := newTalk(t, Config{})
		k.open()
		k.agent(`{"jsonrpc":"2.0","id":{"x":1},"method":"m"}`)
		k.wantNot("write")
		k.want("agent_bad_id")
	})
	t.Run("answers to nothing", func(t *testing.T) {
		k := newTalk(t, Config{})
		k.open()
		p := k.turn("turn_1")
		for _, id := range []string{"99", `"3"`, "3.5", "null"} {
			k.agent(`{"jsonrpc":"2.0","id":` + id + `,"result":{"stopReason":"end_turn"}}`)
			if len(k.payloads["turn.completed"]) > 0 {
				t.Errorf("id %s ended the turn", id)
			}
		}
		k.stops(p, "end_turn")
		k.want("turn.completed")
		k.stops(p, "end_turn") // twice
		k.wantNot("turn.completed")
	})
	t.Run("unknown notifications are told with name and size, once", func(t *testing.T) {
		k := newTalk(t, Config{})
		k.open()
		k.agent(`{"jsonrpc":"2.0","method":"_vendor/thing","params":{"a":"bcd"}}`)
		if d := k.payload("harness.diagnostic"); d["name"] != "_vendor/thing" || d["bytes"] != float64(len(`{"a":"bcd"}`)) {
			t.Errorf("told %v", d)
		}
		k.agent(`{"jsonrpc":"2.0","method":"_vendor/thing","params":{"a":"bcd"}}`)
		k.wantNot("harness.diagnostic")
		k.want("say diagnostic", "_vendor/thing")
	})
}

func TestPoint06OffersNothing(t *testing.T) {
	k := newTalk(t, Config{})
	k.state.initialize()
	k.take()
	var m struct {
		Params struct {
			ProtocolVersion    int
			ClientCapabilities map[string]any
		}
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(k.last[0], "write ")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Params.ProtocolVersion != 1 || m.Params.ClientCapabilities == nil || len(m.Params.ClientCapabilities) != 0 {
		t.Errorf("initialize says %+v", m.Params)
	}
}
