package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"prp/protocol"
)

// talk plays a runner and an agent to a state, and checks every effect.
type talk struct {
	t       *testing.T
	state   *State
	decoder *protocol.Decoder
	seq     int64
	over    bool
	// all is everything so far, printed; last is what the last input gave.
	all, last []string
	// payloads are the payloads of the last input's messages, by type or
	// event type; deltas are all deltas by item.
	payloads map[string][]map[string]any
	deltas   map[string]string
	written  [][]byte // to the agent, of the whole conversation
}

func newTalk(t *testing.T, cfg Config) *talk {
	t.Helper()
	if cfg.Cwd == "" {
		cfg.Cwd = "/ws"
	}
	cfg.Version = "1"
	k := &talk{t: t, state: New(cfg), decoder: protocol.NewDecoder(), deltas: map[string]string{}}
	k.take()
	return k
}

// take carries the effects out: every message is strict and fits into a line.
func (k *talk) take() {
	k.t.Helper()
	k.last, k.payloads = nil, map[string][]map[string]any{}
	for _, fx := range k.state.Take() {
		if k.over {
			k.t.Errorf("an effect after the end: %s", show(fx))
		}
		switch fx.Kind {
		case Say:
			k.said(fx)
		case Write:
			if !json.Valid(fx.Data) || bytes.ContainsAny(fx.Data, "\n\r") {
				k.t.Errorf("written to the agent: %.300q", fx.Data)
			}
			k.written = append(k.written, fx.Data)
		case Finish:
			k.over = true
		}
		k.last = append(k.last, show(fx))
	}
	k.all = append(k.all, k.last...)
}

func (k *talk) said(fx Effect) {
	k.t.Helper()
	k.seq++
	line := protocol.AppendMessage(nil, protocol.FamilyHarness, k.seq, fx.Type, fx.Data)
	if len(line) > protocol.DefaultHarnessLine {
		k.t.Errorf("message %d has %d bytes: %.200s", k.seq, len(line), line)
	}
	var m protocol.HarnessMessage
	if fault := k.decoder.HarnessMessage(bytes.TrimSuffix(line, []byte("\n")), &m); fault != nil {
		k.t.Errorf("message %d: %v: %.300s", k.seq, fault, line)
		return
	}
	if (m.Type == protocol.MessageReady) != (k.seq == 1) {
		k.t.Errorf("message %d is %s", k.seq, m.Type)
	}
	name, raw := string(m.Type), m.Raw
	switch m.Type {
	case protocol.MessageEvent:
		if m.Event.EventType.Origin() != protocol.OriginHarness {
			k.t.Errorf("an event of type %s", m.Event.EventType)
		}
		name, raw = string(m.Event.EventType), m.Event.Payload
		if m.Event.EventType == protocol.EventItemDelta {
			var d struct{ Delta string }
			_ = json.Unmarshal(raw, &d)
			k.deltas[m.Event.ItemID] += d.Delta
		}
	case protocol.MessageResult:
		if _, err := protocol.DecodeResult(m.Raw); err != nil {
			k.t.Errorf("the result: %v: %.300s", err, m.Raw)
		}
	case protocol.MessageReady:
		raw = m.Ready.Capabilities
	}
	if raw == nil {
		return
	}
	var payload map[string]any
	if err := json.Unmarshal(raw, &payload); err != nil {
		k.t.Fatal(err)
	}
	k.payloads[name] = append(k.payloads[name], payload)
}

// show prints an effect as one line.
func show(fx Effect) string {
	switch fx.Kind {
	case Say:
		data := string(fx.Data)
		if len(data) > 600 {
			data = fmt.Sprintf("%s... (%d bytes)", data[:600], len(data))
		}
		return "say " + string(fx.Type) + " " + data
	case Write:
		return "write " + string(fx.Data)
	case SetTimer:
		return fmt.Sprintf("timer %s %s", fx.Timer, fx.Delay)
	case ClearTimer:
		return "clear " + fx.Timer.String()
	case Note:
		return "note " + string(fx.Data)
	case Finish:
		return "finish " + fx.Exit.String()
	}
	return map[EffectKind]string{CloseStdin: "close stdin", Terminate: "terminate", Kill: "kill"}[fx.Kind]
}

func (k *talk) agent(line string) {
	k.t.Helper()
	k.state.Line([]byte(line))
	k.take()
}

// update is a session/update of the open session.
func (k *talk) update(u string) {
	k.t.Helper()
	k.agent(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` + u + `}}`)
}

func (k *talk) message(text string) {
	k.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		k.t.Fatal(err)
	}
	k.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(quoted) + `}}`)
}

func (k *talk) runner(t protocol.CommandType, payload string) {
	k.t.Helper()
	k.state.Command(protocol.HarnessCommand{CommandID: "c", Type: t, Payload: []byte(payload)})
	k.take()
}

func (k *talk) fire(t Timer) {
	k.t.Helper()
	k.state.Fired(t)
	k.take()
}

func (k *talk) exited(e Exit) {
	k.t.Helper()
	k.state.Exited(e)
	k.take()
}

// open brings the conversation to an open session s1 of an agent that can do
// what the names say: load, resume, close.
func (k *talk) open(can ...string) {
	k.t.Helper()
	k.initialized(can...)
	k.runner(protocol.SessionOpen, `{}`)
	k.agent(`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}`)
}

func (k *talk) initialized(can ...string) {
	k.t.Helper()
	session, load := "", false
	for _, c := range can {
		if c == "load" {
			load = true
			continue
		}
		session += fmt.Sprintf(`,"%s":{}`, c)
	}
	k.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"test","version":"7"},"agentCapabilities":{"loadSession":%v,"sessionCapabilities":{"list":{}%s}},"authMethods":[{"id":"key"}]}}`, load, session))
}

// turn starts a turn; its prompt is the request with the id that is returned.
func (k *talk) turn(id string) int64 {
	k.t.Helper()
	k.runner(protocol.TurnStart, `{"turnId":"`+id+`","text":"go"}`)
	if !k.has(`"method":"session/prompt"`) {
		k.t.Fatalf("no prompt: %q", k.last)
	}
	return k.state.nextID
}

func (k *talk) stops(prompt int64, reason string) {
	k.t.Helper()
	k.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"%s"}}`, prompt, reason))
}

// has tells whether an effect of the last input contains every word.
func (k *talk) has(words ...string) bool {
	for _, line := range k.last {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return true
		}
	}
	return false
}

func (k *talk) want(words ...string) {
	k.t.Helper()
	if !k.has(words...) {
		k.t.Errorf("no effect with %q in\n  %s", words, strings.Join(k.last, "\n  "))
	}
}

func (k *talk) wantNot(words ...string) {
	k.t.Helper()
	if k.has(words...) {
		k.t.Errorf("an effect with %q in\n  %s", words, strings.Join(k.last, "\n  "))
	}
}

// payload is the one payload of a kind of message or event of the last input.
func (k *talk) payload(name string) map[string]any {
	k.t.Helper()
	if n := len(k.payloads[name]); n != 1 {
		k.t.Fatalf("%d messages of %s in\n  %s", n, name, strings.Join(k.last, "\n  "))
	}
	return k.payloads[name][0]
}

// ends closes the session and ends the agent with an exit.
func (k *talk) ends(e Exit) {
	k.t.Helper()
	k.runner(protocol.SessionClose, `{}`)
	k.exited(e)
}

func times(turn, idle time.Duration) Config { return Config{TurnTimeout: turn, TurnIdle: idle} }
