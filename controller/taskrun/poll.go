package taskrun

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"prp/controller/workerclient/coretask"
)

// observation is what a poll has seen. A poll that failed and a 404 say nothing
// (workerclient.md, the worker's order).
type observation struct {
	// cancelled: somebody asked for the end. taken: the run has an end that this
	// process did not report.
	cancelled, taken bool
}

// poller polls until its context ends.
type poller struct {
	w *worker
	// seen has each poll's observation.
	seen chan observation
	// now asks for a poll at once.
	now chan struct{}
}

func newPoller(w *worker) *poller {
	return &poller{w: w, seen: make(chan observation), now: make(chan struct{}, 1)}
}

// jittered is a time around d, so that many workers do not poll together.
func jittered(d time.Duration) time.Duration {
	return d - d/5 + time.Duration(rand.Int64N(int64(2*d/5)+1))
}

func (p *poller) run(ctx context.Context) {
	every := p.w.cfg.Times.Poll
	for {
		timer := time.NewTimer(jittered(every))
		select {
		case <-timer.C:
		case <-p.now:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
		b, err := p.w.cfg.Updater.GetTaskRun(ctx, p.w.cfg.TaskRunID)
		var o observation
		if err == nil {
			o = observation{cancelled: b.CancelRequested, taken: coretask.IsTerminal(b.Run.Status)}
		}
		refused := statusOf(err) == http.StatusUnauthorized || statusOf(err) == http.StatusForbidden
		if refused && every == p.w.cfg.Times.Poll {
			p.w.say("%s; the run goes on, and is asked about every %s", err, p.w.cfg.Times.SlowPoll)
		}
		switch {
		case refused:
			every = p.w.cfg.Times.SlowPoll // row 8
		case err == nil:
			every = p.w.cfg.Times.Poll
		}
		select {
		case p.seen <- o:
		case <-ctx.Done():
			return
		}
	}
}

// hurry asks for a poll at once.
func (p *poller) hurry() {
	select {
	case p.now <- struct{}{}:
	default: // one is asked for already
	}
}
