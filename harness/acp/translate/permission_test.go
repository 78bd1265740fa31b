package translate

import (
	"fmt"
	"testing"

	"prp/protocol"
)

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
