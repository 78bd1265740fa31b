package lifecycle

import (
	"time"

	"prp/protocol"
)

// Bounds of what waits for the harness and of what is remembered (spec
// section 2).
const (
	maxPendingRequests = 1024
	// maxAnsweredRequests is more than what can wait for the harness: an
	// answer that is not delivered can always be taken back.
	maxAnsweredRequests = 1024
	maxClosedRequests   = 4096
	maxQueuedCommands   = 256
	maxQueuedBytes      = 1 << 20
	// commandOverhead is what a queued command counts beside its payload.
	commandOverhead = 256
)

// phase is how far the run has come.
type phase uint8

const (
	phaseIdle      phase = iota // before run.prepare
	phasePreparing              // run.prepare is being carried out
	phaseReady                  // the harness has said ready
	phaseSettling               // everything is known, commands that came are answered
	phaseFinished               // the terminal is out
)

// State is one run. Make it with [New]; the zero value is not usable.
type State struct {
	cfg    Config
	ledger *protocol.Ledger
	phase  phase
	at     time.Time // of the current step
	fx     []Effect
	arena  [8]protocol.Event // events of the current step, see event
	used   int

	seq       int64
	stamp     time.Time // last emitted time, never goes backwards
	stampText string

	prepare  *protocol.Command // undecided run.prepare
	waiting  []waiter          // commands that wait for ready, in order
	waitSize int
	eof      bool // the controller has closed its end
	eofDone  bool // and that has taken effect
	draining bool
	broken   bool // stdout is gone

	family       protocol.Family
	messageSeq   int64
	capabilities []byte
	inputClosed  bool // nothing more can be sent to the harness
	queued       int  // commands in the queue for the harness's stdin
	queuedSize   int

	session  protocol.SessionState
	turn     string // active turn
	requests requests

	events     int64 // that the harness caused
	eventBytes int64

	causes    []protocol.Reason
	running   bool // the process was started
	stopping  bool // the ladder has begun
	cancelled bool // run.cancel was accepted
	deaf      bool // what the harness says no longer counts
	exit      *protocol.ExitFact
	outEnded  bool
	errEnded  bool
	torn      *protocol.MessageFault // a torn last line, not judged yet
	gone      *protocol.Containment
	closing   bool
	logs      protocol.LogTail

	result      protocol.Disposition // of the first valid result
	resultSeen  bool
	proposal    []byte // first terminal of the harness, as it was
	proposalOne protocol.TerminalProposal
	proposalOK  bool

	timerGen [Timers]int
	timerOn  [Timers]bool
}

// waiter is a command that waits for the harness to be ready. A repeat is
// answered from the ledger once its original is decided.
type waiter struct {
	command *protocol.Command
	repeat  bool
}

// New returns the state of a run that nothing has happened to.
func New(cfg Config) *State {
	if cfg.CommandHistory <= 0 {
		cfg.CommandHistory = protocol.DefaultCommandHistory
	}
	return &State{
		cfg:      cfg,
		ledger:   protocol.NewLedger(cfg.CommandHistory),
		session:  protocol.SessionNotStarted,
		requests: newRequests(),
	}
}

// Step takes one input and returns what is to be done. The returned slice is
// valid until the next step.
func (s *State) Step(at time.Time, in Input) []Effect {
	s.at = at
	s.fx = s.fx[:0]
	s.used = 0
	if s.phase == phaseFinished {
		return nil
	}
	switch in := in.(type) {
	case *HarnessSaid:
		s.harnessSaid(in)
	case CommandReceived:
		s.commandReceived(in.Command)
	case CommandInvalid:
		s.commandInvalid(in.Fault)
	case ControllerClosed:
		s.controllerClosed()
	case RunnerSignalled:
		s.diagnose(protocol.LevelWarning, codeSignal, "the runner received "+in.Signal)
		s.stop(protocol.ReasonRunnerTerminated)
	case OutputBroken:
		s.broken = true
		s.stop(protocol.ReasonControllerClosed)
	case Noted:
		s.diagnose(in.Level, in.Code, in.Detail)
	default:
		s.harnessFact(in)
	}
	return s.fx
}

// harnessFact takes the inputs about the harness process.
func (s *State) harnessFact(in Input) {
	switch in := in.(type) {
	case WorkspaceChecked:
		s.workspaceChecked(in.Detail)
	case HarnessStarted:
		s.harnessStarted()
	case HarnessStartFailed:
		s.startFailed(in.Detail)
	case HarnessBroke:
		s.harnessBroke(in)
	case HarnessOutputEnded:
		s.outputEnded()
	case HarnessErrorsEnded:
		s.errEnded = true
		s.tryClose()
	case HarnessInputWritten:
		s.queued -= in.Commands
		s.queuedSize -= in.Size
	case HarnessInputBroken:
		s.inputBroken(in.Undelivered)
	case LeaderExited:
		s.leaderExited(in.Exit)
	case TreeGone:
		s.treeGone(in.Containment)
	case HarnessClosed:
		s.harnessClosed(in.Logs)
	case Settled:
		s.settled()
	case TimerFired:
		s.timerFired(in)
	}
}

// Ended reports whether run.terminal has been emitted.
func (s *State) Ended() bool { return s.phase == phaseFinished }

func (s *State) runnerState() protocol.RunnerState {
	switch {
	case s.ending():
		return protocol.RunnerEnding
	case s.draining:
		return protocol.RunnerDraining
	case s.phase == phaseIdle:
		return protocol.RunnerIdle
	case s.phase == phasePreparing:
		return protocol.RunnerPreparing
	}
	return protocol.RunnerReady
}

func (s *State) runState() protocol.RunState {
	switch {
	case s.ending():
		return protocol.RunEnding
	case s.phase == phaseIdle:
		return protocol.RunQueued
	case s.phase == phasePreparing:
		return protocol.RunPreparing
	}
	return protocol.RunRunning
}

// ending reports whether the run can only end from here.
func (s *State) ending() bool { return s.over() || s.cancelled }

// over reports whether every command is rejected from here: the ladder has
// begun, the harness has exited, or there will never be one.
func (s *State) over() bool {
	return s.stopping || s.exit != nil || s.phase >= phaseSettling
}
