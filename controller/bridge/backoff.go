package bridge

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoffSteps are the upper bounds of the waits (remote.md rule 2); the last
// one stays.
var backoffSteps = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second,
}

// Backoff gives the waits between attempts: full jitter, so a random time below
// 1, 2, 4, 8, 16, then always 30 s. The zero value is ready for use. It is for
// one goroutine.
type Backoff struct {
	// Steps replace the upper bounds.
	Steps []time.Duration
	// Random gives a number from 0 to n-1; nil is a good source.
	Random func(n int64) int64

	taken int
}

// Next is the wait before the next attempt.
func (b *Backoff) Next() time.Duration {
	steps := b.Steps
	if len(steps) == 0 {
		steps = backoffSteps
	}
	bound := steps[min(b.taken, len(steps)-1)]
	b.taken++
	if bound <= 0 {
		return 0
	}
	random := b.Random
	if random == nil {
		random = rand.Int64N
	}
	return time.Duration(random(int64(bound)))
}

// Reset begins with the shortest wait again.
func (b *Backoff) Reset() { b.taken = 0 }

// Pause waits for d, on the monotonic clock, or until ctx ends: then it returns
// the cause.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
