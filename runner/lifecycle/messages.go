package lifecycle

import (
	"bytes"
	"fmt"

	"prp/protocol"
)

// harnessSaid takes a well-formed message: order first, then its meaning.
func (s *State) harnessSaid(in *HarnessSaid) {
	if s.deaf {
		return
	}
	m := in.Message
	if fault := s.checkOrder(m); fault != nil {
		s.violation(*fault)
		return
	}
	s.messageSeq++
	switch m.Type {
	case protocol.MessageEvent:
		s.harnessEvent(m, in.Bytes)
	case protocol.MessageReady:
		s.ready(m)
	case protocol.MessageRequest:
		s.harnessRequest(m, in.Bytes)
	case protocol.MessageResult:
		s.harnessResult(m, in.Bytes)
	case protocol.MessageTerminal:
		s.harnessTerminal(m, in.Bytes)
	case protocol.MessageLog:
		s.fx = append(s.fx, Effect{Kind: Log, Stream: m.Log.Stream, Text: m.Log.Text})
	case protocol.MessageDiagnostic:
		s.fx = append(s.fx, Effect{Kind: Log, Stream: "diagnostic", Text: string(m.Raw)})
	}
}

// checkOrder checks family, sequence and the place of ready.
func (s *State) checkOrder(m *protocol.HarnessMessage) *protocol.MessageFault {
	first := s.messageSeq == 0
	switch {
	case first && m.Type != protocol.MessageReady:
		return &protocol.MessageFault{
			Code:   protocol.CodeHarnessBeforeReady,
			Detail: fmt.Sprintf("expected ready as the first message, got %s", m.Type),
		}
	case !first && m.Family != s.family:
		return &protocol.MessageFault{
			Code:   protocol.CodeHarnessSchema,
			Detail: fmt.Sprintf("expected schema %q as in ready, got %q", s.family.MessageSchema(), m.Family.MessageSchema()),
		}
	case m.Seq != s.messageSeq+1:
		return &protocol.MessageFault{
			Code:   protocol.CodeHarnessMessageGap,
			Detail: fmt.Sprintf("expected messageSeq %d, got %d", s.messageSeq+1, m.Seq),
		}
	case !first && m.Type == protocol.MessageReady:
		return &protocol.MessageFault{Code: protocol.CodeHarnessSecondReady, Detail: "expected one ready, got a second one"}
	}
	return nil
}

// spend counts an event that the harness causes against the budgets and
// reports whether it may be made.
func (s *State) spend(n int) bool {
	s.events++
	s.eventBytes += int64(n)
	var what string
	switch {
	case s.cfg.MaxEvents > 0 && s.events > s.cfg.MaxEvents:
		what = fmt.Sprintf("more than %d events", s.cfg.MaxEvents)
	case s.cfg.MaxEventBytes > 0 && s.eventBytes > s.cfg.MaxEventBytes:
		what = fmt.Sprintf("more than %d bytes of events", s.cfg.MaxEventBytes)
	default:
		return true
	}
	s.deaf = true
	s.diagnose(protocol.LevelError, codeBudget, "the harness sent "+what)
	s.stop(protocol.ReasonBudgetExceeded)
	return false
}

func (s *State) harnessEvent(m *protocol.HarnessMessage, size int) {
	if !s.spend(size) {
		return
	}
	t := m.Event.EventType
	switch t.Origin() {
	case protocol.OriginHarness:
	case protocol.OriginRunner:
		s.harnessDiagnostic(diagnosticPayload{
			Code: protocol.CodeReservedEventType, EventType: t,
			Message: "an event type that the runner alone makes was not passed on",
		})
		return
	default:
		s.harnessDiagnostic(diagnosticPayload{
			Code: protocol.CodeUnknownEventType, EventType: t,
			Message: "an event type that is not known was not passed on",
		})
		return
	}
	e := s.event(t, m.Event.Payload)
	e.TurnID, e.ItemID = m.Event.TurnID, m.Event.ItemID
	if e.Priority != 2 {
		s.follow(m)
	}
}

// follow keeps the book of what an event of the harness ends or begins.
func (s *State) follow(m *protocol.HarnessMessage) {
	t := m.Event.EventType
	switch {
	case t.EndsTurn():
		if s.turn != "" && (m.Event.TurnID == "" || m.Event.TurnID == s.turn) {
			s.turn = ""
			s.clearTimer(TimerInterrupt)
			s.finishInput()
		}
	case t == protocol.EventSessionStarted || t == protocol.EventSessionResumed:
		if s.session == protocol.SessionStarting {
			s.session = protocol.SessionRunning
		}
	case t == protocol.EventSessionClosed:
		s.session = protocol.SessionClosed
		s.endTurn()
	case t == protocol.EventSessionFailed:
		s.session = protocol.SessionFailed
		s.endTurn()
	case m.RequestID != "":
		s.requests.close(m.RequestID)
		s.armExpiry()
	}
}

// endTurn: a session that has ended has no active turn.
func (s *State) endTurn() {
	s.turn = ""
	s.clearTimer(TimerInterrupt)
	s.finishInput()
}

func (s *State) harnessRequest(m *protocol.HarnessMessage, size int) {
	if !s.spend(size) {
		return
	}
	id := m.Request.RequestID
	switch {
	case s.requests.status(id) != requestUnknown:
		s.harnessDiagnostic(diagnosticPayload{
			Code: protocol.CodeDuplicateRequestIgnored, RequestID: id,
			Message: "a request with an id that was used before was not passed on",
		})
		return
	case len(s.requests.pending) >= maxPendingRequests:
		s.harnessDiagnostic(diagnosticPayload{
			Code: protocol.CodeTooManyRequests, RequestID: id,
			Message: fmt.Sprintf("%d requests are pending; this one was not passed on", maxPendingRequests),
		})
		return
	}
	q := &request{id: id, turn: s.turn}
	if at := m.Request.ExpiresAt; at != nil {
		own := *at
		q.expiresAt = &own
	}
	s.requests.add(q)
	payload := make([]byte, 0, len(m.Raw)+len(`{"request":}`))
	payload = append(payload, `{"request":`...)
	payload = append(payload, m.Raw...)
	s.event(protocol.EventRequestCreated, append(payload, '}')).TurnID = s.turn
	if q.expiresAt != nil {
		s.armExpiry()
	}
	s.finishInput()
}

func (s *State) harnessResult(m *protocol.HarnessMessage, size int) {
	if !s.spend(size) {
		return
	}
	if s.resultSeen {
		s.harnessDiagnostic(diagnosticPayload{
			Code:    protocol.CodeDuplicateSemanticResult,
			Message: "a result came before; this one was ignored",
		})
		return
	}
	r, err := protocol.DecodeResult(m.Raw)
	if err != nil {
		s.harnessDiagnostic(diagnosticPayload{Code: protocol.CodeInvalidSemanticResult, Message: err.Error()})
		return
	}
	s.resultSeen, s.result = true, r.ReportedWorkDisposition
	payload := make([]byte, 0, len(m.Raw)+len(`{"result":}`))
	payload = append(payload, `{"result":`...)
	payload = append(payload, m.Raw...)
	s.event(protocol.EventResultProposed, append(payload, '}')).TurnID = s.turn
}

func (s *State) harnessTerminal(m *protocol.HarnessMessage, size int) {
	if s.proposal != nil {
		if s.spend(size) {
			s.harnessDiagnostic(diagnosticPayload{
				Code:    protocol.CodeDuplicateTerminalIgnored,
				Message: "a terminal proposal came before; this one was ignored",
			})
		}
		return
	}
	s.proposal = bytes.Clone(m.Raw)
	p, err := protocol.DecodeTerminalProposal(s.proposal)
	s.proposalOne, s.proposalOK = p, err == nil
}

// violation fails the run for what the harness wrote; nothing that comes
// after it counts.
func (s *State) violation(f protocol.MessageFault) {
	s.deaf = true
	s.harnessDiagnostic(diagnosticPayload{Code: f.Code, Message: f.Detail})
	s.stop(protocol.ReasonProtocolViolation)
}

// harnessBroke takes a line that violates the protocol. A torn last line is
// judged when it is known how the harness ended.
func (s *State) harnessBroke(in HarnessBroke) {
	if s.deaf {
		return
	}
	if in.Cut {
		s.noteTorn()
		return
	}
	if in.Torn {
		fault := in.Fault
		s.torn = &fault
		return
	}
	s.violation(in.Fault)
}
