package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"prp/harness/text"
	"prp/protocol"
)

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
		k.want("write", tt.method, `"sessionId":"s1"`, `"cwd":"/ws"`)
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

// TestInstructions: they stand before the text, as a block of their own.
func TestInstructions(t *testing.T) {
	for payload, want := range map[string]string{
		`{"turnId":"t","text":"do it"}`:                            `"prompt":[{"type":"text","text":"do it"}]`,
		`{"turnId":"t","text":"do it","instructions":""}`:          `"prompt":[{"type":"text","text":"do it"}]`,
		`{"turnId":"t","text":"do it","instructions":"be \"it\""}`: `"prompt":[{"type":"text","text":"be \"it\""},{"type":"text","text":"do it"}]`,
	} {
		k := newTalk(t, Config{})
		k.open()
		k.runner(protocol.TurnStart, payload)
		if got := string(k.written[len(k.written)-1]); !strings.Contains(got, want) {
			t.Errorf("%s: the agent gets %s", payload, got)
		}
	}
}
