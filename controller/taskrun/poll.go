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
	// hurried is the observation of a poll that [poller.hurry] asked for.
	hurried bool
}

// poller polls until its context ends.
type poller struct {
	w *worker
	// seen has each poll's observation.
	seen chan observation
	// now asks for a poll at once.
	now chan struct{}
	// last is when the server answered last, lost that it does not any more.
	last time.Time
	lost bool
}

// newPoller is for a run that was just claimed: the server has answered.
func newPoller(w *worker) *poller {
	return &poller{w: w, seen: make(chan observation), now: make(chan struct{}, 1), last: time.Now()}
}

// contact tells a person when the server goes away and comes back, each once
// (remote.md rule 2). An answer is contact, whatever it says; 502 to 504 are
// those of a proxy whose server is away.
func (p *poller) contact(err error) {
	away := err != nil && (statusOf(err) == 0 || statusOf(err) >= http.StatusBadGateway)
	switch {
	case away && !p.lost:
		p.w.say("no contact with the server since %s: %s; the run goes on", p.last.UTC().Format(time.RFC3339), err)
	case !away && p.lost:
		p.w.say("the server answers again, after %s", time.Since(p.last).Round(time.Second))
	}
	if !away {
		p.last = time.Now()
	}
	p.lost = away
}

// jittered is a time around d, so that many workers do not poll together.
func jittered(d time.Duration) time.Duration {
	return d - d/5 + time.Duration(rand.Int64N(int64(2*d/5)+1))
}

func (p *poller) run(ctx context.Context) {
	every := p.w.cfg.Times.Poll
	for {
		timer := time.NewTimer(jittered(every))
		hurried := false
		select {
		case <-timer.C:
		case <-p.now:
			timer.Stop()
			hurried = true
		case <-ctx.Done():
			timer.Stop()
			return
		}
		b, err := p.w.cfg.Updater.GetTaskRun(ctx, p.w.cfg.TaskRunID)
		o := observation{hurried: hurried}
		if err == nil {
			o.cancelled, o.taken = b.CancelRequested, coretask.IsTerminal(b.Run.Status)
		}
		if ctx.Err() != nil {
			return // the end of the polls is no loss
		}
		p.contact(err)
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
