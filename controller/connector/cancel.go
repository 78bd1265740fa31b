package connector

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"prp/controller"
	"prp/controller/bridge"
)

// cancel takes a cancel_run (row 11). It is answered when the tree is gone.
func (c *Connector) cancel(in inbound) {
	if r := c.runs[in.runID]; r != nil {
		r.waiters = append(r.waiters, in.id)
		c.end(r, nil)
		return
	}
	known, verdict := c.store.Lookup(in.runID, "")
	if verdict == bridge.New {
		c.refuseTo(in, fault(CodeRunNotFound, "there is no run %q", in.runID))
		return
	}
	out := runAnswer{Type: typeRunCancelled, RunID: in.runID, Status: statusKnown(known), ReplyTo: in.id}
	if s := c.spoolOf(in.runID); s != nil {
		c.tell(out, s, s.out.Last())
		return
	}
	c.tell(out, nil, 0)
}

// end ends a run; why is a cause of ours, nil for a cancel.
func (c *Connector) end(r *run, why *cause) {
	if i := slices.Index(c.queue, r); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
		if why == nil {
			why = &cause{status: StatusCancelled, reason: reasonCancelled, message: "the run was cancelled before it began"}
		}
		c.finished(r, r.unstarted(*why))
		return
	}
	if why != nil {
		r.mu.Lock()
		if r.tr.cause == nil {
			r.tr.cause = why
		}
		r.mu.Unlock()
	}
	if r.cancelled {
		return
	}
	r.cancelled = true
	r.stop(errCancelled)
	if r.client != nil {
		r.cancelClient()
	}
}

// attach gives the loop a run's client.
func (r *run) attach(client *controller.Client) {
	r.client = client
	switch {
	case errors.Is(context.Cause(r.ctx), errLeft):
		r.leave()
	case r.cancelled:
		r.cancelClient()
	}
}

// cancelClient asks the runner to end the run, and ends the runner where that
// takes too long; then its guardian ends the tree.
func (r *run) cancelClient() {
	client := r.client
	r.force = time.AfterFunc(r.c.cfg.Times.Force, client.Kill)
	r.c.jobs.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), r.c.cfg.Times.Force)
		defer stop()
		if client.Cancel(ctx) != nil {
			client.Close() // rejected is a run that is ending
		}
	})
}

// leave ends a run since the connector ends.
func (r *run) leave() {
	r.stop(errLeft)
	if r.client != nil {
		client := r.client
		r.c.jobs.Go(func() { client.Close() })
	}
}

// Stop writes the order for the emergency stop into a connector's folder, or
// takes it back (row 19). A connector that runs there obeys within a moment, one
// that is started later from its start on.
func Stop(dir string, on bool) error {
	path := filepath.Join(dir, stoppedFile)
	if !on {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return writeWhole(path, nil)
}

// stopAll ends every run and refuses new work, with a server or without.
func (c *Connector) stopAll() {
	c.mode = ModeStopped
	c.cfg.Report("stopped: every run ends, and new work is refused until 'prp connect --resume'")
	var all []*run
	for _, r := range c.runs {
		all = append(all, r)
	}
	for _, r := range all {
		c.end(r, stoppedAll())
	}
}

// stoppedAll is why a run ends at the emergency stop.
func stoppedAll() *cause {
	return &cause{
		status: StatusCancelled, reason: reasonStopAll, message: "the operator has stopped every run of this connector",
	}
}
