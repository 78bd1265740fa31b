package translate

import (
	"strings"

	"prp/harness/fields"
	"prp/harness/text"
	"prp/protocol"
)

// cancelKind is why a turn was cancelled, which decides how its end is told.
type cancelKind uint8

const (
	cancelNone cancelKind = iota
	cancelInterrupt
	cancelRun
	cancelTimeout
)

// turn is the prompt that is under way.
type turn struct {
	id        string
	call      int64 // of session/prompt
	cancelled cancelKind
	reason    string
	messages  int // assistant messages with a text
	completed int // tool items that completed
	usage     bool
	answer    []byte // start of the last message
}

// stopReasons that the protocol has.
const (
	stopEndTurn   = "end_turn"
	stopCancelled = "cancelled"
)

func (s *State) startTurn(c protocol.HarnessCommand) {
	payload, _ := parse(c.Payload)
	id := payload["turnId"].text()
	switch {
	case s.phase < phaseOpen:
		s.enqueue(c)
		return
	case s.phase > phaseOpen || s.wantEnd:
		s.event(protocol.EventTurnCancelled, id, "", fields.New().Text("reason", "the session is ending"))
		return
	case s.turn != nil:
		s.diagnose("command_ignored", string(c.Type), "a turn is active", nil)
		return
	}
	// The protocol has no place for instructions of a system, so that they stand
	// before the text.
	blocks := [][]byte{}
	if payload["instructions"].text() != "" {
		blocks = append(blocks, fields.New().Text("type", "text").Own("text", payload["instructions"]).Object())
	}
	blocks = append(blocks, fields.New().Text("type", "text").Own("text", payload["text"]).Object())
	s.turn = &turn{id: id}
	s.turn.call = s.call(callPrompt, "session/prompt",
		fields.New().Text("sessionId", s.sessionID).Own("prompt", array(blocks)).Object())
	s.event(protocol.EventTurnStarted, id, "", fields.New())
	if s.cfg.TurnTimeout > 0 {
		s.setTimer(TimerTurn, s.cfg.TurnTimeout)
	}
	if s.cfg.TurnIdle > 0 {
		s.setTimer(TimerIdle, s.cfg.TurnIdle)
	}
}

// interrupt cancels the active turn, or one that waits for its session.
func (s *State) interrupt(c protocol.HarnessCommand) {
	payload, _ := parse(c.Payload)
	id, reason := payload["turnId"].text(), payload["reason"].text()
	if s.turn != nil {
		if id == "" || id == s.turn.id {
			s.cancelTurn(cancelInterrupt, reason)
		}
		return
	}
	s.dropQueued(protocol.EventTurnInterrupted, id, reason)
}

// dropQueued ends turns that were not started: that of the id, or all.
func (s *State) dropQueued(t protocol.EventType, id, reason string) {
	queue := s.queue
	s.queue = nil
	for _, c := range queue {
		payload, _ := parse(c.Payload)
		turnID := payload["turnId"].text()
		if c.Type != protocol.TurnStart || id != "" && turnID != id {
			s.queue = append(s.queue, c)
			continue
		}
		s.event(t, turnID, "", fields.New().Short("reason", reason))
		s.last = outcome{set: true, turnID: turnID, summary: "The turn was ended before it began."}
	}
}

// cancelTurn asks the agent to end the turn, and waits for that with a timer.
// The first reason is the one that is told.
func (s *State) cancelTurn(kind cancelKind, reason string) {
	if s.turn == nil || s.turn.cancelled != cancelNone {
		return
	}
	s.turn.cancelled, s.turn.reason = kind, reason
	s.clearTimer(TimerTurn)
	s.clearTimer(TimerIdle)
	s.notify("session/cancel", fields.New().Text("sessionId", s.sessionID).Object())
	s.cancelRequests("the turn was cancelled")
	s.setTimer(TimerCancel, s.cfg.CancelWait)
}

// cancelFailed: the agent did not end the turn. What it does now is not known,
// so the session ends with it.
func (s *State) cancelFailed() {
	if s.turn == nil {
		return
	}
	delete(s.calls, s.turn.call)
	s.failed = true
	s.diagnose("agent_ignored_cancel", "", "the agent did not end the turn after it was cancelled", nil)
	s.finishCancelled(fields.New().Truth("forced", true), "")
	s.end(s.hurried)
}

func (s *State) promptAnswered(call int64, result object, fault *rpcError) {
	if s.turn == nil || s.turn.call != call {
		return
	}
	if u := result["usage"]; !u.isNull() {
		s.turn.usage = true
		s.event(protocol.EventUsageReported, s.turn.id, "", fields.New().Raw("usage", u, maxRaw))
	}
	stop := result["stopReason"].text()
	switch {
	case s.turn.cancelled != cancelNone:
		// Some agents answer a cancel with an error, some had ended before.
		s.finishCancelled(fields.New(), stop)
	case fault != nil:
		s.finishTurn(protocol.EventTurnFailed, fault.fields("agent_error"),
			outcome{failed: true, summary: "The agent reported an error: " + fault.message})
	case stop == stopCancelled:
		s.finishTurn(protocol.EventTurnInterrupted, fields.New().Text("stopReason", stop).Text("reason", "agent_cancelled"),
			outcome{stop: stop, summary: "The agent cancelled the turn by itself."})
	default:
		s.finishTurn(protocol.EventTurnCompleted, fields.New().Short("stopReason", stop), s.judge(stop))
	}
}

// judge says what a turn that ended by itself amounts to.
func (s *State) judge(stop string) outcome {
	t := s.turn
	o := outcome{stop: stop, summary: strings.TrimSpace(text.HeadRunes(string(t.answer), maxSummary))}
	o.done = stop == stopEndTurn && (t.messages > 0 || t.completed > 0)
	if o.summary == "" {
		o.summary = "The turn ended without a message, with stop reason " + quoted(stop) + "."
	}
	return o
}

func quoted(s string) string {
	head, _ := text.Head(s, maxShort)
	return string(protocol.AppendString(nil, head))
}

// finishCancelled tells the end of a turn that was cancelled.
func (s *State) finishCancelled(f *fields.Fields, stop string) {
	t := s.turn
	f.Short("reason", t.reason).Short("stopReason", stop)
	o := outcome{stop: stop, summary: "The turn was cancelled."}
	switch t.cancelled {
	case cancelInterrupt:
		o.summary = "The turn was interrupted."
		s.finishTurn(protocol.EventTurnInterrupted, f, o)
	case cancelTimeout:
		o.summary, o.failed = "The turn was ended: "+t.reason+".", true
		s.finishTurn(protocol.EventTurnFailed, f.Text("code", "turn_timed_out"), o)
	default:
		s.finishTurn(protocol.EventTurnCancelled, f, o)
	}
}

// finishTurn closes what is open in the turn, tells its end and goes on with
// what waited for it.
func (s *State) finishTurn(t protocol.EventType, payload *fields.Fields, o outcome) {
	for _, timer := range []Timer{TimerTurn, TimerIdle, TimerCancel} {
		s.clearTimer(timer)
	}
	s.cancelRequests("the turn ended")
	s.closeItems("the turn ended")
	o.set, o.turnID, o.usage = true, s.turn.id, s.turn.usage
	o.messages, o.completed = s.turn.messages, s.turn.completed
	s.last = o
	s.event(t, s.turn.id, "", payload)
	s.turn = nil
	if s.wantEnd && !s.gone {
		s.end(s.hurried)
	}
}
