package connector

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ending makes the completion, with the lock held.
func (r *run) ending(f func(*translation) event) event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f(r.tr)
}

// unstarted is the completion of a run that came to no start.
func (r *run) unstarted(k cause) event {
	return r.ending(func(t *translation) event { return t.unstarted(stamp(), k) })
}

// settle tells what comes before the completion of a run with a terminal, and
// returns the completion; the lock is held.
func (r *run) settle(t *translation) event {
	if most := r.req.Constraints.MaxTokens; most > 0 && t.tokens < 0 && !r.warned {
		r.warned = true
		r.put(warning(stamp(), "max_tokens_not_checked", "the harness has told no usage, so that max_tokens could not be checked", nil))
	}
	events := t.apply(r.terminal)
	last := len(events) - 1
	for _, ev := range events[:last] {
		r.put(ev)
	}
	return events[last]
}

// finished takes the completion of a run: on disk, then remembered, then told.
func (c *Connector) finished(r *run, end event) {
	status := RunStatus(unquoted(end.payload["status"]))
	r.mu.Lock()
	seq, err := r.spool.put(end, endKey+string(status))
	if err == nil {
		r.spool.setOver()
	}
	r.mu.Unlock()
	if err != nil {
		c.fail(err)
		return
	}
	m := remember(r.req)
	m.Status = string(status)
	if err := c.store.Finish(m, nil); err != nil {
		c.fail(err)
		return
	}
	if r.status == StatusRunning {
		c.running--
	}
	if r.force != nil {
		r.force.Stop()
	}
	r.status = status
	r.stop(nil)
	delete(c.runs, r.req.RunID)
	c.dropAsks(r)
	for _, id := range r.waiters {
		c.tell(runAnswer{Type: typeRunCancelled, RunID: r.req.RunID, Status: status, ReplyTo: id}, r.spool, seq)
	}
	c.clean(r)
	c.ended = time.Now()
	c.nudge()
	c.schedule()
}

// clean removes what is needed no more: the artifacts that the harness was given.
func (c *Connector) clean(r *run) {
	if err := os.RemoveAll(filepath.Join(r.dir, inputsDir)); err != nil {
		c.cfg.Report("a part of a run cannot be removed: " + err.Error())
	}
}

// endOf reads the key of a completion.
func endOf(key string) (RunStatus, bool) {
	status, over := strings.CutPrefix(key, endKey)
	return RunStatus(status), over
}
