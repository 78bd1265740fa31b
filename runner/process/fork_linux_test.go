package process

import (
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStoppedFork: a guardian that somebody stops before it has executed its
// program is ended, so that the start does not wait for it.
func TestStoppedFork(t *testing.T) {
	stopped := exec.Command("/bin/sleep", "1000")
	startOwned(t, stopped)
	defer owned.remove(stopped.Process.Pid)
	f := &fork{over: make(chan struct{})}
	f.plan.outcome = &outcome{guardian: int32(stopped.Process.Pid)}
	children := watchChildren()
	defer unwatch(children)
	unix.Kill(stopped.Process.Pid, unix.SIGSTOP)
	go f.await(nil, children)
	ended := make(chan error, 1)
	go func() { ended <- stopped.Wait() }()
	err := receive(t, ended, "the end of a guardian that was stopped")
	close(f.over)
	state := stopped.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !state.Signaled() || state.Signal() != unix.SIGKILL {
		t.Errorf("a guardian that was stopped ended with %v, want SIGKILL", err)
	}
}

// TestGuardianHitAtOnce: the first thing that a harness does is to stop or to
// kill the guardian, which may still be on its way to its program. The start
// does not hang, the exit is the true one, and nothing is left.
func TestGuardianHitAtOnce(t *testing.T) {
	for i := range times(60) {
		signal := []string{"STOP", "KILL"}[i%2]
		l := newLife(t)
		r := start(t, Options{noCgroup: i%4 < 2, guardPatience: -time.Duration(i % 8 / 4)}, script(l, "kill -"+signal+" $PPID; setsid sleep 1000 & exit 42")...)
		if e := r.exit(t); e != (Exit{Code: 42}) {
			t.Fatalf("round %d: exit %+v, want code 42: %q", i, e, r.s.Notes())
		}
		r.Kill()
		if g := r.gone(t); l.lives() || len(g.Survivors) > 0 {
			t.Fatalf("round %d: a descendant lives: %+v", i, g)
		}
	}
}

// TestGuardianNotExecuted: a guardian that cannot execute its program leaves
// the harness to this process, or ends it where this process would not become
// its parent.
func TestGuardianNotExecuted(t *testing.T) {
	const nowhere = "/nonexistent/guardian"
	for _, noCgroup := range []bool{false, true} {
		l := newLife(t)
		r := start(t, Options{guardProgram: nowhere, noCgroup: noCgroup},
			script(l, "setsid sleep 1000 & echo ready; read x; exit 42")...)
		r.expect(t, "ready")
		awaitNote(t, r.s, "guardian: it could not be executed: no such file")
		r.Stdin.WriteString("go on\n")
		if e := r.exit(t); e != (Exit{Code: 42}) {
			t.Errorf("exit %+v, want code 42", e)
		}
		r.Kill()
		g := r.gone(t)
		if l.lives() || len(g.Survivors) > 0 {
			t.Errorf("a descendant lives: %+v", g)
		}
		if slices.Contains(g.Means, MeanGuardian) {
			t.Errorf("means %q, want no guardian", g.Means)
		}
		if g.Swept != 1 {
			t.Errorf("%d descendants were swept, want 1", g.Swept)
		}
	}
}

// TestForsakenHarness: where this process is no subreaper, a harness without a
// guardian is ended. This runs in a process of its own, since being a subreaper
// is for life.
func TestForsakenHarness(t *testing.T) {
	l := newLife(t)
	h := launchHelper(t, helperCmd(t, "nosubreaper,nocgroup,unguardable", script(l, "echo ready; sleep 1000")...))
	h.expect(t, "started")
	l.await(t, hang)
	h.say("stop 0")
	h.expect(t, "gone")
	h.say("close")
	h.expect(t, "closed")
}

// TestDescriptorsInTheWay: this process has closed 0, 1 and 2, so that every
// descriptor of a start is given one of these numbers.
func TestDescriptorsInTheWay(t *testing.T) {
	for _, mode := range append(helperModes, "nocgroup") {
		cmd := exec.Command(self(t), "role:bare", mode, "/bin/sh", "-c", "read x; echo got $x; echo error >&2; exit 42")
		cmd.Env = testEnv
		out, err := os.CreateTemp(t.TempDir(), "out")
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{out}
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out.Name())
		if want := "got this\nerror\n{42 0 false}\n"; err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %q, %v, want %q", mode, text, err, want)
		}
	}
}

// TestOthers: what a guardian closes is all that it does not keep.
func TestOthers(t *testing.T) {
	for _, c := range []struct {
		kept []int
		want []fdRange
	}{
		{[]int{7, -1, -1}, []fdRange{{3, 6}, {8, math.MaxUint32}}},
		{[]int{3, -1, -1}, []fdRange{{4, math.MaxUint32}}},
		{[]int{9, 3, 4}, []fdRange{{5, 8}, {10, math.MaxUint32}}},
		{[]int{9, 5, 7}, []fdRange{{3, 4}, {6, 6}, {8, 8}, {10, math.MaxUint32}}},
	} {
		got := others(c.kept)
		if got := slices.Compact(got[:]); !slices.Equal(got, c.want) {
			t.Errorf("beside %d: %v, want %v", c.kept, got, c.want)
		}
	}
}

// TestShortLife: a harness that has ended before its guardian has executed its
// program, and has left nothing, needs no such program: its exit is the true one,
// and nothing tells of a guardian that had died.
func TestShortLife(t *testing.T) {
	for _, o := range []Options{{}, {noCgroup: true}} {
		o.guardPatience, o.guardProgram = hang, "/nonexistent/guardian"
		r := start(t, o, "/bin/sh", "-c", "kill -9 $$")
		if e := r.exit(t); e != (Exit{Signal: 9, Signaled: true}) {
			t.Errorf("exit %+v, want signal 9", e)
		}
		r.Kill()
		g := r.gone(t)
		if len(g.Survivors) > 0 || g.Swept != 0 || !slices.Contains(g.Means, MeanGuardian) {
			t.Errorf("%+v, want nothing swept, and the guardian among the means", g)
		}
		for _, note := range r.s.Notes() {
			if strings.HasPrefix(note, "guardian") {
				t.Errorf("unexpected note %q", note)
			}
		}
	}
}

// TestShortLifeWithADaemon: where a harness has left something, its guardian does
// execute its program, and does not leave it to this process, which may die.
func TestShortLifeWithADaemon(t *testing.T) {
	for _, o := range []Options{{}, {noCgroup: true}} {
		o.guardPatience = hang
		l := newLife(t)
		r := start(t, o, script(l, "setsid sleep 1000 & echo ready; read x; exit 42")...)
		r.expect(t, "ready")
		r.Stdin.WriteString("go on\n")
		if e := r.exit(t); e != (Exit{Code: 42}) {
			t.Errorf("exit %+v, want code 42", e)
		}
		awaitGuardian(t, r.s.guard.pid)
		r.Kill()
		if g := r.gone(t); l.lives() || len(g.Survivors) > 0 || g.Swept != 1 {
			t.Errorf("a descendant lives, or another number than 1 was swept: %+v", g)
		}
	}
}

// TestPipesOfAGuardianInWaiting: a guardian that has not executed its program
// yet holds no pipe of the harness, whose end is heard at once.
func TestPipesOfAGuardianInWaiting(t *testing.T) {
	l := newLife(t)
	r := start(t, Options{guardPatience: hang}, script(l, "exec <&- >&- 2>&-; sleep 1000")...)
	for _, f := range []*os.File{r.Stdout, r.Stderr} {
		f.SetReadDeadline(time.Now().Add(hang / 2))
		if _, err := io.Copy(io.Discard, f); err != nil {
			t.Errorf("the end of an output: %v", err)
		}
	}
	if _, err := r.Stdin.WriteString("x"); !errors.Is(err, unix.EPIPE) {
		t.Errorf("writing to a stdin that is closed: %v, want EPIPE", err)
	}
	r.Kill()
	if g := r.gone(t); l.lives() || !slices.Contains(g.Means, MeanGuardian) {
		t.Errorf("a descendant lives, or there was no guardian: %+v", g)
	}
}
