package workerclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"prp/controller/workerclient/coreplugin"
	"prp/controller/workerclient/coretask"
)

const (
	// DigestHeader has the digest of a download, "sha256:" and 64 hexadecimal
	// digits.
	DigestHeader = "X-Buildmax-Digest"
	// maxPacked bounds a packed plugin, in bytes (workerclient.md row 9).
	maxPacked = 32 << 20
)

// NewWorkerHTTPUpdater returns an updater for a server.
func NewWorkerHTTPUpdater(config WorkerAPIClientConfig) *WorkerHTTPUpdater {
	return &WorkerHTTPUpdater{BaseURL: config.BaseURL, Token: config.Token, Client: config.Client}
}

func (u *WorkerHTTPUpdater) endpoint() endpoint { return endpoint{u.BaseURL, u.Token, u.Client} }

// GetTaskRun fetches the bundle of a run. It is also the heartbeat and the
// cancel poll.
func (u *WorkerHTTPUpdater) GetTaskRun(ctx context.Context, taskRunID string) (*WorkerTaskRun, error) {
	var b GetTaskRunResponse
	c := call{operation: "fetch the run", method: http.MethodGet, run: taskRunID}
	if _, err := u.endpoint().do(ctx, c, &b, http.StatusOK); err != nil {
		return nil, err
	}
	return b.workerTaskRun(), nil
}

// workerTaskRun is the bundle as a worker uses it.
func (b *GetTaskRunResponse) workerTaskRun() *WorkerTaskRun {
	w := &WorkerTaskRun{
		Run: &coretask.Run{
			ID: b.Run.ID, TaskID: b.Run.TaskID, PreviousTaskRunID: b.Run.PreviousTaskRunID,
			Input: b.Run.Input, Status: b.Run.Status, CreatedAt: b.Run.CreatedAt,
		},
		Task: &coretask.Task{
			ID: b.Task.ID, ConversationID: b.Task.ConversationID, SpaceID: b.Task.SpaceID,
			UserID: b.Task.UserID, SessionID: b.Task.SessionID,
		},
		LLM: b.LLM, AgentInstructions: b.Task.AgentInstructions, SpaceAgentInstructions: b.Task.SpaceAgentInstructions,
		CancelRequested: b.Run.CancelRequested, PluginError: b.PluginError,
	}
	for _, p := range b.Plugins {
		w.Plugins = append(w.Plugins, coreplugin.Pin{Name: p.Name, Version: p.Version, Digest: p.Digest})
	}
	if b.Sandbox != nil {
		w.SandboxNetworkTier, w.SandboxFilesystemTier = b.Sandbox.NetworkTier, b.Sandbox.FilesystemTier
	}
	return w
}

// PatchTaskRun reports a status. 409 for RUNNING means that the claim is lost; a
// terminal status may be reported again, and the first one wins.
func (u *WorkerHTTPUpdater) PatchTaskRun(ctx context.Context, taskRunID string, request PatchTaskRunRequest) error {
	c := call{operation: "report " + request.Status, method: http.MethodPatch, run: taskRunID, body: request}
	_, err := u.endpoint().do(ctx, c, nil, http.StatusOK)
	return err
}

// GetTaskRunSecrets fetches the secret variables of a run; none is nil.
func (u *WorkerHTTPUpdater) GetTaskRunSecrets(ctx context.Context, taskRunID string) (map[string]string, error) {
	var s TaskRunSecretsResponse
	c := call{operation: "fetch the secrets", method: http.MethodGet, run: taskRunID, suffix: "/secrets"}
	_, err := u.endpoint().do(ctx, c, &s, http.StatusOK, http.StatusNotFound)
	return s.Env, err
}

// DownloadPlugin copies the packed file of a plugin to w and compares its hash
// with the pin, and with what the server says. After an error what stands in w
// is not to be used. It blocks as long as bytes come.
func (u *WorkerHTTPUpdater) DownloadPlugin(ctx context.Context, taskRunID string, pin coreplugin.Pin, w io.Writer) error {
	name, err := escaped("plugin name", pin.Name)
	if err != nil {
		return err
	}
	version, err := escaped("plugin version", pin.Version)
	if err != nil {
		return err
	}
	hash := sha256.New()
	c := call{
		operation: fmt.Sprintf("download the plugin %q", pin.Name), method: http.MethodGet,
		run: taskRunID, suffix: "/plugins/" + name + "/" + version + "/download",
	}
	header, err := u.endpoint().download(ctx, c, io.MultiWriter(w, hash), maxPacked)
	if err != nil {
		return err
	}
	got := "sha256:" + hex.EncodeToString(hash.Sum(nil))
	for _, want := range []string{pin.Digest, header.Get(DigestHeader)} {
		if got != want {
			return fmt.Errorf("%s: %w: expected the digest %q, got %q", c.operation, errRefused, want, got)
		}
	}
	return nil
}

// GetWorkspaceBase fetches the checkpoint that the workspace begins with; nil
// without an error is none yet. See [WorkspaceOff] for the error.
func (u *WorkerHTTPUpdater) GetWorkspaceBase(ctx context.Context, taskRunID string) (*WorkspaceBaseResponse, error) {
	var b WorkspaceBaseResponse
	c := call{operation: "fetch the workspace base", method: http.MethodGet, run: taskRunID, suffix: "/workspace-base"}
	status, err := u.endpoint().do(ctx, c, &b, http.StatusOK, http.StatusNoContent)
	if err != nil || status == http.StatusNoContent {
		return nil, err
	}
	return &b, nil
}

// WorkspaceOff reports whether an error of [WorkerHTTPUpdater.GetWorkspaceBase]
// says that the server keeps no workspaces (404 and 503).
func WorkspaceOff(err error) bool {
	status := statusOf(err)
	return status == http.StatusNotFound || status == http.StatusServiceUnavailable
}

// ReportWorkspaceRestore tells how a restore went. It is best effort: an error
// changes nothing.
func (u *WorkerHTTPUpdater) ReportWorkspaceRestore(ctx context.Context, taskRunID string, request WorkspaceRestoreRequest) error {
	c := call{operation: "report the workspace restore", method: http.MethodPost, run: taskRunID, suffix: "/workspace-restore", body: request}
	_, err := u.endpoint().do(ctx, c, nil, http.StatusNoContent, http.StatusOK)
	return err
}

// SeedCheckpoint reports the first checkpoint of a workspace, whose payload is
// stored already.
func (u *WorkerHTTPUpdater) SeedCheckpoint(ctx context.Context, taskRunID string, request SeedCheckpointRequest) (*SeedCheckpointResponse, error) {
	var s SeedCheckpointResponse
	c := call{operation: "report the first checkpoint", method: http.MethodPost, run: taskRunID, suffix: "/workspace-checkpoints", body: request}
	if _, err := u.endpoint().do(ctx, c, &s, http.StatusOK); err != nil {
		return nil, err
	}
	return &s, nil
}

// NewWorkerHTTPStreamSender returns a sender for a server.
func NewWorkerHTTPStreamSender(config WorkerAPIClientConfig) *WorkerHTTPStreamSender {
	return &WorkerHTTPStreamSender{BaseURL: config.BaseURL, Token: config.Token, Client: config.Client}
}

// SendDelta posts a text and returns when the server has answered. It is not
// retried. An empty text is nothing to send.
func (s *WorkerHTTPStreamSender) SendDelta(ctx context.Context, taskRunID, delta string) error {
	if delta == "" {
		return nil
	}
	c := call{operation: "post text", method: http.MethodPost, run: taskRunID, suffix: "/stream", body: StreamDeltaRequest{Delta: delta}}
	_, err := endpoint{s.BaseURL, s.Token, s.Client}.do(ctx, c, nil, http.StatusOK)
	return err
}

// Flush returns nil at once: nothing is kept back here.
func (s *WorkerHTTPStreamSender) Flush(context.Context, string) error { return nil }
