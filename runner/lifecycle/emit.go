package lifecycle

import (
	"encoding/json"
	"time"

	"prp/protocol"
)

// Codes of the runner's own diagnostics that are not codes of a receipt.
const (
	codeSignal protocol.Code = "runner_signalled"
	codeBudget protocol.Code = "event_budget_exceeded"
)

// clockBase is where the deterministic clock starts.
var clockBase = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var emptyObject = json.RawMessage("{}")

// event stamps and emits an event and returns it, so that turn and item can be
// added. Its id is derived from run and sequence number by the encoder.
func (s *State) event(t protocol.EventType, payload json.RawMessage) *protocol.Event {
	s.seq++
	var e *protocol.Event
	if s.used < len(s.arena) {
		e = &s.arena[s.used]
		s.used++
	} else {
		e = new(protocol.Event)
	}
	*e = protocol.Event{
		Schema:              protocol.SchemaEvent,
		SourceSeq:           s.seq,
		SourceInstanceID:    s.cfg.RunnerID,
		SourceKind:          protocol.SourceKindRunner,
		RunID:               s.cfg.RunID,
		NormalizedSessionID: s.cfg.SessionID,
		EventType:           t,
		SchemaVersion:       1,
		Priority:            t.Priority(),
		EmittedAt:           s.emittedAt(),
		Payload:             payload,
	}
	s.fx = append(s.fx, Effect{Kind: Emit, Event: e})
	return e
}

// emittedAt is the time of the event that is being made. Most events of a
// burst share their millisecond, so the text is kept.
func (s *State) emittedAt() string {
	at := s.at
	if s.cfg.Deterministic {
		at = clockBase.Add(time.Duration(s.seq) * time.Millisecond)
	}
	at = at.UTC().Truncate(time.Millisecond)
	if s.stampText == "" || at.After(s.stamp) {
		s.stamp = at
		s.stampText = at.Format(protocol.TimeLayout)
	}
	return s.stampText
}

// diagnosticPayload is that of harness.diagnostic; an event type and a request id
// are left out where empty.
type diagnosticPayload struct {
	Code      protocol.Code
	Message   string
	EventType protocol.EventType
	RequestID string
}

// harnessDiagnostic emits a harness.diagnostic that the runner makes. What it
// quotes of the harness is masked as in any diagnostic.
func (s *State) harnessDiagnostic(p diagnosticPayload) {
	if mask := s.cfg.Mask; mask != nil {
		p.Message, p.RequestID = mask(p.Message), mask(p.RequestID)
		p.EventType = protocol.EventType(mask(string(p.EventType)))
	}
	s.event(protocol.EventHarnessDiag, object(nil).text("code", string(p.Code)).text("message", p.Message).
		some("eventType", string(p.EventType)).some("requestId", p.RequestID).end())
}

func (s *State) diagnose(level protocol.Level, code protocol.Code, message string) {
	s.fx = append(s.fx, Effect{Kind: Diagnose, Diagnostic: &protocol.Diagnostic{Level: level, Message: message, Code: code}})
}

func (s *State) do(k Kind) { s.fx = append(s.fx, Effect{Kind: k}) }

// setTimer arms a timer and makes earlier settings of it void.
func (s *State) setTimer(t Timer, d time.Duration) {
	s.timerGen[t]++
	s.timerOn[t] = true
	s.fx = append(s.fx, Effect{Kind: SetTimer, Timer: t, Gen: s.timerGen[t], Delay: d})
}

func (s *State) clearTimer(t Timer) {
	if s.timerOn[t] {
		s.timerOn[t] = false
		s.fx = append(s.fx, Effect{Kind: ClearTimer, Timer: t})
	}
}
