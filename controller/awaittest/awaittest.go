package awaittest

import (
	"testing"
	"time"
)

// Bound is far longer than anything takes that a test waits for, also on a loaded
// machine and with the race detector.
const Bound = time.Minute

// Came is what comes from a channel, or the zero value at its end. It blocks until
// then; after [Bound] it ends the test, which says what was waited for.
func Came[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(Bound):
		t.Fatalf("waited in vain for %s", what)
	}
	return v
}
