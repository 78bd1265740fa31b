package process

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStoppedFork: a guardian that somebody stops before it has executed its
// program is ended, so that the start does not wait for it.
func TestStoppedFork(t *testing.T) {
	stopped := exec.Command("/bin/sleep", "1000")
	startOwned(t, stopped)
	defer owned.remove(stopped.Process.Pid)
	f := new(fork)
	f.plan.outcome = &outcome{guardian: int32(stopped.Process.Pid)}
	children := watchChildren()
	defer unwatch(children)
	unix.Kill(stopped.Process.Pid, unix.SIGSTOP)
	over, watched, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go f.watch(children, over, watched)
	go func() { ended <- stopped.Wait() }()
	err := receive(t, ended, "the end of a guardian that was stopped")
	close(over)
	receive(t, watched, "the end of the watch")
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
		r := start(t, Options{noCgroup: i%4 < 2}, script(l, "kill -"+signal+" $PPID; setsid sleep 1000 & exit 42")...)
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
