package protocol

import (
	"encoding/json"
	"time"
)

// CommandType names what a controller wants (spec section 2).
type CommandType string

const (
	RunPrepare     CommandType = "run.prepare"
	SessionOpen    CommandType = "session.open"
	TurnStart      CommandType = "turn.start"
	TurnSteer      CommandType = "turn.steer"
	TurnInterrupt  CommandType = "turn.interrupt"
	TurnStop       CommandType = "turn.stop"
	RequestResolve CommandType = "request.resolve"
	SessionClose   CommandType = "session.close"
	RunCancel      CommandType = "run.cancel"
	RunnerDrain    CommandType = "runner.drain"
	RunnerShutdown CommandType = "runner.shutdown"
)

// CommandTypes lists every command type in the order of the spec's table.
func CommandTypes() []CommandType {
	return []CommandType{
		RunPrepare, SessionOpen, TurnStart, TurnSteer, TurnInterrupt, TurnStop,
		RequestResolve, SessionClose, RunCancel, RunnerDrain, RunnerShutdown,
	}
}

// Command is one line from the controller (spec section 2).
type Command struct {
	Schema        string          `json:"schema"`
	CommandID     string          `json:"commandId"`
	ControllerSeq int64           `json:"controllerSeq"`
	Type          CommandType     `json:"type"`
	IssuedAt      time.Time       `json:"issuedAt"`
	DeadlineAt    *time.Time      `json:"deadlineAt,omitempty"`
	Precondition  *Precondition   `json:"precondition,omitempty"`
	Payload       json.RawMessage `json:"payload,omitempty"`

	// Args are the members of the payload that the runner itself reads.
	Args CommandArgs `json:"-"`
	// Digest is that of the canonical JSON of the whole line.
	Digest Digest `json:"-"`
}

// CommandArgs are the members of a command's payload that have a meaning for
// the runner; which of them are set depends on the type.
type CommandArgs struct {
	TurnID    string // turn.start (required); steer, interrupt, stop (optional)
	Text      string // turn.start, turn.steer (required)
	Reason    string // turn.interrupt, turn.stop (optional)
	RequestID string // request.resolve (required)
}

// Precondition lists what has to hold for a command to be taken; each member
// that is given must hold (spec section 2).
type Precondition struct {
	RunnerState  []RunnerState  `json:"runnerState,omitempty"`
	RunState     []RunState     `json:"runState,omitempty"`
	SessionState []SessionState `json:"sessionState,omitempty"`
	// ActiveTurnID is nil where the member is absent; an empty string
	// inside stands for null: no turn may be active.
	ActiveTurnID *string `json:"activeTurnId,omitempty"`
}

// RunnerState is the state of the runner process.
type RunnerState string

const (
	RunnerIdle      RunnerState = "idle"
	RunnerPreparing RunnerState = "preparing"
	RunnerReady     RunnerState = "ready"
	RunnerDraining  RunnerState = "draining"
	RunnerEnding    RunnerState = "ending"
)

// RunState is the state of the run.
type RunState string

const (
	RunQueued    RunState = "queued"
	RunPreparing RunState = "preparing"
	RunRunning   RunState = "running"
	RunEnding    RunState = "ending"
)

// SessionState is the state of the session.
type SessionState string

const (
	SessionNotStarted SessionState = "not_started"
	SessionStarting   SessionState = "starting"
	SessionRunning    SessionState = "running"
	SessionClosed     SessionState = "closed"
	SessionFailed     SessionState = "failed"
)

// Code is a stable word for what went wrong, as it stands on the wire.
type Code string

// Codes of rejected receipts, in the order in which the checks are made
// (spec section 2).
const (
	CodeInvalidJSON            Code = "invalid_json"
	CodeUnsupportedSchema      Code = "unsupported_schema"
	CodeInvalidCommand         Code = "invalid_command"
	CodeLineTooLong            Code = "line_too_long"
	CodeCommandIDReused        Code = "command_id_reused"
	CodeSequenceGap            Code = "sequence_gap"
	CodeDeadlinePassed         Code = "deadline_passed"
	CodePreconditionFailed     Code = "precondition_failed"
	CodeUnsupportedType        Code = "unsupported_type"
	CodeNotPrepared            Code = "not_prepared"
	CodeAlreadyPrepared        Code = "already_prepared"
	CodeSessionNotOpen         Code = "session_not_open"
	CodeSessionAlreadyOpen     Code = "session_already_open"
	CodeTurnActive             Code = "turn_active"
	CodeNoActiveTurn           Code = "no_active_turn"
	CodeTurnMismatch           Code = "turn_mismatch"
	CodeUnknownRequest         Code = "unknown_request"
	CodeRequestAlreadyResolved Code = "request_already_resolved"
	CodeUnsupportedByHarness   Code = "unsupported_by_harness"
	CodeDraining               Code = "draining"
	CodeRunEnding              Code = "run_ending"
	CodeHarnessBackpressure    Code = "harness_backpressure"
	CodeHarnessInputClosed     Code = "harness_input_closed"
	CodeHarnessStartFailed     Code = "harness_start_failed"
	CodeHarnessNotReady        Code = "harness_not_ready"
)

// CommandFault says why a line is not a command. Where both CommandID and
// ControllerSeq could be read, Answerable is true and the runner answers with
// a rejected receipt; else with a diagnostic.
type CommandFault struct {
	Code          Code
	Detail        string
	Answerable    bool
	CommandID     string
	ControllerSeq int64
}

// Error implements error.
func (f *CommandFault) Error() string { return string(f.Code) + ": " + f.Detail }
