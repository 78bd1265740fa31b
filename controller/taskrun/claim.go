package taskrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"prp/controller/bridge"
	"prp/controller/workerclient"
	"prp/controller/workerclient/coretask"
)

// decision is what the fetch and the claim say of a run.
type decision uint8

const (
	// notOurs is a run that somebody else works on, or that has ended.
	notOurs decision = iota
	// ours is a run that this process has claimed.
	ours
	// ended is a run that is to be reported without a start.
	ended
)

// claim fetches the run and claims it. Where no answer comes it tries again; a
// claim whose answer was lost is looked up (row 6).
func (w *worker) claim(ctx context.Context) (*workerclient.WorkerTaskRun, decision, error) {
	began := time.Now()
	pause := w.cfg.Times.FetchFirst
	sent := false
	for {
		b, what, err := w.tryClaim(ctx, &sent)
		if err == nil || !workerclient.Temporary(err) && !errors.Is(err, errUnclear) {
			return b, what, err
		}
		// A run that may be ours is not left as running for a certificate that is
		// being renewed.
		if !sent && workerclient.Untrusted(err) {
			return nil, notOurs, fmt.Errorf("expected a server with a certificate that is trusted here, and that takes ours: %w", err)
		}
		if ctx.Err() != nil {
			return w.lookUp(ctx, sent, err)
		}
		wait := max(pause, retryAfter(err))
		if time.Since(began)+wait > w.cfg.Times.FetchAll {
			return nil, notOurs, fmt.Errorf("the run could not be fetched and claimed within %s: %w", w.cfg.Times.FetchAll, err)
		}
		w.say("%s; trying again in %s", err, wait)
		if bridge.Pause(ctx, wait) != nil {
			return w.lookUp(ctx, sent, err)
		}
		pause = min(2*pause, w.cfg.Times.FetchMost)
	}
}

// lookUp finds out what became of a claim without an answer after the end of ctx:
// a run that was claimed is reported, and not left as running for ever. It is
// tried for as long as a report then would be (row 4). err is why there was no
// answer.
func (w *worker) lookUp(ctx context.Context, sent bool, err error) (*workerclient.WorkerTaskRun, decision, error) {
	err = fmt.Errorf("told to end before the run was claimed: %w", err)
	if !sent {
		return nil, notOurs, err
	}
	within, cancel := bounded(ctx, w.cfg.Times.Report, w.cfg.Times.ReportSignalled)
	defer cancel()
	for pause := w.cfg.Times.Resend; ; pause = min(2*pause, resendMost) {
		b, failed := w.cfg.Updater.GetTaskRun(within, w.cfg.TaskRunID)
		switch {
		case failed == nil && w.mine(b):
			return b, ours, nil
		case failed == nil:
			return nil, notOurs, err
		case !workerclient.Temporary(failed) || bridge.Pause(within, max(pause, retryAfter(failed))) != nil:
			return nil, notOurs, fmt.Errorf("%w; whether the run was claimed is not known: %w", err, failed)
		}
	}
}

// mine tells whether this process has claimed a run (row 6).
func (w *worker) mine(b *workerclient.WorkerTaskRun) bool {
	return b.Run.Status == coretask.StatusRunning && b.Task.SessionID != nil && *b.Task.SessionID == w.session
}

// errUnclear is a claim of which only another fetch tells what became.
var errUnclear = errors.New("the claim was refused after one whose answer was lost")

// errNoRun is an answer of something else than the server of task runs. It is
// told, and not taken for the run of somebody else.
var errNoRun = &workerclient.StatusError{Operation: "fetch the run", Status: http.StatusOK, Message: "expected a run with a status, got none"}

// tryClaim fetches and claims once. sent tells that a claim got no answer.
func (w *worker) tryClaim(ctx context.Context, sent *bool) (*workerclient.WorkerTaskRun, decision, error) {
	b, err := w.cfg.Updater.GetTaskRun(ctx, w.cfg.TaskRunID)
	if err != nil {
		return nil, notOurs, err
	}
	switch {
	case b.Run.Status == "":
		return nil, notOurs, errNoRun
	case *sent && w.mine(b):
		return b, ours, nil
	case b.Run.Status != coretask.StatusScheduled:
		w.say("the run is %q, so it is not for this worker", b.Run.Status)
		return b, notOurs, nil
	case b.CancelRequested, b.PluginError != "":
		return b, ended, nil
	}
	now := time.Now().UTC()
	// What the server does with a claim is not undone by a signal: its answer
	// is waited for.
	err = w.cfg.Updater.PatchTaskRun(context.WithoutCancel(ctx), w.cfg.TaskRunID, workerclient.PatchTaskRunRequest{
		Status: coretask.StatusRunning, SessionID: &w.session, StartedAt: &now,
	})
	switch {
	case err == nil:
		return b, ours, nil
	case statusOf(err) == http.StatusConflict && *sent:
		return nil, notOurs, errUnclear
	case statusOf(err) == http.StatusConflict:
		w.say("another worker has claimed the run")
		return b, notOurs, nil
	}
	*sent = *sent || workerclient.Temporary(err)
	return nil, notOurs, err
}

// statusOf is the HTTP status in an error; 0 where there was no answer.
func statusOf(err error) int {
	if e := new(workerclient.StatusError); errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// retryAfter is how long the server asks to wait.
func retryAfter(err error) time.Duration {
	if e := new(workerclient.StatusError); errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}
