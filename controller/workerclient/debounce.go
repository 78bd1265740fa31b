package workerclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// defaultInterval is how long text waits for more of it, and defaultBytes
	// how much of it does not wait (workerclient.md row 1).
	defaultInterval = 80 * time.Millisecond
	defaultBytes    = 512
	// maxDelta bounds the text of one post, in bytes (row 1).
	maxDelta = 64 << 10
	// maxWaiting bounds the text that waits for a slow server, in bytes
	// (remote.md rule 10). What comes on top is dropped and counted.
	maxWaiting = 64 << 20
)

// retryWaits are the waits before the three tries that follow a post that failed
// (row 3).
var retryWaits = []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second}

var (
	errStopped = errors.New("workerclient: the sender was stopped")
	errFull    = fmt.Errorf("workerclient: more than %d bytes of text wait for the server", maxWaiting)
)

// DebouncedStreamSender collects text and sends it by Inner after 80 ms or once
// there are 512 bytes of it (workerclient.md rows 1 to 3). Text goes out in
// order, with one call of Inner at a time for each run, at most 64 KiB in one,
// and never cut inside a character.
//
// A call of Inner that fails is tried three times more; then its text is dropped
// and counted. 404 and 409 end the stream of that run. Nothing of that ends the
// run itself.
//
// Inner is set before the first call; the zero values of the others are the
// defaults. It is safe for use by many goroutines. It has no goroutine while
// nothing waits, and none after [DebouncedStreamSender.Stop].
type DebouncedStreamSender struct {
	Inner      StreamSender
	IntervalMs int // milliseconds; overrides 80 when > 0
	MaxBytes   int // overrides 512 when > 0

	mu      sync.Mutex
	runs    map[string]*waiting
	posts   sync.WaitGroup
	dropped int64
	stopped bool
	// base is the context of the calls: a delta that was taken is sent also
	// when the context that it came with has ended.
	base context.Context
	stop context.CancelFunc
}

// waiting is the text of one run.
type waiting struct {
	id  string
	buf []byte
	// taken and done count bytes: those that came, and those that were sent or
	// dropped. What is under way is neither in buf nor done.
	taken, done int64
	// flushTo is up to which byte nothing is to wait any more.
	flushTo int64
	timer   *time.Timer // nil where it does not run
	late    bool        // its time is up
	posting bool
	changed chan struct{} // closed at the next change of done
	err     error         // of the last post that failed
	ended   error         // the server wants no more
}

// run finds the text of a run, or makes it. The lock is held.
func (d *DebouncedStreamSender) run(id string) *waiting {
	if d.base == nil {
		d.base, d.stop = context.WithCancel(context.Background())
		d.runs = map[string]*waiting{}
	}
	w := d.runs[id]
	if w == nil {
		w = &waiting{id: id, changed: make(chan struct{})}
		d.runs[id] = w
	}
	return w
}

// SendDelta takes a text and returns at once. Nil means that it will be sent, or
// dropped and counted where the server fails; an error that it was not taken:
// ctx had ended, the server had ended the stream, too much waits, or the sender
// was stopped.
func (d *DebouncedStreamSender) SendDelta(ctx context.Context, taskRunID, delta string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if delta == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.run(taskRunID)
	var err error
	switch {
	case d.stopped:
		err = errStopped
	case w.ended != nil:
		err = w.ended
	case len(w.buf)+len(delta) > maxWaiting:
		err = errFull
	}
	if err != nil {
		d.dropped += int64(len(delta))
		return err
	}
	w.buf = append(w.buf, delta...)
	w.taken += int64(len(delta))
	if w.timer == nil && !w.late {
		w.timer = time.AfterFunc(d.interval(), func() { d.timeUp(w) })
	}
	d.kick(w)
	return nil
}

func (d *DebouncedStreamSender) interval() time.Duration {
	if d.IntervalMs > 0 {
		return time.Duration(d.IntervalMs) * time.Millisecond
	}
	return defaultInterval
}

func (d *DebouncedStreamSender) bytes() int {
	if d.MaxBytes > 0 {
		return d.MaxBytes
	}
	return defaultBytes
}

func (d *DebouncedStreamSender) timeUp(w *waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.timer != nil { // else a post was faster
		w.timer, w.late = nil, true
		d.kick(w)
	}
}

// Flush blocks until all text that was taken before is sent or dropped, and
// returns the error of the last post that failed since the last Flush. Where ctx
// ends before, it returns that, and the text is still sent.
func (d *DebouncedStreamSender) Flush(ctx context.Context, taskRunID string) error {
	d.mu.Lock()
	w := d.run(taskRunID)
	target := w.taken
	w.flushTo = max(w.flushTo, target)
	d.kick(w)
	for w.done < target {
		changed := w.changed
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("workerclient: flush the text: %w", context.Cause(ctx))
		}
		d.mu.Lock()
	}
	err := w.err
	w.err = nil
	if w.done == w.taken && w.ended == nil {
		delete(d.runs, taskRunID)
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.Inner.Flush(ctx, taskRunID)
}

// Dropped counts the bytes of text that were not sent and never will be.
func (d *DebouncedStreamSender) Dropped() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dropped
}

// Stop drops what waits, ends the call of Inner that is under way, and returns
// when no goroutine is left. No text is taken any more.
func (d *DebouncedStreamSender) Stop() {
	d.mu.Lock()
	d.run("") // so that there is a context
	d.stopped = true
	d.stop()
	for _, w := range d.runs {
		w.disarm()
		d.drop(w, len(w.buf))
	}
	d.mu.Unlock()
	d.posts.Wait()
}

// drop gives up the first n bytes that wait. The lock is held.
func (d *DebouncedStreamSender) drop(w *waiting, n int) {
	w.buf = w.buf[n:]
	d.dropped += int64(n)
	w.finish(n)
}

// finish counts n bytes as done and wakes who waits for them.
func (w *waiting) finish(n int) {
	w.done += int64(n)
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *waiting) disarm() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.late = false
}

// kick starts to post where there is something to post. The lock is held.
func (d *DebouncedStreamSender) kick(w *waiting) {
	if w.posting || d.stopped || d.ready(w) == 0 {
		return
	}
	w.posting = true
	d.posts.Go(func() { d.post(w) })
}

// ready is how many bytes are to be posted now.
func (d *DebouncedStreamSender) ready(w *waiting) int {
	flushing := w.done < w.flushTo
	if !flushing && !w.late && len(w.buf) < d.bytes() {
		return 0
	}
	if len(w.buf) > maxDelta {
		return cutBefore(w.buf, maxDelta)
	}
	if flushing {
		return len(w.buf)
	}
	return wholeCharacters(w.buf)
}

// cutBefore is the last place up to at that is not inside a character.
func cutBefore(b []byte, at int) int {
	for i := at; i > at-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return at // no UTF-8
}

// wholeCharacters is the length of b without a character that has only begun.
func wholeCharacters(b []byte) int {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// post posts as long as there is something to post.
func (d *DebouncedStreamSender) post(w *waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { w.posting = false }()
	for !d.stopped {
		n := d.ready(w)
		if n == 0 {
			return
		}
		text, whole := string(w.buf[:n]), len(w.buf) <= maxDelta
		w.buf = w.buf[n:]
		if whole {
			// At most the beginning of a character is left, which waits for
			// its rest. What a bound has cut off has waited as long as the
			// text before it.
			w.disarm()
		}
		d.mu.Unlock()
		err := d.send(w.id, text)
		d.mu.Lock()
		if err != nil {
			d.dropped += int64(n)
			w.err = err
		}
		w.finish(n)
		if status := statusOf(err); status == http.StatusNotFound || status == http.StatusConflict {
			w.ended = err
			w.disarm()
			d.drop(w, len(w.buf))
		}
	}
}

// send calls Inner until it succeeds, or is not worth another try.
func (d *DebouncedStreamSender) send(id, text string) error {
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeoutCause(d.base, callTimeout, errDeadline)
		err := d.Inner.SendDelta(ctx, id, text)
		cancel()
		if err == nil || try == len(retryWaits) || !Temporary(err) || d.base.Err() != nil {
			return err
		}
		wait := time.NewTimer(retryWaits[try])
		select {
		case <-wait.C:
		case <-d.base.Done():
			wait.Stop()
			return err
		}
	}
}
