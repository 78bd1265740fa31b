package runner

import (
	"time"

	"prp/runner/lifecycle"
)

// A timer that is seen more than tooLate after its time means that this process
// did not run: it was stopped (Ctrl-Z), or the machine was busy. What others did
// in time is then still unread, so the timer is put off once by catchUp and the
// readers come first.
const (
	tooLate = 200 * time.Millisecond
	catchUp = 200 * time.Millisecond
)

// timers keeps the deadlines of the core's timers behind one runtime timer.
type timers struct {
	at    [lifecycle.Timers]time.Time // zero: not armed
	gen   [lifecycle.Timers]int
	off   [lifecycle.Timers]bool // put off once
	timer *time.Timer
}

func (t *timers) init() {
	t.timer = time.NewTimer(time.Hour)
	t.timer.Stop()
}

func (t *timers) fired() <-chan time.Time { return t.timer.C }

func (t *timers) set(now time.Time, name lifecycle.Timer, gen int, d time.Duration) {
	t.at[name], t.gen[name], t.off[name] = now.Add(d), gen, false
	t.arm(now)
}

func (t *timers) clear(now time.Time, name lifecycle.Timer) {
	t.at[name] = time.Time{}
	t.arm(now)
}

// arm sets the runtime timer to the earliest deadline.
func (t *timers) arm(now time.Time) {
	var next time.Time
	for _, at := range t.at {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		t.timer.Stop()
		return
	}
	t.timer.Reset(max(0, next.Sub(now)))
}

// due takes the timers that have run out.
func (t *timers) due(now time.Time) []lifecycle.Input {
	var out []lifecycle.Input
	for name, at := range t.at {
		if at.IsZero() || at.After(now) {
			continue
		}
		if now.Sub(at) > tooLate && !t.off[name] {
			t.at[name], t.off[name] = now.Add(catchUp), true
			continue
		}
		t.at[name] = time.Time{}
		out = append(out, lifecycle.TimerFired{Timer: lifecycle.Timer(name), Gen: t.gen[name]})
	}
	t.arm(now)
	return out
}
