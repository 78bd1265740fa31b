package lifecycle

import (
	"time"

	"prp/protocol"
)

// Input is something that has happened.
type Input interface{ input() }

type (
	// CommandReceived is a well-formed command. The state owns it from now on.
	CommandReceived struct{ Command *protocol.Command }
	// CommandInvalid is a line from the controller that is no command.
	CommandInvalid struct{ Fault *protocol.CommandFault }
	// ControllerClosed is the end of the runner's stdin.
	ControllerClosed struct{}
	// RunnerSignalled is SIGTERM, SIGINT, SIGHUP or SIGQUIT to the runner.
	RunnerSignalled struct{ Signal string }
	// OutputBroken is a stdout that can no longer be written.
	OutputBroken struct{ Detail string }
	// Noted is a fact about the runner's own means that a person should
	// know: a fallback, an ignored fault.
	Noted struct {
		Level  protocol.Level
		Code   protocol.Code
		Detail string
	}

	// WorkspaceChecked answers CheckWorkspace; Detail is empty where the
	// working directory can be used.
	WorkspaceChecked struct{ Detail string }
	// HarnessStarted answers StartHarness: the process exists.
	HarnessStarted struct{}
	// HarnessStartFailed answers StartHarness: there is no process.
	HarnessStartFailed struct{ Detail string }
	// HarnessSaid is a well-formed message. Bytes is the length of its line.
	HarnessSaid struct {
		Message *protocol.HarnessMessage
		Bytes   int
	}
	// HarnessBroke is a line of the harness that violates the protocol.
	// Torn marks a last line that has no end and is not whole, Cut one that
	// has no end because reading was ended by CutOutput.
	HarnessBroke struct {
		Fault protocol.MessageFault
		Torn  bool
		Cut   bool
	}
	// HarnessOutputEnded is the end of the harness's stdout: nothing more
	// will be read from it.
	HarnessOutputEnded struct{}
	// HarnessErrorsEnded is the same for its stderr.
	HarnessErrorsEnded struct{}
	// HarnessInputWritten tells that commands left the queue for the
	// harness's stdin. Size is the sum of their [Effect.Size].
	HarnessInputWritten struct{ Commands, Size int }
	// HarnessInputBroken is a harness's stdin that can no longer be written;
	// Undelivered are the ids of the commands that were queued.
	HarnessInputBroken struct{ Undelivered []string }
	// LeaderExited is the end of the harness process itself.
	LeaderExited struct{ Exit protocol.ExitFact }
	// TreeGone answers StopTree: nothing is left of the harness, but for the
	// survivors that are named.
	TreeGone struct{ Containment protocol.Containment }
	// HarnessClosed answers CloseHarness.
	HarnessClosed struct{ Logs protocol.LogTail }
	// Settled answers Settle: no command that had come is unread.
	Settled struct{}
	// TimerFired is a timer that ran out. An old generation is ignored.
	TimerFired struct {
		Timer Timer
		Gen   int
	}
)

func (CommandReceived) input()     {}
func (CommandInvalid) input()      {}
func (ControllerClosed) input()    {}
func (RunnerSignalled) input()     {}
func (OutputBroken) input()        {}
func (Noted) input()               {}
func (WorkspaceChecked) input()    {}
func (HarnessStarted) input()      {}
func (HarnessStartFailed) input()  {}
func (*HarnessSaid) input()        {}
func (HarnessBroke) input()        {}
func (HarnessOutputEnded) input()  {}
func (HarnessErrorsEnded) input()  {}
func (HarnessInputWritten) input() {}
func (HarnessInputBroken) input()  {}
func (LeaderExited) input()        {}
func (TreeGone) input()            {}
func (HarnessClosed) input()       {}
func (Settled) input()             {}
func (TimerFired) input()          {}

// Timer names a timer; there is at most one of each.
type Timer int

const (
	// TimerReady bounds the time until the harness says ready.
	TimerReady Timer = iota
	// TimerInterrupt bounds the time from an interrupt to the turn's end.
	TimerInterrupt
	// TimerCancel bounds the time from run.cancel to the harness's exit.
	TimerCancel
	// TimerDrain bounds the time from the exit to the end of the pipes.
	TimerDrain
	// TimerExit bounds the time from the end of stdout to the exit.
	TimerExit
	// TimerRun bounds the whole run.
	TimerRun
	// TimerExpiry is the next expiresAt of a pending request.
	TimerExpiry
	// Timers is the number of timers.
	Timers
)

var timerNames = [Timers]string{"ready", "interrupt", "cancel", "drain", "exit", "run", "expiry"}

// String returns the name of the timer.
func (t Timer) String() string { return timerNames[t] }

// Config is what a run is given. Zero durations of graces mean at once; a zero
// InterruptGrace, RunTimeout, MaxEvents or MaxEventBytes means never.
type Config struct {
	RunID, SessionID, RunnerID string
	// WorkingDirectory stands in workspace.ready as it was given.
	WorkingDirectory string
	// DriverKind stands in harness.starting.
	DriverKind string
	// Deterministic stamps events by their sequence number instead of time.
	Deterministic bool
	// FinishOnEOF lets the run go on after the end of stdin.
	FinishOnEOF    bool
	CommandHistory int

	ReadyTimeout   time.Duration
	ShutdownGrace  time.Duration
	CancelGrace    time.Duration
	InterruptGrace time.Duration
	DrainGrace     time.Duration
	ExitGrace      time.Duration
	RunTimeout     time.Duration

	MaxEvents     int64
	MaxEventBytes int64

	// Mask hides secrets in a text of the harness that stands in an event
	// which the runner makes about it; nil hides nothing. The same text has
	// the same result.
	Mask func(string) string `json:"-"`
}
