package protocol

import "encoding/json"

// TurnTerminalState is how the last turn ended.
type TurnTerminalState string

const (
	TurnCompleted   TurnTerminalState = "completed"
	TurnFailed      TurnTerminalState = "failed"
	TurnInterrupted TurnTerminalState = "interrupted"
	TurnCancelled   TurnTerminalState = "cancelled"
)

// RunTerminalState is how the run ended.
type RunTerminalState string

const (
	RunSucceeded RunTerminalState = "succeeded"
	RunFailed    RunTerminalState = "failed"
	RunCancelled RunTerminalState = "cancelled"
)

// TerminalProposal is a terminal as a harness proposes it (spec section 4).
type TerminalProposal struct {
	Schema                  string            `json:"schema"`
	TurnTerminalState       TurnTerminalState `json:"turnTerminalState"`
	RunTerminalState        RunTerminalState  `json:"runTerminalState"`
	ReportedWorkDisposition Disposition       `json:"reportedWorkDisposition"`
}

// Terminal is the payload of run.terminal: the one true end of a run (spec
// section 5).
type Terminal struct {
	TerminalProposal
	// HarnessTerminalProposal is the harness's object as it was, or null.
	HarnessTerminalProposal json.RawMessage `json:"harnessTerminalProposal"`
	Reconciliation          Reconciliation  `json:"reconciliation"`
}

// Reason is why a run ended as it did (spec section 5).
type Reason string

const (
	ReasonTurnInterrupted   Reason = "turn_interrupted"
	ReasonRunCancelled      Reason = "run_cancelled"
	ReasonRunnerShutdown    Reason = "runner_shutdown"
	ReasonControllerClosed  Reason = "controller_closed"
	ReasonRunnerTerminated  Reason = "runner_terminated"
	ReasonStartFailed       Reason = "harness_start_failed"
	ReasonNotReady          Reason = "harness_not_ready"
	ReasonProtocolViolation Reason = "harness_protocol_violation"
	ReasonRunTimedOut       Reason = "run_timed_out"
	ReasonBudgetExceeded    Reason = "event_budget_exceeded"
	ReasonSuccess           Reason = "successful_process_and_result"
	ReasonProcessFailed     Reason = "harness_process_failed"
	ReasonResultMissing     Reason = "semantic_result_missing"
)

// Reconciliation records how the runner decided.
type Reconciliation struct {
	Authority              string    `json:"authority"`
	Reason                 Reason    `json:"reason"`
	ProposalValid          bool      `json:"proposalValid"`
	ProposalContradicted   bool      `json:"proposalContradicted"`
	ProcessExit            *ExitFact `json:"processExit"`
	SemanticResultObserved bool      `json:"semanticResultObserved"`
}

// AuthorityRunner is the only authority over a terminal.
const AuthorityRunner = "runner"
