package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPresses: the same signal within the gap is the same press, another one or
// a later one is not; echoes do not move the gap.
func TestPresses(t *testing.T) {
	var p presses
	begin := time.Now()
	for i, tt := range []struct {
		sig   os.Signal
		after time.Duration
		again bool
	}{
		{os.Interrupt, 0, false},
		{os.Interrupt, time.Microsecond, true},
		{os.Interrupt, pressGap - 1, true},
		{os.Interrupt, pressGap, false},
		{syscall.SIGTERM, pressGap + 1, false},
		{syscall.SIGTERM, pressGap + 2, true},
		{os.Interrupt, pressGap + 3, false},
	} {
		if got := p.again(tt.sig, begin.Add(tt.after)); got != tt.again {
			t.Errorf("signal %d, %s after %s: again is %v", i, tt.sig, tt.after, got)
		}
	}
}

// TestSignalTwiceIsOnePress: of what timeout(1) does, a signal to the program
// and one to its group, the second does not go on to the next meaning.
func TestSignalTwiceIsOnePress(t *testing.T) {
	const interrupting, cancelling, killing = "interrupting the turn", "cancelling the run", "killing the run"
	for name, tt := range map[string]struct {
		apart time.Duration
		want  []string
	}{
		"at once":    {0, []string{interrupting, cancelling}},
		"one by one": {pressGap, []string{interrupting, cancelling, killing}},
	} {
		t.Run(name, func(t *testing.T) {
			c := chain(t, "linger", nil)
			setGoing(t, c)
			said := make(chan string, len(tt.want)+1)
			keys := newInterrupts(c, func(text string) { said <- text })
			at := time.Now()
			keys.now = func() time.Time {
				at = at.Add(tt.apart)
				return at
			}
			unhook := keys.hook()
			for _, sig := range []os.Signal{os.Interrupt, os.Interrupt, syscall.SIGTERM} {
				keys.keys <- sig
			}
			for _, want := range tt.want {
				select {
				case got := <-said:
					if !strings.HasPrefix(got, want) {
						t.Errorf("it says %q, want %q", got, want)
					}
				case <-time.After(pageHang):
					t.Fatalf("it does not say %q", want)
				}
			}
			<-keys.ended // the last signal was seen
			c.Kill()
			unhook()
			if len(said) > 0 {
				t.Errorf("then it says %q", <-said)
			}
		})
	}
}
