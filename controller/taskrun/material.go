package taskrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"prp/controller/checkpoint"
	"prp/controller/plugin"
	"prp/controller/sandbox"
	"prp/controller/workerclient"
)

// Words of a restore report; the seed names the member and no values.
const (
	restored      = "restored"
	restoreFailed = "failed"
)

// confine holds the harness to the tiers of the run (row 10).
func (w *worker) confine(_ context.Context, r *prepared) error {
	plan, err := sandbox.Policy{
		Network: r.b.SandboxNetworkTier, Filesystem: r.b.SandboxFilesystemTier,
		Workspace: r.space, Private: []string{r.home, r.temp},
		Programs:   append([]string{r.pluginsDir}, w.cfg.Programs...),
		SharedRead: w.cfg.SharedRead, ExternalWrite: w.cfg.ExternalWrite,
		AllowUnsandboxed: w.cfg.AllowUnsandboxed,
	}.Plan()
	if err != nil {
		return err
	}
	for _, axis := range []struct {
		name string
		sandbox.Axis
	}{{"network", plan.Report.Network}, {"filesystem", plan.Report.Filesystem}} {
		if !axis.Enforced {
			w.say("%s tier %s", axis.name, axis)
		}
	}
	r.harness = plan.Wrap(w.cfg.Sandboxed, w.cfg.Harness)
	return nil
}

// plugins fetches and unpacks exactly the pinned plugins (row 9).
func (w *worker) plugins(ctx context.Context, r *prepared) error {
	for i, pin := range r.b.Plugins {
		if err := plugin.CheckDigest(pin.Digest); err != nil {
			return fmt.Errorf("%q: %w", pin.Name, err)
		}
		var packed bytes.Buffer
		err := w.again(ctx, func() error {
			packed.Reset()
			return w.cfg.Updater.DownloadPlugin(ctx, w.cfg.TaskRunID, pin, &packed)
		})
		if err != nil {
			return err
		}
		// Names come from the server, so that they are no path.
		dir := filepath.Join(r.pluginsDir, strconv.Itoa(i+1))
		if _, err := plugin.Install(ctx, &packed, pin.Digest, dir); err != nil {
			return fmt.Errorf("unpack the plugin %q: %w", pin.Name, err)
		}
		r.plugins = append(r.plugins, installed{Name: pin.Name, Version: pin.Version, Path: dir})
	}
	return nil
}

// workspace gives the run the workspace that the server knows, or tells the
// server of the one that is here (row 11).
func (w *worker) workspace(ctx context.Context, r *prepared) error {
	var base *workerclient.WorkspaceBaseResponse
	err := w.again(ctx, func() (err error) {
		base, err = w.cfg.Updater.GetWorkspaceBase(ctx, w.cfg.TaskRunID)
		return err
	})
	switch {
	case workerclient.WorkspaceOff(err):
		return nil
	case err != nil:
		return err
	case base == nil && w.cfg.Store == nil:
		w.say("the server keeps workspaces, and this worker has no place for their checkpoints")
		return nil
	case base == nil:
		r.kept = true
		return w.seed(ctx, r)
	case w.cfg.Store == nil:
		err = errors.New("expected a place for checkpoints, since the run begins with one, got none")
	default:
		r.kept = true
		err = w.restore(ctx, r, *base)
	}
	tell := workerclient.WorkspaceRestoreRequest{Status: restored}
	if err != nil {
		tell = workerclient.WorkspaceRestoreRequest{Status: restoreFailed, Error: w.mask.Load().String(err.Error())}
	}
	if tellErr := w.cfg.Updater.ReportWorkspaceRestore(ctx, w.cfg.TaskRunID, tell); tellErr != nil {
		w.say("%s", tellErr) // best effort
	}
	return err
}

// seed stores the first checkpoint of a workspace.
func (w *worker) seed(ctx context.Context, r *prepared) error {
	p, err := checkpoint.Save(ctx, w.cfg.Store, r.space, r.dir)
	if err != nil {
		return fmt.Errorf("capture the workspace: %w", err)
	}
	return w.again(ctx, func() error {
		_, err := w.cfg.Updater.SeedCheckpoint(ctx, w.cfg.TaskRunID, workerclient.SeedCheckpointRequest{
			PayloadFormat: p.Format, PayloadSHA256: p.SHA256, SizeBytes: p.SizeBytes,
			UncompressedBytes: p.UncompressedBytes, EntryCount: p.EntryCount,
		})
		return err
	})
}

// restore puts a checkpoint in the place of the workspace. One of our own is
// replaced when all of the checkpoint is there; what a person has named has to be
// empty.
func (w *worker) restore(ctx context.Context, r *prepared, base workerclient.WorkspaceBaseResponse) error {
	want := checkpoint.Payload{
		Format: base.PayloadFormat, SHA256: base.PayloadSHA256, SizeBytes: base.SizeBytes,
		UncompressedBytes: base.UncompressedBytes, EntryCount: base.EntryCount,
	}
	to := r.space
	if w.cfg.Workspace == "" {
		to = filepath.Join(r.dir, freshDir)
	}
	err := checkpoint.Load(ctx, w.cfg.Store, want, to)
	if err == nil && to != r.space {
		err = w.replace(r)
	}
	if err != nil {
		return fmt.Errorf("restore the workspace: %w", err)
	}
	return nil
}

// capture stores the workspace as the run left it. That it fails changes nothing
// of the run.
func (w *worker) capture(ctx context.Context, r *prepared, f *facts) {
	if !r.kept {
		return
	}
	p, err := checkpoint.Save(ctx, w.cfg.Store, r.space, r.dir)
	if err != nil {
		w.say("the workspace is not captured: %s", err)
		return
	}
	f.checkpoint = &workerclient.WorkspaceCheckpointDescriptor{
		PayloadFormat: p.Format, PayloadSHA256: p.SHA256, SizeBytes: p.SizeBytes,
		UncompressedBytes: p.UncompressedBytes, EntryCount: p.EntryCount,
	}
}
