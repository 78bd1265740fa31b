package lifecycle

import (
	"slices"

	"prp/protocol"
)

// addCause records why the run ends, each reason at its first time. What comes
// after the harness has exited by itself is no cause any more, except what it
// had written before.
func (s *State) addCause(r protocol.Reason) {
	if slices.Contains(s.causes, r) {
		return
	}
	if s.exit != nil && r != protocol.ReasonProtocolViolation && r != protocol.ReasonBudgetExceeded && r != protocol.ReasonNotReady {
		return
	}
	s.causes = append(s.causes, r)
}

// dropCause takes a cause back: an interrupt ends a turn, not those after it.
func (s *State) dropCause(r protocol.Reason) {
	s.causes = slices.DeleteFunc(s.causes, func(c protocol.Reason) bool { return c == r })
}

// stop ends the run for a cause, by the one ladder.
func (s *State) stop(r protocol.Reason) {
	if s.phase >= phaseSettling {
		return
	}
	s.addCause(r)
	s.ladder()
}

// ladder begins to stop the harness, or ends a run that has none. It begins
// once; an order after that changes nothing.
func (s *State) ladder() {
	if s.stopping {
		return
	}
	if s.exit != nil {
		return
	}
	s.stopping = true
	for _, t := range []Timer{TimerReady, TimerInterrupt, TimerCancel, TimerExit, TimerRun, TimerExpiry} {
		s.clearTimer(t)
	}
	s.failPrepare(reject(protocol.CodeHarnessNotReady, "the run was stopped before the harness was ready"))
	s.releaseWaiting()
	if !s.running {
		s.settle()
		return
	}
	s.closeInputNow()
	s.fx = append(s.fx, Effect{Kind: StopTree, Delay: s.cfg.ShutdownGrace})
}

// closeInputNow closes the harness's stdin also where a flush is under way.
func (s *State) closeInputNow() {
	s.inputClosed = true
	s.fx = append(s.fx, Effect{Kind: CloseHarnessInput})
}

// leaderExited: the harness process itself has ended. What is left of its tree
// is ended at once where it exited by itself.
func (s *State) leaderExited(e protocol.ExitFact) {
	s.exit = &e
	for _, t := range []Timer{TimerInterrupt, TimerCancel, TimerExit, TimerRun, TimerExpiry, TimerReady} {
		s.clearTimer(t)
	}
	if !s.stopping {
		s.closeInputNow()
		s.fx = append(s.fx, Effect{Kind: StopTree})
	}
	if !s.outEnded || !s.errEnded {
		s.setTimer(TimerDrain, s.cfg.DrainGrace)
	}
	s.judgeReady()
	s.tryClose()
}

// outputEnded: nothing more comes from the harness's stdout.
func (s *State) outputEnded() {
	s.outEnded = true
	switch {
	case s.exit != nil:
		s.judgeReady()
	case !s.stopping:
		s.setTimer(TimerExit, s.cfg.ExitGrace)
	}
	s.tryClose()
}

// outputClosedTooLong: the harness closed its stdout and stayed.
func (s *State) outputClosedTooLong() {
	if s.torn != nil {
		fault := *s.torn
		s.torn = nil
		s.violation(fault)
		return
	}
	if s.phase == phasePreparing {
		s.notReady("the harness closed its stdout before it said ready")
		return
	}
	s.ladder()
}

// judgeReady fails a run whose harness exited before it said ready. Only at
// the end of its output is that known.
func (s *State) judgeReady() {
	if s.exit == nil || !s.outEnded || s.phase != phasePreparing || s.prepare == nil {
		return
	}
	if s.messageSeq > 0 {
		s.failPrepare(reject(protocol.CodeHarnessNotReady, "the harness exited as soon as it was ready"))
	} else {
		s.diagnose(protocol.LevelError, protocol.CodeHarnessNotReady, "the harness exited before it said ready")
		s.addCause(protocol.ReasonNotReady)
		s.failPrepare(reject(protocol.CodeHarnessNotReady, "the harness exited before it said ready"))
	}
	s.releaseWaiting()
}

// treeGone: nothing of the harness is left, but for survivors.
func (s *State) treeGone(c protocol.Containment) {
	s.gone = &c
	if s.exit == nil {
		// The leader survived SIGKILL, or its exit could not be learned.
		s.setTimer(TimerDrain, s.cfg.DrainGrace)
	}
	s.tryClose()
}

// tryClose ends the harness's part once all of its ends are known.
func (s *State) tryClose() {
	if s.closing || s.gone == nil || !s.outEnded || !s.errEnded {
		return
	}
	s.closing = true
	s.clearTimer(TimerDrain)
	s.judgeTorn()
	s.do(CloseHarness)
}

// judgeTorn decides about a torn last line: noted where a signal or the sweep
// can have torn it, a violation where the harness ended by itself.
func (s *State) judgeTorn() {
	if s.torn == nil {
		return
	}
	fault := *s.torn
	s.torn = nil
	byItself := !s.stopping && s.exit != nil && s.exit.Signal == nil && s.gone.Swept == 0
	if byItself {
		s.deaf = true
		s.harnessDiagnostic(diagnosticPayload{Code: fault.Code, Message: fault.Detail})
		s.addCause(protocol.ReasonProtocolViolation)
		return
	}
	s.noteTorn()
}

func (s *State) noteTorn() {
	s.harnessDiagnostic(diagnosticPayload{
		Code:    protocol.CodeTornLine,
		Message: "the last line was torn when the harness was ended",
	})
}

func (s *State) harnessClosed(logs protocol.LogTail) {
	s.logs = logs
	s.settle()
}

// settle asks for the commands that have come, so that each gets its receipt
// before the terminal.
func (s *State) settle() {
	s.phase = phaseSettling
	s.releaseWaiting()
	s.do(Settle)
}

// settled ends the run.
func (s *State) settled() {
	s.cancelRequests()
	if s.running {
		s.emitExited()
	}
	s.emitTerminal()
	s.phase = phaseFinished
	s.do(Finish)
}

func (s *State) emitExited() {
	exit := protocol.ExitFact{}
	if s.exit != nil {
		exit = *s.exit
	}
	s.event(protocol.EventHarnessExited, exitedPayload(protocol.HarnessExited{
		ProcessExit: exit, SemanticResultObserved: s.resultSeen, Logs: s.logs, Containment: *s.gone,
	}))
}

func (s *State) emitTerminal() {
	facts := Facts{
		Exit:          s.exit,
		ResultSeen:    s.resultSeen,
		Result:        s.result,
		Proposed:      s.proposal != nil,
		ProposalValid: s.proposalOK,
		Proposal:      s.proposalOne,
	}
	if len(s.causes) > 0 {
		facts.Cause = s.causes[0]
	}
	t := Reconcile(facts)
	s.event(protocol.EventRunTerminal, terminalPayload(t, s.proposal))
}
