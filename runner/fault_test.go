package runner

import (
	"strings"
	"testing"
)

// A fault in a goroutine beside the loop is the loop's, where Run turns it into
// the exit status of an internal fault instead of that of wrong flags.
func TestFaultBesideTheLoop(t *testing.T) {
	l := newLoop(Defaults(), nil)
	l.timers.init()
	l.input = &stdinReader{}
	l.output = &stdoutWriter{}
	l.spawn(func() { panic("a reader broke") })
	defer func() {
		c, ok := recover().(crash)
		if !ok || !strings.Contains(c.String(), "a reader broke") || !strings.Contains(c.String(), "fault_test.go") {
			t.Errorf("the loop got %v, want the fault with its stack", c)
		}
	}()
	l.wait()
	t.Error("the loop went on")
}
