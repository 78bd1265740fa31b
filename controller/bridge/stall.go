package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrStalled is the end of a transfer that moves nothing.
var ErrStalled = errors.New("the other side has stopped to move")

// Stall ends a context once nothing has moved for a time. A transfer has no
// deadline that fits every size: a large one may take long, but it moves.
type Stall struct {
	wait   time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// WithStall returns a context that ends with [ErrStalled] as its cause when
// [Stall.Moved] was not called for wait. The caller calls [Stall.Stop].
func WithStall(ctx context.Context, wait time.Duration) (context.Context, *Stall) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Stall{wait: wait, cancel: cancel}
	s.timer = time.AfterFunc(wait, func() { cancel(fmt.Errorf("not a byte for %v: %w", wait, ErrStalled)) })
	return ctx, s
}

// Moved begins the wait anew. It may be called by many goroutines.
func (s *Stall) Moved() { s.timer.Reset(s.wait) }

// Stop ends the context and frees its timer.
func (s *Stall) Stop() {
	s.timer.Stop()
	s.cancel(nil)
}
