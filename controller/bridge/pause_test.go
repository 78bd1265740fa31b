package bridge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPause: it lasts as long as it was asked for, and ends with its context.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Pause(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("it returned %v after %s", err, time.Since(began))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the reason")
		time.AfterFunc(time.Second, func() { cancel(why) })
		if err := Pause(ctx, time.Hour); !errors.Is(err, why) || time.Since(began) != time.Minute+time.Second {
			t.Errorf("it returned %v after %s", err, time.Since(began))
		}
	})
}
