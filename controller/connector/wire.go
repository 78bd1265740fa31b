package connector

import (
	"encoding/json"
	"fmt"
	"time"

	"prp/protocol"
)

// ProtocolVersion is what register says.
const ProtocolVersion = 1

// Bounds of what a server may send.
const (
	// maxID bounds ids, in characters. Those of runs are also the runner's.
	maxID = protocol.MaxRunIDLen
	// maxGoal bounds a goal, in characters: with its bundle it has to fit into
	// a command of 1 MiB (prp.md section 1).
	maxGoal = 128 << 10
	// maxBundle bounds the bundle of a handoff, in bytes (row 13).
	maxBundle = 64 << 10
	// maxContext bounds a context_bundle, in bytes.
	maxContext = 512 << 10
)

// Types of frames (seed; row 2).
const (
	typeRegister        = "register"
	typeRegisterAck     = "register_ack"
	typeHeartbeat       = "heartbeat"
	typeHeartbeatAck    = "heartbeat_ack"
	typeCapabilities    = "capabilities"
	typeCreateRun       = "create_run"
	typeRunAccepted     = "run_accepted"
	typeRunEvent        = "run_event"
	typeEventAck        = "event_ack"
	typeCancelRun       = "cancel_run"
	typeRunCancelled    = "run_cancelled"
	typeHandoff         = "handoff"
	typeHandoffAck      = "handoff_ack"
	typeUpload          = "upload_artifact"
	typeUploaded        = "artifact_uploaded"
	typeDownload        = "download_artifact"
	typeUploadURL       = "upload_artifact_ack"
	typeDownloadURL     = "download_artifact_ack"
	typeApprovalRequest = "approval_request"
	typeApprovalGranted = "approval_granted"
	typeApprovalDenied  = "approval_denied"
	typeError           = "error"
)

// Code is the number of an error (seed).
type Code int

// Codes.
const (
	CodeInvalid       Code = 4001
	CodeUnknownType   Code = 4002
	CodeAgentNotFound Code = 4003
	CodeRunNotFound   Code = 4004
	CodeBusy          Code = 4005
	CodeQuota         Code = 4006
	CodeUnauthorized  Code = 4007
	CodeDenied        Code = 4008
	CodeInternal      Code = 5001
	CodeAdapter       Code = 5002
)

// busyRetry is when a busy agent may be asked again (seed: retry policy).
const busyRetry = 60 * time.Second

// Error is a frame of type error (row 15). It implements error.
type Error struct {
	Type    string `json:"type"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	ReplyTo string `json:"reply_to,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	// Retryable tells whether the same request may succeed later, and
	// RetryAfterS after how many seconds.
	Retryable   bool           `json:"retryable"`
	RetryAfterS int            `json:"retry_after_s,omitempty"`
	Details     map[string]any `json:"details,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// fault makes an error with what its code says about a retry.
func fault(code Code, format string, args ...any) *Error {
	e := &Error{Type: typeError, Code: code, Message: fmt.Sprintf(format, args...), Details: map[string]any{}}
	switch code {
	case CodeBusy:
		e.Retryable, e.RetryAfterS = true, int(busyRetry/time.Second)
	case CodeInternal, CodeAdapter:
		e.Retryable = true
	}
	return e
}

func badField(field, format string, args ...any) *Error {
	e := fault(CodeInvalid, field+": "+format, args...)
	e.Details["field"] = field
	return e
}

// register is the first frame of a session (row 3).
type register struct {
	Type            string           `json:"type"`
	ID              string           `json:"id"`
	ConnectorID     string           `json:"connector_id"`
	Version         string           `json:"version"`
	Host            string           `json:"host"`
	Adapters        []string         `json:"adapters"`
	ProtocolVersion int              `json:"protocol_version"`
	InstanceID      string           `json:"instance_id"`
	Resume          map[string]int64 `json:"resume"`
}

// registerAck is the server's answer.
type registerAck struct {
	ConnectorID     string            `json:"connector_id"`
	ServerTime      string            `json:"server_time"`
	Config          serverConfig      `json:"config"`
	Acked           map[string]int64  `json:"acked"`
	PendingCommands []json.RawMessage `json:"pending_commands"`
}

// serverConfig is what a server may set (row 4); other members are ignored.
type serverConfig struct {
	HeartbeatIntervalS float64 `json:"heartbeat_interval_s"`
	MaxConcurrentRuns  int     `json:"max_concurrent_runs"`
	MaxFrameBytes      int64   `json:"max_frame_bytes"`
	EventBatchMS       float64 `json:"event_batch_ms"`
}

// Metrics is what a heartbeat tells. What is not known is nil and is left out
// (row 5).
type Metrics struct {
	CPUPct     *float64 `json:"cpu_pct,omitempty"`
	MemoryMB   *float64 `json:"memory_mb,omitempty"`
	ActiveRuns int      `json:"active_runs"`
	QueuedRuns int      `json:"queued_runs"`
}

type heartbeat struct {
	Type        string  `json:"type"`
	ID          string  `json:"id"`
	ConnectorID string  `json:"connector_id"`
	Timestamp   string  `json:"timestamp"`
	Mode        Mode    `json:"mode"`
	Metrics     Metrics `json:"metrics"`
}

// Mode is whether new work is taken.
type Mode string

// Modes. Stopped is the emergency stop (row 19).
const (
	ModeServing  Mode = "serving"
	ModeDraining Mode = "draining"
	ModeStopped  Mode = "stopped"
)

type capabilities struct {
	Type        string         `json:"type"`
	ID          string         `json:"id"`
	ConnectorID string         `json:"connector_id"`
	Agents      []offeredAgent `json:"agents"`
}

// offeredAgent is what a server sees of an agent (seed).
type offeredAgent struct {
	AgentID  string   `json:"agent_id"`
	Runtime  string   `json:"runtime"`
	Model    string   `json:"model"`
	Tools    []string `json:"tools"`
	MaxTurns int      `json:"max_turns"`
	Supports []string `json:"supports"`
}

// RunStatus is where a run stands.
type RunStatus string

// Statuses. Those from StatusSucceeded on are ends; unknown is a run whose end
// nobody has seen.
const (
	StatusQueued    RunStatus = "queued"
	StatusRunning   RunStatus = "running"
	StatusSucceeded RunStatus = "succeeded"
	StatusFailed    RunStatus = "failed"
	StatusCancelled RunStatus = "cancelled"
	StatusUnknown   RunStatus = "unknown"
)

// runAnswer is run_accepted and run_cancelled.
type runAnswer struct {
	Type    string    `json:"type"`
	RunID   string    `json:"run_id"`
	Status  RunStatus `json:"status"`
	ReplyTo string    `json:"reply_to,omitempty"`
}

// createRun is a run that a server wants.
type createRun struct {
	RunID       string          `json:"run_id"`
	AgentID     string          `json:"agent_id"`
	Goal        string          `json:"goal"`
	Context     json.RawMessage `json:"context_bundle,omitempty"`
	Handoff     json.RawMessage `json:"handoff,omitempty"`
	Constraints constraints     `json:"constraints"`
	// Artifacts are those of the context_bundle.
	Artifacts []string `json:"-"`
	digest    string
}

// constraints bound a run (row 8). Nil tools are all that are offered.
type constraints struct {
	MaxTokens      int64    `json:"max_tokens,omitempty"`
	TimeoutSeconds float64  `json:"timeout_seconds,omitempty"`
	Tools          []string `json:"tools,omitempty"`
}

// limit is the time that a run may take, 0 where it has no limit.
func (k constraints) limit() time.Duration {
	if k.TimeoutSeconds <= 0 {
		return 0
	}
	return max(time.Millisecond, time.Duration(k.TimeoutSeconds*float64(time.Second)))
}

// maxTimeout bounds timeout_seconds: a week.
const maxTimeout = 7 * 24 * time.Hour
