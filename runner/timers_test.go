package runner

import (
	"testing"
	"time"

	"prp/runner/lifecycle"
)

// A timer whose time passed while the process did not run fires all the same,
// but not before the readers have had a moment.
func TestLateTimerIsPutOffOnce(t *testing.T) {
	var set timers
	set.init()
	defer set.timer.Stop()
	at := time.Now()
	set.set(at, lifecycle.TimerReady, 7, time.Second)
	if got := set.due(at.Add(time.Second)); len(got) != 1 {
		t.Errorf("in time: fired %v, want the timer", got)
	}
	set.set(at, lifecycle.TimerReady, 8, time.Second)
	set.set(at, lifecycle.TimerRun, 1, time.Hour)
	now := at.Add(time.Minute)
	if got := set.due(now); len(got) != 0 {
		t.Errorf("a minute late: fired %v at once, want nothing yet", got)
	}
	want := lifecycle.TimerFired{Timer: lifecycle.TimerReady, Gen: 8}
	if got := set.due(now.Add(time.Hour / 2)); len(got) != 1 || got[0] != want {
		t.Errorf("after that: fired %v, want %v", got, want)
	}
}
