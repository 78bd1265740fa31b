package workerclient

import (
	"context"
	"net/http"
	"time"

	"prp/controller/workerclient/coreplugin"
	"prp/controller/workerclient/coretask"
)

// GetTaskRunResponse is the bundle of a run: the answer to GET.
type GetTaskRunResponse struct {
	Run  TaskRunRun  `json:"run"`
	Task TaskRunTask `json:"task"`
	LLM  *TaskRunLLM `json:"llm,omitempty"`
	// Plugins is a finished list: a worker resolves nothing itself.
	Plugins []TaskRunPlugin `json:"plugins,omitempty"`
	// PluginError is why the run has to fail before it starts.
	PluginError string `json:"plugin_error,omitempty"`
	// Sandbox has the tiers of the run; nil is the strictest of both.
	Sandbox *TaskRunSandbox `json:"sandbox,omitempty"`
}

// TaskRunRun is the run in a bundle.
type TaskRunRun struct {
	ID                string  `json:"id"`
	TaskID            string  `json:"task_id"`
	PreviousTaskRunID *string `json:"previous_task_run_id,omitempty"`
	Input             string  `json:"input"`
	Status            string  `json:"status"`
	// CancelRequested is what a worker polls for: the server never pushes it.
	CancelRequested bool      `json:"cancel_requested,omitempty"`
	CreatedAt       time.Time `json:"created_at"`
}

// TaskRunTask is the task in a bundle.
type TaskRunTask struct {
	ID             string  `json:"id"`
	ConversationID string  `json:"conversation_id"`
	SpaceID        string  `json:"space_id"`
	UserID         string  `json:"user_id"`
	SessionID      *string `json:"session_id,omitempty"`
	// AgentInstructions and SpaceAgentInstructions are text of users: they
	// never stand in arguments, which every process of the machine can read.
	AgentInstructions              string `json:"agent_instructions,omitempty"`
	SpaceAgentInstructions         string `json:"space_agent_instructions,omitempty"`
	SpaceAgentInstructionsRevision int    `json:"space_agent_instructions_revision,omitempty"`
}

// TaskRunLLM is how a run reaches a model.
type TaskRunLLM struct {
	// Transport is "direct" or "buildmax".
	Transport string `json:"transport"`
	// Model is the catalog model; empty is the default of the deployment.
	Model string `json:"model,omitempty"`
	// ContextWindow is in tokens; 0 is no windowing.
	ContextWindow int `json:"context_window,omitempty"`
	// CallTimeout bounds one call, in seconds; 0 is the client's default.
	CallTimeout int `json:"call_timeout,omitempty"`
}

// TaskRunPlugin is a plugin in a bundle.
type TaskRunPlugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

// TaskRunSandbox has the tiers of a run (workerclient.md row 10). An empty or
// unknown one is the strictest.
type TaskRunSandbox struct {
	NetworkTier    string `json:"network_tier,omitempty"`
	FilesystemTier string `json:"filesystem_tier,omitempty"`
}

// PatchTaskRunRequest reports a claim or an end. Nil members are left out.
type PatchTaskRunRequest struct {
	Status    string     `json:"status"`
	SessionID *string    `json:"session_id,omitempty"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Output    *string    `json:"output,omitempty"`
	// Structured is a JSON value as text.
	Structured       *string `json:"structured,omitempty"`
	ErrorMessage     *string `json:"error_message,omitempty"`
	PromptTokens     *int    `json:"prompt_tokens,omitempty"`
	CompletionTokens *int    `json:"completion_tokens,omitempty"`
	// TracePath is relative, with "/" between its parts.
	TracePath *string `json:"trace_path,omitempty"`
	// WorkspaceCheckpoint is the state of the workspace after the run, nil
	// where none was captured.
	WorkspaceCheckpoint *WorkspaceCheckpointDescriptor `json:"workspace_checkpoint,omitempty"`
}

// StreamDeltaRequest is a piece of text of a run.
type StreamDeltaRequest struct {
	Delta string `json:"delta"`
}

// TaskRunSecretsResponse has the variables of the harness that are secret.
type TaskRunSecretsResponse struct {
	Env map[string]string `json:"env,omitempty"`
}

// WorkspaceBaseResponse is the checkpoint that a workspace begins with.
type WorkspaceBaseResponse struct {
	CheckpointID      string `json:"checkpoint_id"`
	PayloadFormat     string `json:"payload_format"`
	PayloadSHA256     string `json:"payload_sha256"`
	SizeBytes         int64  `json:"size_bytes"`
	UncompressedBytes int64  `json:"uncompressed_bytes"`
	EntryCount        int64  `json:"entry_count"`
}

// WorkspaceRestoreRequest tells how a restore went.
type WorkspaceRestoreRequest struct {
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
}

// SeedCheckpointRequest describes the first checkpoint of a workspace.
type SeedCheckpointRequest struct {
	PayloadFormat     string `json:"payload_format"`
	PayloadSHA256     string `json:"payload_sha256"`
	SizeBytes         int64  `json:"size_bytes"`
	UncompressedBytes int64  `json:"uncompressed_bytes"`
	EntryCount        int64  `json:"entry_count"`
}

// SeedCheckpointResponse names the checkpoint that the server made of it.
type SeedCheckpointResponse struct {
	CheckpointID string `json:"checkpoint_id"`
}

// WorkspaceCheckpointDescriptor describes the checkpoint of an end.
type WorkspaceCheckpointDescriptor struct {
	PayloadFormat     string `json:"payload_format"`
	PayloadSHA256     string `json:"payload_sha256"`
	SizeBytes         int64  `json:"size_bytes"`
	UncompressedBytes int64  `json:"uncompressed_bytes"`
	EntryCount        int64  `json:"entry_count"`
}

// WorkerTaskRun is a bundle as a worker uses it.
type WorkerTaskRun struct {
	Run  *coretask.Run
	Task *coretask.Task
	// LLM is how the run reaches a model; nil is direct.
	LLM *TaskRunLLM
	// AgentInstructions and SpaceAgentInstructions belong to this run, not to
	// the task: an edited text applies to the next one.
	AgentInstructions      string
	SpaceAgentInstructions string
	// CancelRequested is true where the run is to be ended without a start.
	CancelRequested bool
	// Plugins are exactly what a worker fetches and verifies.
	Plugins []coreplugin.Pin
	// PluginError is why the run has to fail before it starts.
	PluginError string
	// The tiers are empty where the server names none: the strictest.
	SandboxNetworkTier    string
	SandboxFilesystemTier string
}

// StreamSender sends the text of a run, in order.
type StreamSender interface {
	// SendDelta sends a text, or takes it to be sent.
	SendDelta(ctx context.Context, taskRunID, delta string) error
	// Flush blocks until everything that was taken has been sent or is given
	// up.
	Flush(ctx context.Context, taskRunID string) error
}

// WorkerAPIClientConfig says where the server is. Client nil is a client of
// empty [TLSClientOptions].
type WorkerAPIClientConfig struct {
	// BaseURL is the address before "/api/worker/...".
	BaseURL string
	// Token is the run token, sent as a bearer token.
	Token  string
	Client *http.Client
}

// WorkerHTTPUpdater makes every call but the stream. Its methods are safe for
// use by many goroutines.
type WorkerHTTPUpdater struct {
	BaseURL string
	Token   string
	Client  *http.Client
}

// WorkerHTTPStreamSender posts each delta at once. Its methods are safe for use
// by many goroutines; the order is that of the calls.
type WorkerHTTPStreamSender struct {
	BaseURL string
	Token   string
	Client  *http.Client
}

// TLSClientOptions name the files of a secured link (workerclient.md row 12).
type TLSClientOptions struct {
	// CAFile replaces the roots of the system.
	CAFile string
	// ClientCertFile and ClientKeyFile are a client certificate; both or none.
	ClientCertFile string
	ClientKeyFile  string
}
