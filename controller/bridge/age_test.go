package bridge

import (
	"path/filepath"
	"testing"
	"time"
	"unsafe"
)

// jumped is a time as it is read after the wall clock was set by d: the
// monotonic clock knows nothing of that. Package time has no way to make one.
func jumped(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	out := at
	// A time with a monotonic reading has the seconds of the wall clock in the
	// bits 30 to 62 of its first word.
	*(*uint64)(unsafe.Pointer(&out)) += uint64(int64(d/time.Second)) << 30
	if out.Sub(at) != 0 || out.Round(0).Sub(at.Round(0)) != d {
		t.Skipf("package time keeps its clocks in another way: %s became %s", at, out)
	}
	return out
}

// TestClockJump: remote.md rule 9. A wall clock that is set drops no frame and
// no result, neither of those that were written since nor of those that were
// read from the disk; without the monotonic clock it does.
func TestClockJump(t *testing.T) {
	for _, jump := range []time.Duration{48 * time.Hour, -48 * time.Hour} {
		for _, monotonic := range []bool{true, false} {
			t.Run(jump.String(), func(t *testing.T) {
				var set time.Duration
				now := func() time.Time {
					at := jumped(t, time.Now(), set)
					if !monotonic {
						at = at.Round(0)
					}
					return at
				}
				frames, results := filepath.Join(t.TempDir(), "frames"), filepath.Join(t.TempDir(), "results")
				o, s := openOutbox(t, frames, OutboxConfig{Now: now}), openStore(t, results, StoreConfig{Now: now})
				put(t, o, "soft", true)
				o.Sent(put(t, o, "sent", false))
				finish(t, s, "old", "d", "{}")
				for _, again := range []bool{false, true} {
					if again {
						o.Close()
						s.Close()
						set = 0 // what was set while nothing ran, nobody can tell
						o, s = openOutbox(t, frames, OutboxConfig{Now: now}), openStore(t, results, StoreConfig{Now: now})
						o.Sent(2)
					}
					set += jump
					put(t, o, "new", false)
					finish(t, s, "new", "d", "{}")
					_, kept, err := s.Result("old")
					first := waiting(t, o)[0]
					if !monotonic && jump > 0 {
						if kept || first == "1" {
							t.Error("this test would not see a jump")
						}
						return
					}
					if !kept || err != nil || first != "1" || waiting(t, o)[1] != "2" {
						t.Errorf("after a jump (again: %v): the result is kept: %v, waiting %q", again, kept, waiting(t, o))
					}
				}
			})
		}
	}
}

// TestAged: an age begins anew with a clock that was ahead, and never before.
func TestAged(t *testing.T) {
	now := time.Now()
	for since, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 0: 0, -time.Hour: 0} {
		at := aged(now.Add(-since).Round(0), now)
		if age := jumped(t, now, 48*time.Hour).Sub(at); age.Round(time.Second) != want {
			t.Errorf("the age is %s, want %s", age, want)
		}
	}
}
