package lifecycle

import (
	"fmt"

	"prp/protocol"
)

// The start of a run: run.prepare, from the working directory to ready.

const transport = "stdio_jsonl"

// beginPrepare starts what decides run.prepare; its receipt comes at the end.
func (s *State) beginPrepare(c *protocol.Command) {
	s.phase = phasePreparing
	s.prepare = c
	s.event(protocol.EventPhaseChanged, object(nil).text("phase", protocol.PhaseWorkspacePreparing).end())
	s.do(CheckWorkspace)
}

func (s *State) workspaceChecked(detail string) {
	if detail != "" {
		s.startFailed(detail)
		return
	}
	s.event(protocol.EventWorkspaceReady, object(nil).text("workingDirectory", s.cfg.WorkingDirectory).end())
	s.event(protocol.EventHarnessStarting, object(nil).text("driverKind", s.cfg.DriverKind).text("transport", transport).end())
	s.do(StartHarness)
}

func (s *State) harnessStarted() {
	s.running = true
	s.setTimer(TimerReady, s.cfg.ReadyTimeout)
	if s.cfg.RunTimeout > 0 {
		s.setTimer(TimerRun, s.cfg.RunTimeout)
	}
}

// startFailed ends a run that never had a harness.
func (s *State) startFailed(detail string) {
	s.diagnose(protocol.LevelError, protocol.CodeHarnessStartFailed, detail)
	s.addCause(protocol.ReasonStartFailed)
	s.failPrepare(reject(protocol.CodeHarnessStartFailed, "%s", detail))
	s.settle()
}

// ready takes the first message of the harness.
func (s *State) ready(m *protocol.HarnessMessage) {
	s.family = m.Family
	s.capabilities = append([]byte(nil), m.Ready.Capabilities...)
	s.clearTimer(TimerReady)
	kind := m.Ready.DriverKind
	if kind == "" {
		kind = s.cfg.DriverKind
	}
	payload := append([]byte(`{"driverKind":`), protocol.AppendString(nil, kind)...)
	payload = append(payload, `,"driverVersion":`...)
	payload = protocol.AppendString(payload, m.Ready.Version)
	payload = append(payload, `,"transport":"`+transport+`"`...)
	if len(s.capabilities) > 0 {
		payload = append(payload, `,"capabilities":`...)
		payload = append(payload, s.capabilities...)
	}
	s.event(protocol.EventHarnessReady, append(payload, '}'))
	if s.prepare == nil {
		return // the ladder has begun before; run.prepare was rejected
	}
	// Where the exit is known already, ready still came before it.
	s.phase = phaseReady
	c := s.prepare
	s.prepare = nil
	s.conclude(c, rejection{})
	s.releaseWaiting()
	s.finishInput()
}

// notReady fails a run whose harness did not say ready.
func (s *State) notReady(detail string) {
	s.diagnose(protocol.LevelError, protocol.CodeHarnessNotReady, detail)
	s.stop(protocol.ReasonNotReady)
}

// failPrepare answers run.prepare where it is undecided, and then all that
// waited for it.
func (s *State) failPrepare(no rejection) {
	if s.prepare == nil {
		return
	}
	c := s.prepare
	s.prepare = nil
	s.conclude(c, no)
}

// controllerClosed: stdin has ended. While the harness is being prepared the
// commands before the end come first.
func (s *State) controllerClosed() {
	s.eof = true
	if s.phase == phasePreparing && !s.over() {
		return
	}
	s.endOfCommands()
}

// endOfCommands is where the end of stdin takes effect.
func (s *State) endOfCommands() {
	if s.eofDone {
		return
	}
	s.eofDone = true
	if s.cfg.FinishOnEOF && s.phase != phaseIdle {
		s.finishInput()
		return
	}
	s.stop(protocol.ReasonControllerClosed)
}

// finishInput closes the harness's stdin once no command can come that it
// could be waiting for: after the end of stdin, where no turn is active or
// the active one waits for an answer.
func (s *State) finishInput() {
	if !s.eofDone || s.over() || s.phase != phaseReady {
		return
	}
	if s.turn == "" || len(s.requests.pending) > 0 {
		s.closeInput(true)
	}
}

// timerFired acts on a timer that is still in force.
func (s *State) timerFired(in TimerFired) {
	if !s.timerOn[in.Timer] || in.Gen != s.timerGen[in.Timer] {
		return
	}
	s.timerOn[in.Timer] = false
	switch in.Timer {
	case TimerReady:
		s.notReady(fmt.Sprintf("the harness did not say ready within %s", s.cfg.ReadyTimeout))
	case TimerInterrupt, TimerCancel:
		s.ladder()
	case TimerDrain:
		s.do(CutOutput)
	case TimerExit:
		s.outputClosedTooLong()
	case TimerRun:
		s.diagnose(protocol.LevelError, protocol.Code(protocol.ReasonRunTimedOut),
			fmt.Sprintf("the run did not end within %s", s.cfg.RunTimeout))
		s.stop(protocol.ReasonRunTimedOut)
	case TimerExpiry:
		s.expireRequests()
	}
}
