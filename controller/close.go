package controller

import (
	"bytes"
	"fmt"
	"time"
)

// Means that the ladder may have to use ([Trace.Forced]).
const (
	forcedTerminate = "terminate"
	forcedKill      = "kill"
)

// Close ends the run and returns when it is over. It climbs a ladder: the
// runner's stdin ends (a run that is not over is cancelled by that), and the
// runner is waited for; then SIGTERM, and it is waited for; then SIGKILL, after
// which the runner's guardian ends the harness (spec section 6). It returns an
// error where more than the first rung was needed. Closing twice, or a run that
// is over, is fine. Commands that were queued before are still written.
func (c *Client) Close() error {
	c.beginClose()
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forced != "" {
		return fmt.Errorf("controller: the runner did not end within %s of the end of its stdin: had to %s it",
			c.cfg.CloseGrace, c.forced)
	}
	return nil
}

// Kill ends the runner process at once and returns when the run is over. The
// runner's guardian ends the harness. The trace has no terminal.
func (c *Client) Kill() {
	c.beginClose()
	c.force(forcedKill)
	<-c.done
}

// beginClose starts the ladder; it does not block.
func (c *Client) beginClose() {
	c.closeOnce.Do(func() {
		close(c.closeAsked)
		// The reader calls it without the lock, a hook of a context too.
		c.mu.Lock()
		c.out.end()
		c.notify()
		c.mu.Unlock()
		c.wakeWriter()
	})
}

// closeWasAsked tells whether the ladder was started.
func (c *Client) closeWasAsked() bool {
	select {
	case <-c.closeAsked:
		return true
	default:
		return false
	}
}

// ladder waits until a close is asked for and climbs until the runner is gone.
func (c *Client) ladder() {
	select {
	case <-c.exited:
		return
	case <-c.closeAsked:
	}
	if c.goneWithin(c.cfg.CloseGrace) {
		return
	}
	c.force(forcedTerminate)
	if c.goneWithin(c.cfg.TermGrace) {
		return
	}
	c.force(forcedKill)
}

// force signals the runner. A signal to a process that was waited for is
// refused by package os, so that no stranger is hit.
func (c *Client) force(means string) {
	select {
	case <-c.exited:
		return
	default:
	}
	c.mu.Lock()
	c.forced = means
	c.mu.Unlock()
	if means == forcedKill {
		c.cmd.Process.Kill()
		return
	}
	terminate(c.cmd.Process)
}

func (c *Client) goneWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}

// stderrTail keeps the end of a text, in whole lines where it was cut.
type stderrTail struct {
	limit int // bytes
	buf   []byte
	cut   bool
}

func (t *stderrTail) add(p []byte) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.cut = true
	}
}

// String is what was kept, valid UTF-8, without a torn first line.
func (t *stderrTail) String() string {
	b := t.buf
	if i := bytes.IndexByte(b, '\n'); t.cut && i >= 0 {
		b = b[i+1:]
	}
	return string(bytes.ToValidUTF8(b, []byte("\uFFFD")))
}
