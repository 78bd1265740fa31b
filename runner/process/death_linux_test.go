package process

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// loadedLimit is how long the harness of a dead runner may live in a test. The
// spec gives it 1 s; a test machine may be busy with other tests.
const loadedLimit = 5 * time.Second

// TestRunnerKilled is point 2: the runner dies by SIGKILL, and nothing lives.
func TestRunnerKilled(t *testing.T) {
	for _, opts := range []string{"all", "nocgroup"} {
		for _, s := range shapes {
			t.Run(opts+"/"+s.name, func(t *testing.T) {
				l := newLife(t)
				h := launchHelper(t, helperCmd(t, opts, s.argv(t, l, "sleep 1000")...))
				h.expect(t, "started")
				h.expect(t, "out")
				h.kill()
				l.await(t, loadedLimit)
				awaitNoStrays(t, loadedLimit)
			})
		}
	}
}

// TestControlRunnerKilled shows what the guardian is for: without it the
// descendants of a dead runner do live. (The leader has a death signal.)
func TestControlRunnerKilled(t *testing.T) {
	l := newLife(t)
	h := launchHelper(t, helperCmd(t, "noguardian,nocgroup", script(l, "setsid sleep 1000 & echo ready; sleep 1000")...))
	leader, _ := strconv.Atoi(h.expect(t, "started")[0])
	h.expect(t, "out")
	h.kill()
	for end := time.Now().Add(hang); alive(leader); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the leader lives in spite of its death signal")
		}
	}
	if !l.lives() {
		t.Error("without a guardian the descendant is dead, so the test of the guardian shows nothing")
	}
	sweepStrays()
}

// TestRunnerKilledAtAnyMoment kills 200 runners, each at a random moment from
// its start on.
func TestRunnerKilledAtAnyMoment(t *testing.T) {
	l := newLife(t)
	body := "setsid sh -c 'sleep 1000 & setsid sleep 1000 & wait' & sleep 1000"
	// The first one shows how long it takes to be up.
	from := time.Now()
	h := launchHelper(t, helperCmd(t, "all", script(l, body)...))
	h.expect(t, "started")
	up := time.Since(from)
	h.kill()
	l.await(t, loadedLimit)
	awaitNoStrays(t, loadedLimit)
	for i := range times(200) {
		h := launchHelper(t, helperCmd(t, []string{"all", "nocgroup"}[i%2], script(l, body)...))
		moment := time.NewTimer(rand.N(up * 3 / 2))
		<-moment.C
		h.kill()
		awaitNoStrays(t, loadedLimit)
		if l.lives() {
			t.Fatalf("round %d: a descendant lives", i)
		}
	}
}

// TestGuardianKilled: a hostile harness kills the guardian. The exit is still
// the true one, and nothing is left.
func TestGuardianKilled(t *testing.T) {
	for _, s := range shapes {
		for _, o := range []Options{{}, {noCgroup: true}} {
			t.Run(s.name, func(t *testing.T) {
				l := newLife(t)
				r := start(t, o, s.argv(t, l, "read x; kill -9 $PPID; read x; exit 42")...)
				r.expect(t, "ready")
				r.Stdin.WriteString("kill\n")
				awaitNote(t, r.s, "guardian: it died")
				r.Stdin.WriteString("go on\n")
				if e := r.exit(t); e != (Exit{Code: 42}) {
					t.Errorf("exit %+v, want code 42", e)
				}
				r.Kill()
				g := r.gone(t)
				if l.lives() || len(g.Survivors) > 0 {
					t.Errorf("a descendant lives: %+v", g)
				}
				if slices.Contains(g.Means, MeanGuardian) || !slices.Contains(g.Means, MeanSubreaper) {
					t.Errorf("means %q, want the subreaper without the guardian", g.Means)
				}
			})
		}
	}
}

func awaitNote(t *testing.T, s *Supervisor, prefix string) {
	t.Helper()
	for end := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		for _, n := range s.Notes() {
			if strings.HasPrefix(n, prefix) {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("no note %q in %q", prefix, s.Notes())
		}
	}
}

// TestGuardianKilledAtAnyMoment kills the guardian while the harness exits, is
// stopped or swept: an exit that is told is always a true one.
func TestGuardianKilledAtAnyMoment(t *testing.T) {
	for i := range times(60) {
		l := newLife(t)
		r := start(t, Options{noCgroup: i%2 == 0}, script(l, "setsid sleep 1000 & echo ready; read x; exit 42")...)
		r.expect(t, "ready")
		guard := r.s.guard.pid
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(rand.N(8 * time.Millisecond))
			unix.Kill(guard, unix.SIGKILL)
		}()
		r.Stdin.WriteString("go on\n")
		if e := r.exit(t); e != (Exit{Code: 42}) {
			t.Fatalf("round %d: exit %+v, want code 42", i, e)
		}
		r.Stop(longGrace / 2)
		r.Kill()
		if g := r.gone(t); l.lives() || len(g.Survivors) > 0 {
			t.Fatalf("round %d: a descendant lives: %+v", i, g)
		}
		<-killed
	}
}

// TestGuardianStopped: a guardian that somebody stops is replaced.
func TestGuardianStopped(t *testing.T) {
	l := newLife(t)
	r := start(t, Options{}, script(l, "read x; kill -STOP $PPID; setsid sleep 1000 & echo ready; read x; exit 42")...)
	r.Stdin.WriteString("stop\n")
	r.expect(t, "ready")
	awaitNote(t, r.s, "guardian: it died")
	r.Stdin.WriteString("go on\n")
	if e := r.exit(t); e != (Exit{Code: 42}) {
		t.Errorf("exit %+v, want code 42", e)
	}
	r.Kill()
	if g := r.gone(t); l.lives() || len(g.Survivors) > 0 {
		t.Errorf("a descendant lives: %+v", g)
	}
}

// awaitGuardian waits until a guardian has executed its program and has begun its
// work.
func awaitGuardian(t *testing.T, pid int) {
	t.Helper()
	p := openProc()
	defer p.close()
	for end := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.HasPrefix(line, []byte(guardianName)) && p.comm(pid) == guardianName {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the guardian is called %q and %q after %v: %v", p.comm(pid), line, hang, err)
		}
	}
}

// TestGuardianShrugsOffSignals: a signal that a program can withstand means
// nothing to a guardian.
func TestGuardianShrugsOffSignals(t *testing.T) {
	l := newLife(t)
	r := start(t, Options{}, script(l, `read x; for s in HUP INT QUIT ABRT PIPE ALRM TERM USR1 USR2 TSTP TTIN TTOU CONT WINCH; do kill -$s $PPID; done
		echo ready; read x; exit 42`)...)
	awaitGuardian(t, r.s.guard.pid)
	r.Stdin.WriteString("signal\n")
	r.expect(t, "ready")
	r.Stdin.WriteString("go on\n")
	r.exit(t)
	r.Kill()
	g := r.gone(t)
	if !slices.Contains(g.Means, MeanGuardian) {
		t.Errorf("means %q, want the guardian: %q", g.Means, r.s.Notes())
	}
}

// TestCloseLeavesNothing: neither the guardian nor its cgroup is left.
func TestCloseLeavesNothing(t *testing.T) {
	for _, started := range []bool{false, true} {
		s, err := Open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		guard := 0
		l := newLife(t)
		if started {
			c, err := s.Start(Spec{Argv: script(l, "setsid sleep 1000 & sleep 1000"), Env: testEnv})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAll([]*os.File{c.Stdin, c.Stdout, c.Stderr})
			guard = s.guard.pid
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if alive(guard) || l.lives() {
			t.Errorf("started %v: the guardian lives: %v; a descendant lives: %v", started, alive(guard), l.lives())
		}
		if s.leaf != nil {
			if _, err := os.Stat(s.leaf.dir); !os.IsNotExist(err) {
				t.Errorf("started %v: the cgroup %q is left: %v", started, s.leaf.dir, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	}
}
