package bridge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestStall: every transfer is bounded by what moves (remote.md rule 2).
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := WithStall(t.Context(), time.Minute)
		defer s.Stop()
		for range 5 {
			time.Sleep(59 * time.Second)
			s.Moved()
		}
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatalf("what moves is ended: %v", context.Cause(ctx))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, ErrStalled) {
			t.Errorf("the cause is %v, want %v", err, ErrStalled)
		}
	})
}

// TestStallStop: after Stop the cause is not a stall.
func TestStallStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := WithStall(t.Context(), time.Minute)
		s.Stop()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the cause is %v, want %v", err, context.Canceled)
		}
	})
}
