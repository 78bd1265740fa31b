package protocol

import "encoding/json"

// Event is one canonical event of a run (spec section 3).
type Event struct {
	Schema              string          `json:"schema"`
	SourceEventID       string          `json:"sourceEventId"`
	SourceSeq           int64           `json:"sourceSeq"`
	SourceInstanceID    string          `json:"sourceInstanceId"`
	SourceKind          string          `json:"sourceKind"`
	RunID               string          `json:"runId"`
	NormalizedSessionID string          `json:"normalizedSessionId"`
	TurnID              string          `json:"turnId,omitempty"`
	ItemID              string          `json:"itemId,omitempty"`
	EventType           EventType       `json:"eventType"`
	SchemaVersion       int             `json:"schemaVersion"`
	Priority            int             `json:"priority"`
	EmittedAt           string          `json:"emittedAt"`
	Payload             json.RawMessage `json:"payload"`
}

// SourceKindRunner is the only sourceKind that a runner writes.
const SourceKindRunner = "runner"

// EventSchemaVersion is the only schemaVersion that this version writes and
// reads.
const EventSchemaVersion = 1

// TimeLayout is the form of emittedAt: UTC, exactly three decimals.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// EventType names what happened.
type EventType string

const (
	EventPhaseChanged    EventType = "runtime.phase.changed"
	EventWorkspaceReady  EventType = "workspace.ready"
	EventHarnessStarting EventType = "harness.starting"
	EventHarnessReady    EventType = "harness.ready"
	EventHarnessExited   EventType = "harness.exited"
	EventHarnessDiag     EventType = "harness.diagnostic"
	EventRunnerDiag      EventType = "runner.diagnostic"

	EventSessionStarting EventType = "session.starting"
	EventSessionStarted  EventType = "session.started"
	EventSessionResumed  EventType = "session.resumed"
	EventSessionClosed   EventType = "session.closed"
	EventSessionFailed   EventType = "session.failed"

	EventTurnSubmitted   EventType = "turn.submitted"
	EventTurnAccepted    EventType = "turn.accepted"
	EventTurnStarted     EventType = "turn.started"
	EventTurnCompleted   EventType = "turn.completed"
	EventTurnFailed      EventType = "turn.failed"
	EventTurnInterrupted EventType = "turn.interrupted"
	EventTurnCancelled   EventType = "turn.cancelled"

	EventItemStarted   EventType = "item.started"
	EventItemDelta     EventType = "item.delta"
	EventItemCompleted EventType = "item.completed"
	EventItemFailed    EventType = "item.failed"

	EventRequestCreated   EventType = "runtime_request.created"
	EventRequestResolved  EventType = "runtime_request.resolved"
	EventRequestExpired   EventType = "runtime_request.expired"
	EventRequestCancelled EventType = "runtime_request.cancelled"

	EventSandboxMetric EventType = "sandbox.metric"
	EventUsageReported EventType = "usage.reported"

	EventResultProposed EventType = "run.result.proposed"
	EventRunTerminal    EventType = "run.terminal"
)

// Phases of runtime.phase.changed.
const (
	PhaseWorkspacePreparing = "workspace_preparing"
	PhaseExecuting          = "executing"
)

// Origin tells who may make an event of a type.
type Origin uint8

const (
	// OriginUnknown is a type that the protocol does not have.
	OriginUnknown Origin = iota
	// OriginHarness is a type that a harness may send.
	OriginHarness
	// OriginRunner is a type that the runner alone makes.
	OriginRunner
)

// Codes of harness.diagnostic events that the runner makes (spec sections 3
// and 4).
const (
	CodeReservedEventType        Code = "reserved_event_type"
	CodeUnknownEventType         Code = "unknown_event_type"
	CodeDuplicateSemanticResult  Code = "duplicate_semantic_result_ignored"
	CodeInvalidSemanticResult    Code = "invalid_semantic_result"
	CodeDuplicateTerminalIgnored Code = "duplicate_terminal_ignored"
	CodeDuplicateRequestIgnored  Code = "duplicate_request_ignored"
	CodeTooManyRequests          Code = "too_many_requests"
	CodeTornLine                 Code = "torn_line"
)

// Codes of protocol violations of a harness (spec section 4).
const (
	CodeHarnessLineTooLong  Code = "harness_line_too_long"
	CodeHarnessInvalidJSON  Code = "harness_invalid_json"
	CodeHarnessSchema       Code = "harness_unsupported_schema"
	CodeHarnessMessage      Code = "harness_invalid_message"
	CodeHarnessMessageGap   Code = "harness_message_gap"
	CodeHarnessBeforeReady  Code = "harness_message_before_ready"
	CodeHarnessSecondReady  Code = "harness_second_ready"
	CodeHarnessTornLastLine Code = "harness_torn_last_line"
)

// ExitFact is how a process ended. Exactly one of ExitCode and Signal is set;
// a death by a signal has no exit code, never 128 plus the signal. Neither is
// set where the exit is not known: even SIGKILL did not end the process.
type ExitFact struct {
	ExitCode *int `json:"exitCode"`
	Success  bool `json:"success"`
	Signal   *int `json:"signal"`
}

// HarnessExited is the payload of harness.exited.
type HarnessExited struct {
	ProcessExit            ExitFact    `json:"processExit"`
	SemanticResultObserved bool        `json:"semanticResultObserved"`
	Logs                   LogTail     `json:"logs"`
	Containment            Containment `json:"containment"`
}

// LogTail is what is kept of the harness's logs and stderr.
type LogTail struct {
	Lines         []string `json:"lines"`
	RetainedLines int      `json:"retainedLines"`
	RetainedBytes int      `json:"retainedBytes"`
	DroppedLines  int64    `json:"droppedLines"`
}

// Containment says how it was made sure that nothing of the harness is left.
type Containment struct {
	// Means are the means in force for this run, strongest first, for
	// example "cgroup", "guardian", "subreaper", "process_group".
	Means []string `json:"means"`
	// Swept counts the descendants that were found alive and ended after
	// the leader had exited or the ladder had reached SIGKILL.
	Swept int `json:"swept"`
	// Survivors are processes that even SIGKILL did not end.
	Survivors []Survivor `json:"survivors"`
}

// Survivor is a process that SIGKILL did not end within the hard bound.
type Survivor struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	State string `json:"state"`
}
