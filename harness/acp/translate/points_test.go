package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"prp/harness/text"
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

const threeOptions = `[{"optionId":"forever","name":"Always","kind":"allow_always"},{"optionId":"now","name":"Yes","kind":"allow_once"},{"optionId":"nope","name":"No","kind":"reject_once"}]`

func asks(kind, options string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"a","title":"do it","kind":"` + kind + `"},"options":` + options + `}}`
}

func TestPoint07PolicyChoosesByKind(t *testing.T) {
	const onlyAlways = `[{"optionId":"allow","name":"allow","kind":"allow_always"},{"optionId":"r","name":"No","kind":"reject_once"}]`
	const noReject = `[{"optionId":"forever","name":"Always","kind":"allow_always"},{"optionId":"never","name":"Never","kind":"reject_always"}]`
	tests := []struct {
		policy        Policy
		kind, options string
		want          string // option id, "cancelled" or "asked"
	}{
		{PolicyAsk, "execute", threeOptions, "asked"},
		{PolicyAllow, "execute", threeOptions, "now"},
		{PolicyAllow, "execute", onlyAlways, "r"}, // an id that says allow is no allow_once
		{PolicyAllow, "execute", `[]`, "cancelled"},
		{PolicyDeny, "read", threeOptions, "nope"},
		{PolicyDeny, "read", noReject, "never"},
		{PolicyAllowReads, "read", threeOptions, "now"},
		{PolicyAllowReads, "search", threeOptions, "now"},
		{PolicyAllowReads, "fetch", threeOptions, "asked"},
		{PolicyAllowReads, "execute", threeOptions, "asked"},
		{PolicyAllowReads, "", threeOptions, "asked"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %s %s", tt.policy, tt.kind, tt.want), func(t *testing.T) {
			k := newTalk(t, Config{Policy: tt.policy})
			k.open()
			k.turn("turn_1")
			k.agent(asks(tt.kind, tt.options))
			k.want("item.started") // it opens the item
			switch tt.want {
			case "asked":
				k.want("say request")
				k.wantNot("write")
				return
			case "cancelled":
				k.want("write", `"outcome":"cancelled"`)
			default:
				k.want("write", `"id":0`, `"outcome":"selected","optionId":"`+tt.want+`"`)
			}
			// What a policy decided is visible.
			if d := k.payload("interaction.permission_decided"); d["policy"] != tt.policy.String() || d["title"] != "do it" {
				t.Errorf("told %v", d)
			}
		})
	}
}

func TestPoint07ControllerAnswers(t *testing.T) {
	tests := []struct{ response, want, decision string }{
		{`{"decision":"now"}`, "now", "allowed"},
		{`{"decision":"allow"}`, "now", "allowed"},
		{`"approve"`, "now", "allowed"},
		{`{"key":"forever"}`, "forever", "allowed"}, // asked for by its own id
		{`{"decision":"allow_always"}`, "forever", "allowed"},
		{`{"decision":"deny"}`, "nope", "denied"},
		{`{"decision":"ALLOW"}`, "nope", "denied"},
		{`{}`, "nope", "denied"},
		{`null`, "nope", "denied"},
		{`true`, "nope", "denied"},
		{`{"decision":"cancel"}`, "", "cancelled"},
	}
	for _, tt := range tests {
		t.Run(tt.response, func(t *testing.T) {
			k := newTalk(t, Config{})
			k.open()
			k.turn("turn_1")
			k.agent(asks("execute", threeOptions))
			k.runner(protocol.RequestResolve, `{"requestId":"permission_1","response":`+tt.response+`}`)
			if tt.want == "" {
				k.want("write", `"outcome":{"outcome":"cancelled"}`)
			} else {
				k.want("write", `"id":0`, `"optionId":"`+tt.want+`"`)
			}
			if r := k.payload("runtime_request.resolved"); r["decision"] != tt.decision {
				t.Errorf("resolved with %v", r)
			}
			k.runner(protocol.RequestResolve, `{"requestId":"permission_1","response":"allow"}`)
			k.wantNot("write") // one answer reaches the agent
		})
	}
}

func TestPoint07CancelAnswersWhatIsPending(t *testing.T) {
	k := newTalk(t, Config{})
	k.open()
	p := k.turn("turn_1")
	k.agent(asks("execute", threeOptions))
	k.agent(`{"jsonrpc":"2.0","id":"two","method":"elicitation/create","params":{"message":"?","requestedSchema":{"properties":{"x":{"type":"string"}}}}}`)
	k.runner(protocol.TurnInterrupt, `{}`)
	k.want("write", `"method":"session/cancel"`)
	k.want("write", `"id":0`, "cancelled")
	k.want("write", `"id":"two"`, `"action":"cancel"`)
	k.want("timer cancel 5s")
	if n := len(k.payloads["runtime_request.cancelled"]); n != 2 {
		t.Errorf("%d requests were told as cancelled", n)
	}
	k.agent(asks("execute", threeOptions)) // one that comes too late
	k.want("write", `"id":0`, "cancelled")
	k.stops(p, "cancelled")
	k.want("clear cancel")
	k.want("turn.interrupted")
}

func TestPoint07CancelIsNotAnswered(t *testing.T) {
	k := newTalk(t, Config{})
	k.open("close")
	k.turn("turn_1")
	k.runner(protocol.TurnInterrupt, `{"reason":"r"}`)
	k.fire(TimerCancel)
	if e := k.payload("turn.interrupted"); e["forced"] != true || e["reason"] != "r" {
		t.Errorf("interrupted with %v", e)
	}
	k.want("session.closed")
	k.want("close stdin") // nothing more is asked of such an agent
	k.fire(TimerExit)
	k.want("terminate")
	k.fire(TimerExit)
	k.want("kill")
	k.exited(Exit{Signal: 9})
	k.want("finish status 1")
}

func TestPoint07RejectEndsTheTurn(t *testing.T) {
	k := newTalk(t, Config{Policy: PolicyDeny})
	k.open()
	p := k.turn("turn_1")
	k.agent(asks("execute", threeOptions))
	k.stops(p, "cancelled") // though nobody cancelled
	if e := k.payload("turn.interrupted"); e["reason"] != "agent_cancelled" {
		t.Errorf("interrupted with %v", e)
	}
	k.runner(protocol.SessionClose, `{}`)
	k.want("result", `"yielded"`)
	k.exited(Exit{})
	k.want("finish status 0")
}

func TestWithdrawnRequest(t *testing.T) {
	k := newTalk(t, Config{})
	k.open()
	k.turn("turn_1")
	k.agent(asks("execute", threeOptions))
	k.agent(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}`)
	k.want("write", `"id":0`, "-32800")
	k.want("runtime_request.cancelled")
}

func TestPoint08WhatATurnAmountsTo(t *testing.T) {
	message := func(k *talk) { k.message("an answer") }
	nothing := func(*talk) {}
	tests := []struct {
		name        string
		during      func(*talk)
		stop        string
		disposition string
		usage       bool
	}{
		{"message", message, "end_turn", "done", false},
		{"nothing", nothing, "end_turn", "yielded", false},
		{"blank item", func(k *talk) { k.message("") }, "end_turn", "yielded", false},
		{"thought only", func(k *talk) {
			k.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)
		}, "end_turn", "yielded", false},
		{"completed item", func(k *talk) {
			k.update(`{"sessionUpdate":"tool_call","toolCallId":"a","status":"completed"}`)
		}, "end_turn", "done", false},
		{"failed item", func(k *talk) {
			k.update(`{"sessionUpdate":"tool_call","toolCallId":"a","status":"failed"}`)
		}, "end_turn", "yielded", false},
		{"max tokens", message, "max_tokens", "yielded", false},
		{"max requests", message, "max_turn_requests", "yielded", false},
		{"refusal", message, "refusal", "yielded", false},
		{"unknown", message, "new_reason", "yielded", false},
		{"with usage", func(k *talk) {
			k.message("m")
			k.update(`{"sessionUpdate":"usage_update","used":1,"size":2}`)
		}, "end_turn", "done", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := newTalk(t, Config{})
			k.open()
			p := k.turn("turn_1")
			tt.during(k)
			k.stops(p, tt.stop)
			if e := k.payload("turn.completed"); e["stopReason"] != tt.stop {
				t.Errorf("completed with %v", e)
			}
			k.runner(protocol.SessionClose, `{}`)
			r := k.payload("result")
			evidence := r["evidence"].([]any)[0].(map[string]any)
			if r["reportedWorkDisposition"] != tt.disposition || evidence["usageReported"] != tt.usage || r["provenance"] != "adapter:acp" {
				t.Errorf("the result is %v", r)
			}
			if (r["continuation"] != nil) != (tt.disposition == "yielded") {
				t.Errorf("the continuation is %v", r["continuation"])
			}
		})
	}
}

func TestPoint08ErrorFailsTheRun(t *testing.T) {
	k := newTalk(t, Config{})
	k.open()
	p := k.turn("turn_1")
	k.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"Internal error","data":{"x":1}}}`, p))
	if e := k.payload("turn.failed"); e["code"] != "agent_error" || e["rpcCode"] != -32603.0 || e["data"] == nil {
		t.Errorf("failed with %v", e)
	}
	k.runner(protocol.SessionClose, `{}`)
	k.want("result", `"yielded"`)
	k.exited(Exit{})
	k.want("finish status 1") // the last turn failed: the run is no success
}

func TestPoint08LastTurnDecides(t *testing.T) {
	k := newTalk(t, Config{})
	k.open()
	p := k.turn("turn_1")
	k.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"Internal error"}}`, p))
	p = k.turn("turn_2")
	k.message("better")
	k.stops(p, "end_turn")
	k.runner(protocol.SessionClose, `{}`)
	if r := k.payload("result"); r["reportedWorkDisposition"] != "done" || r["summary"] != "better" {
		t.Errorf("the result is %v", r)
	}
	k.exited(Exit{})
	k.want("finish status 0")
}

func TestPoint08Timers(t *testing.T) {
	const turn, idle = time.Minute, time.Second
	for name, timer := range map[string]Timer{"turn": TimerTurn, "idle": TimerIdle} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, times(turn, idle))
			k.open()
			p := k.turn("turn_1")
			k.want("timer turn 1m0s")
			k.want("timer idle 1s")
			k.message("x")
			k.want("timer idle 1s") // every line starts it anew
			k.fire(timer)
			k.want("write", "session/cancel")
			k.stops(p, "cancelled")
			if e := k.payload("turn.failed"); e["code"] != "turn_timed_out" {
				t.Errorf("failed with %v", e)
			}
			k.ends(Exit{})
			k.want("finish status 1")
		})
	}
	t.Run("off", func(t *testing.T) {
		k := newTalk(t, Config{})
		k.open()
		k.turn("turn_1")
		k.wantNot("timer turn")
		k.wantNot("timer idle")
	})
	t.Run("a person may think", func(t *testing.T) {
		k := newTalk(t, times(0, idle))
		k.open()
		k.turn("turn_1")
		k.agent(asks("execute", threeOptions))
		k.want("clear idle")
		k.message("meanwhile")
		k.wantNot("timer idle")
		k.runner(protocol.RequestResolve, `{"requestId":"permission_1","response":"allow"}`)
		k.want("timer idle 1s")
	})
}

func TestPoint09Ladder(t *testing.T) {
	k := newTalk(t, Config{})
	k.open("close")
	p := k.turn("turn_1")
	k.message("x")
	k.stops(p, "end_turn")
	k.runner(protocol.SessionClose, `{}`)
	k.want("write", `"method":"session/close"`)
	k.fire(TimerClose) // it does not answer
	k.want("close stdin")
	k.fire(TimerExit)
	k.want("terminate")
	k.exited(Exit{Status: 143}) // our signal, so not its own end
	k.want("finish status 0")
}

func TestPoint09ExitIsMirrored(t *testing.T) {
	for _, e := range []Exit{{}, {Status: 3}, {Signal: 11}} {
		k := newTalk(t, Config{})
		k.open()
		p := k.turn("turn_1")
		k.message("x")
		k.stops(p, "end_turn")
		k.ends(e)
		k.want("finish " + e.String())
	}
	// In the middle of a turn even status 0 is no success.
	k := newTalk(t, Config{})
	k.open()
	k.turn("turn_1")
	k.exited(Exit{})
	k.want("turn.failed", "agent_exited")
	k.want("session.failed")
	k.want("finish status 1")
}

func TestPoint09HurriedEnd(t *testing.T) {
	ends := map[string]func(*talk){
		"run.cancel": func(k *talk) { k.runner(protocol.RunCancel, `{}`) },
		"signal":     func(k *talk) { k.state.Terminated("terminated"); k.take() },
		"stdin":      func(k *talk) { k.state.InputEnded(); k.take() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, Config{})
			k.open("close")
			k.turn("turn_1")
			end(k)
			k.want("write", "session/cancel")
			k.want("timer cancel 500ms")
			k.fire(TimerCancel)
			k.want("turn.cancelled")
			k.wantNot("session/close")
			k.want("close stdin")
			k.want("timer exit 500ms")
			k.fire(TimerExit)
			k.want("terminate")
			k.fire(TimerExit)
			k.want("kill")
		})
	}
}

func TestPoint10ResumeIsPreferred(t *testing.T) {
	tests := []struct {
		can       []string
		method    string
		restoring string
	}{
		{[]string{"load", "resume"}, "session/resume", "resume"},
		{[]string{"load"}, "session/load", "load"},
	}
	for _, tt := range tests {
		k := newTalk(t, Config{})
		k.initialized(tt.can...)
		k.runner(protocol.SessionOpen, `{"agentSessionId":"s1"}`)
		k.want("write", tt.method, `"sessionId":"s1"`, `"cwd":"/work"`)
		k.agent(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		if e := k.payload("session.resumed"); e["restoredBy"] != tt.restoring || e["agentSessionId"] != "s1" {
			t.Errorf("resumed with %v", e)
		}
		p := k.turn("turn_1")
		k.message("new")
		if d := k.payload("item.delta"); d["replay"] != nil {
			t.Errorf("a new text is %v", d)
		}
		k.stops(p, "end_turn")
	}
	k := newTalk(t, Config{})
	k.initialized()
	k.runner(protocol.SessionOpen, `{"agentSessionId":"s1"}`)
	k.want("session.failed", "restore_unsupported")
	k.exited(Exit{})
	k.want("finish status 1")
}

func TestPoint11Repair(t *testing.T) {
	tests := []struct {
		in, want string
		replaced int
	}{
		{`"a\ud83d\ude00b"`, `"a\ud83d\ude00b"`, 0},
		{`"a\ud83db"`, `"a\ufffdb"`, 1},
		{`"\ude00\ud83d"`, `"\ufffd\ufffd"`, 2},
		{`"\ud83d\ud83d\ude00"`, `"\ufffd\ud83d\ude00"`, 1},
		{`"\\ud83d"`, `"\\ud83d"`, 0}, // a backslash and a word
		{`"\\\ud83d"`, `"\\\ufffd"`, 1},
		{`"\uD83D\n"`, `"\ufffd\n"`, 1},
		{`"\u00e9\u"`, `"\u00e9\u"`, 0},
		{"\"\xff\xed\xa0\x80\"", "\"\ufffd\ufffd\ufffd\ufffd\"", 4},
		{`\`, `\`, 0},
	}
	for _, tt := range tests {
		if got, n := Repair([]byte(tt.in)); string(got) != tt.want || n != tt.replaced {
			t.Errorf("Repair(%q) = %q, %d, want %q, %d", tt.in, got, n, tt.want, tt.replaced)
		}
	}
	k := newTalk(t, Config{})
	k.open()
	k.turn("turn_1")
	k.update("{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"a\xffb\\ud800c\"}}")
	if d := k.payload("harness.diagnostic"); d["code"] != "agent_text_repaired" || d["replaced"] != 2.0 {
		t.Errorf("told %v", d)
	}
	if got := k.deltas["item_1_assistant_message"]; got != "a\ufffdb\ufffdc" {
		t.Errorf("the text is %q", got)
	}
	// What is no strict JSON of ours is told by its size.
	k.update(`{"sessionUpdate":"tool_call","toolCallId":"a","rawInput":{"x":1,"x":2}}`)
	if in := k.payload("item.started")["input"].(map[string]any); in["head"] != `{"x":1,"x":2}` {
		t.Errorf("the input is %v", in)
	}
}

// TestHandshakeFails: the runner hears no ready, a person the reason.
func TestHandshakeFails(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no licence"}}`: "no licence",
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}`:             "version 2",
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                "version nothing",
	} {
		k := newTalk(t, Config{})
		k.agent(line)
		k.want("note", want)
		k.want("close stdin")
		k.exited(Exit{})
		k.want("finish status 1")
		if k.seq != 0 {
			t.Errorf("%q was said", k.all)
		}
	}
	k := newTalk(t, Config{})
	k.exited(Exit{Status: 41})
	k.want("note", "status 41")
	k.want("finish status 41")
}

// FuzzLines: whatever lines come in whatever order, what is said is
// strict and bounded, and there is one end. The checks are in the kit.
func FuzzLines(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"a","content":[{"type":"diff"}]}}}`)
	f.Add(asks("execute", threeOptions))
	f.Add(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"a":1,"a":2}}}` + "\n" + `{"id":3}`)
	f.Add(`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud800"}}}}`)
	f.Fuzz(func(t *testing.T, lines string) {
		k := newTalk(t, Config{})
		k.open()
		k.turn("turn_1")
		for line := range strings.SplitSeq(lines, "\n") {
			k.agent(line)
		}
		k.runner(protocol.SessionClose, `{}`)
		k.fire(TimerCancel)
		k.fire(TimerClose)
		k.exited(Exit{})
		if !k.over {
			t.Error("there was no end")
		}
	})
}

// TestPiecesAndPayloads ties the size of a piece to the bound of a line.
func TestPiecesAndPayloads(t *testing.T) {
	if maxRaw < text.MaxPiece/2 || 6*text.MaxPiece > protocol.DefaultHarnessLine-4<<10 {
		t.Errorf("a piece has up to %d bytes in JSON", 6*text.MaxPiece)
	}
}
