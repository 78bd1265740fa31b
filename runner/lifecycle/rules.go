package lifecycle

import (
	"prp/protocol"
)

// The checks and effects of each command type (spec section 2).

func accept(*State, *protocol.Command) rejection { return rejection{} }

func checkPrepare(s *State, c *protocol.Command) rejection {
	if s.phase != phaseIdle {
		return reject(protocol.CodeAlreadyPrepared, "run.prepare was accepted before")
	}
	if s.cancelled {
		return reject(protocol.CodeRunEnding, "the run is ending")
	}
	s.beginPrepare(c)
	return rejection{}
}

// prepared is the check that comes first for all that needs the harness.
func (s *State) prepared() rejection {
	if s.phase == phaseIdle {
		return reject(protocol.CodeNotPrepared, "run.prepare has not been accepted")
	}
	return rejection{}
}

// sessionOpen checks for a session that has been opened and not ended.
func (s *State) sessionOpen() rejection {
	if no := s.prepared(); no.code != "" {
		return no
	}
	switch s.session {
	case protocol.SessionStarting, protocol.SessionRunning:
		return rejection{}
	}
	return reject(protocol.CodeSessionNotOpen, "the session is %s", string(s.session))
}

// starting checks that nothing new is begun in a run that is being cancelled
// or drained.
func (s *State) starting(c *protocol.Command) rejection {
	switch {
	case s.draining && c.Type == protocol.TurnStart:
		return reject(protocol.CodeDraining, "the runner is draining")
	case s.cancelled:
		return reject(protocol.CodeRunEnding, "the run is being cancelled")
	}
	return s.sendable(c)
}

func checkOpen(s *State, c *protocol.Command) rejection {
	if no := s.prepared(); no.code != "" {
		return no
	}
	if s.session != protocol.SessionNotStarted {
		return reject(protocol.CodeSessionAlreadyOpen, "the session is %s", string(s.session))
	}
	return s.starting(c)
}

func applyOpen(s *State, c *protocol.Command) {
	s.session = protocol.SessionStarting
	s.event(protocol.EventSessionStarting, emptyObject)
	s.send(c)
}

func checkTurnStart(s *State, c *protocol.Command) rejection {
	if no := s.sessionOpen(); no.code != "" {
		return no
	}
	if s.turn != "" {
		return reject(protocol.CodeTurnActive, "turn %q is active", s.turn)
	}
	return s.starting(c)
}

func applyTurnStart(s *State, c *protocol.Command) {
	s.turn = c.Args.TurnID
	s.dropCause(protocol.ReasonTurnInterrupted)
	s.clearTimer(TimerInterrupt)
	payload := append([]byte(`{"text":`), protocol.AppendString(nil, c.Args.Text)...)
	s.event(protocol.EventTurnSubmitted, append(payload, '}')).TurnID = c.Args.TurnID
	s.send(c)
}

// activeTurn checks for an active turn that is the one named, where one is.
func (s *State) activeTurn(c *protocol.Command) rejection {
	if no := s.sessionOpen(); no.code != "" {
		return no
	}
	switch {
	case s.turn == "":
		return reject(protocol.CodeNoActiveTurn, "no turn is active")
	case c.Args.TurnID != "" && c.Args.TurnID != s.turn:
		return reject(protocol.CodeTurnMismatch, "turn %q is active, not %q", s.turn, c.Args.TurnID)
	}
	return rejection{}
}

func checkSteer(s *State, c *protocol.Command) rejection {
	if no := s.activeTurn(c); no.code != "" {
		return no
	}
	if !protocol.HasCapability(s.capabilities, "steer") {
		return reject(protocol.CodeUnsupportedByHarness, "the harness did not say steer in its ready capabilities")
	}
	return s.starting(c)
}

func checkInterrupt(s *State, c *protocol.Command) rejection {
	if no := s.activeTurn(c); no.code != "" {
		return no
	}
	return s.sendable(c)
}

func applyInterrupt(s *State, c *protocol.Command) {
	s.addCause(protocol.ReasonTurnInterrupted)
	if s.cfg.InterruptGrace > 0 && !s.timerOn[TimerInterrupt] {
		s.setTimer(TimerInterrupt, s.cfg.InterruptGrace)
	}
	s.send(c)
}

func checkResolve(s *State, c *protocol.Command) rejection {
	if no := s.prepared(); no.code != "" {
		return no
	}
	switch s.requests.status(c.Args.RequestID) {
	case requestUnknown:
		return reject(protocol.CodeUnknownRequest, "request %q is not known", c.Args.RequestID)
	case requestPending:
		return s.sendable(c)
	}
	return reject(protocol.CodeRequestAlreadyResolved, "request %q is not pending any more", c.Args.RequestID)
}

func applyResolve(s *State, c *protocol.Command) {
	s.requests.answer(c.Args.RequestID, c.CommandID)
	s.armExpiry()
	s.send(c)
}

func checkClose(s *State, c *protocol.Command) rejection {
	if no := s.sessionOpen(); no.code != "" {
		return no
	}
	return s.sendable(c)
}

func applyClose(s *State, c *protocol.Command) {
	s.send(c)
	s.closeInput(true)
}

func applyDrain(s *State, _ *protocol.Command) { s.draining = true }

func applyCancel(s *State, c *protocol.Command) {
	if s.cancelled {
		return // the first one is under way; its grace is not begun anew
	}
	s.cancelled = true
	s.addCause(protocol.ReasonRunCancelled)
	if s.phase == phaseReady && s.sendable(c).code == "" {
		s.send(c)
		s.setTimer(TimerCancel, s.cfg.CancelGrace)
	}
}

func applyShutdown(s *State, _ *protocol.Command) {
	s.addCause(protocol.ReasonRunnerShutdown)
}

// afterAccept is what follows the receipt: a stop that a command asked for.
func (s *State) afterAccept(c *protocol.Command) {
	switch c.Type {
	case protocol.RunCancel:
		if !s.timerOn[TimerCancel] {
			s.stop(protocol.ReasonRunCancelled)
		}
	case protocol.RunnerShutdown:
		s.stop(protocol.ReasonRunnerShutdown)
	}
}

// closeInput lets the harness see the end of its stdin.
func (s *State) closeInput(flush bool) {
	if s.inputClosed {
		return
	}
	s.inputClosed = true
	s.fx = append(s.fx, Effect{Kind: CloseHarnessInput, Flush: flush})
}
