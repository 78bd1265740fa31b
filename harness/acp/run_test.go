//go:build unix

package acp

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/harness/child"
	"prp/protocol"
)

func TestTwoTurns(t *testing.T) {
	p := play(t)
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", "say one")
	p.untilEvent(protocol.EventTurnCompleted)
	p.turn("turn_2", "say two")
	p.untilEvent(protocol.EventTurnCompleted)
	p.say(protocol.SessionClose, "{}")
	p.stdin.Close() // as a runner does after session.close
	p.end(child.Exit{}, protocol.DispositionDone)
	if p.text.String() != "onetwo" || p.results[0].Summary != "two" {
		t.Errorf("text %q, summary %q", p.text.String(), p.results[0].Summary)
	}
	want := "session.started runtime.phase.changed " +
		"turn.started item.started item.completed turn.completed turn.started item.started item.completed turn.completed session.closed"
	if p.types() != want {
		t.Errorf("events\n%s, want\n%s", p.types(), want)
	}
}

// TestPipelined: commands need not wait for each other.
func TestPipelined(t *testing.T) {
	p := play(t)
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", "say one")
	p.untilEvent(protocol.EventTurnCompleted)
	p.stdin.Close()
	p.end(child.Exit{}, protocol.DispositionDone)
}

func TestPoint03OneLineOf2MB(t *testing.T) {
	const size = 2 << 20
	p := play(t)
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", fmt.Sprint("big ", size))
	p.untilEvent(protocol.EventTurnCompleted)
	p.stdin.Close()
	p.end(child.Exit{}, protocol.DispositionDone)
	if p.text.Len() != size || strings.Trim(p.text.String(), "b") != "" {
		t.Errorf("%d bytes came, want %d", p.text.Len(), size)
	}
}

func TestPoint03LineOverTheBound(t *testing.T) {
	p := play(t, roleLimit+"=5000")
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", "big 100000")
	p.untilEvent(protocol.EventTurnCompleted)
	p.turn("turn_2", "say short")
	p.untilEvent(protocol.EventTurnCompleted)
	p.stdin.Close()
	p.end(child.Exit{}, protocol.DispositionDone)
	if d := p.payload(protocol.EventHarnessDiag); !strings.Contains(d, `"agent_line_too_long"`) || !strings.Contains(d, `"limit":5000`) {
		t.Errorf("the diagnostic is %s", d)
	}
	if p.text.String() != "short" {
		t.Errorf("the text is %.100q", p.text.String())
	}
}

func TestPoint04NoiseOnStdout(t *testing.T) {
	p := play(t)
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", "noise 100000")
	p.untilEvent(protocol.EventTurnCompleted)
	p.stdin.Close()
	p.end(child.Exit{}, protocol.DispositionDone)
	if p.count(protocol.EventHarnessDiag) != 1 || !strings.Contains(p.payload(protocol.EventHarnessDiag), `"agent_noise"`) {
		t.Errorf("events %s", p.types())
	}
}

// TestManyRequests: each of the agent's requests gets an answer, however many.
func TestManyRequests(t *testing.T) {
	p := play(t)
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", "questions 500")
	p.untilEvent(protocol.EventTurnCompleted)
	p.stdin.Close()
	p.end(child.Exit{}, protocol.DispositionDone)
}

func TestAgentEndsInATurn(t *testing.T) {
	for act, exit := range map[string]child.Exit{
		"exit 3": {Status: 3}, "exit 0": {Status: 1}, "kill 9": {Signal: 9}, "kill 11": {Signal: 11},
	} {
		t.Run(act, func(t *testing.T) {
			p := play(t)
			p.say(protocol.SessionOpen, "{}")
			p.turn("turn_1", act)
			p.untilEvent(protocol.EventTurnFailed)
			p.end(exit, protocol.DispositionYielded)
			if f := p.payload(protocol.EventTurnFailed); !strings.Contains(f, `"agent_exited"`) {
				t.Errorf("failed with %s", f)
			}
		})
	}
}

func TestPoint09StubbornAgent(t *testing.T) {
	for name, end := range map[string]func(*played){
		"run.cancel": func(p *played) { p.say(protocol.RunCancel, "{}") },
		"signal":     func(p *played) { _ = p.cmd.Process.Signal(syscall.SIGTERM) },
		"quit":       func(p *played) { _ = p.cmd.Process.Signal(syscall.SIGQUIT) },
		"stdin":      func(p *played) { p.stdin.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t)
			p.say(protocol.SessionOpen, "{}")
			p.turn("turn_1", "stubborn")
			p.untilText("stubborn")
			end(p)
			p.untilEvent(protocol.EventTurnCancelled)
			p.end(child.Exit{Status: 1}, protocol.DispositionYielded) // it did not heed the cancel
		})
	}
}

func TestAgentThatClosesItsStdout(t *testing.T) {
	p := play(t)
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", "mute")
	p.untilEvent(protocol.EventTurnFailed)
	p.end(child.Exit{Status: 1}, protocol.DispositionYielded)
	if f := p.payload(protocol.EventTurnFailed); !strings.Contains(f, `"agent_closed_stdout"`) {
		t.Errorf("failed with %s", f)
	}
}

// TestRunnerThatDoesNotRead: the agent is slowed down, memory stays flat, and
// the end of the run is still heeded.
func TestRunnerThatDoesNotRead(t *testing.T) {
	p := play(t)
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", "flood")
	p.untilEvent(protocol.EventItemStarted)
	stable := 0
	var size int64
	for begin := time.Now(); stable < 10; time.Sleep(20 * time.Millisecond) {
		now := resident(t, p.cmd.Process.Pid)
		if stable++; now > size+1<<20 {
			size, stable = now, 0
		}
		if time.Since(begin) > hang {
			t.Fatalf("the adapter grows: %d bytes", now)
		}
	}
	if size > 200<<20 {
		t.Errorf("the adapter has %d bytes", size)
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	// It ends though nobody reads.
	if e := p.exit(); e != (child.Exit{Status: 1}) && e.Signal != int(syscall.SIGTERM) {
		t.Errorf("the adapter ended with %v", e)
	}
}

// resident is a process's memory, in bytes, 0 where that cannot be known.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no /proc")
	}
	var total, pages int64
	if _, err := fmt.Sscan(string(statm), &total, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func TestAgentThatCannotStart(t *testing.T) {
	p := play(t, roleArgv+"=/no/such/agent")
	p.end(child.Exit{Status: child.StatusNotFound}, "")
	if !strings.Contains(p.notes.String(), "/no/such/agent") || p.seq != 0 {
		t.Errorf("stderr %q, %d messages", p.notes.String(), p.seq)
	}
	p = play(t, roleArgv+"=true") // it ends before it answers
	p.end(child.Exit{Status: 1}, "")
	if !strings.Contains(p.notes.String(), "before it answered initialize") {
		t.Errorf("stderr %q", p.notes.String())
	}
}

// TestRunnerGone: without a reader of its stdout the adapter ends the agent and
// itself, and does not die of the pipe before that.
func TestRunnerGone(t *testing.T) {
	p := play(t)
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", "flood")
	p.untilEvent(protocol.EventItemStarted)
	p.stdout.Close()
	if e := p.exit(); e != (child.Exit{Status: 1}) {
		t.Errorf("the adapter ended with %v", e)
	}
}

func TestStdinEndsInATurn(t *testing.T) {
	p := play(t)
	p.say(protocol.SessionOpen, "{}")
	p.turn("turn_1", "hang")
	p.untilText("hanging")
	p.stdin.Close()
	p.end(child.Exit{Status: 1}, protocol.DispositionYielded)
}
