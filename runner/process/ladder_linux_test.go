package process

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// longGrace is a grace that no test waits out.
const longGrace = 10 * time.Minute

// eachMode runs a test in every combination of means.
func eachMode(t *testing.T, f func(t *testing.T, o Options)) {
	t.Helper()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { f(t, m.o) })
	}
}

// TestGraceIsWaitedOnce is F15: SIGKILL at the grace, not at twice the grace.
func TestGraceIsWaitedOnce(t *testing.T) {
	for name, body := range map[string]string{
		"the leader ignores SIGTERM":         `trap "" TERM; echo ready; sleep 1000; sleep 1000`,
		"the leader obeys, a child does not": `trap "exit 0" TERM; (trap "" TERM; echo ready; exec sleep 1000) & while :; do sleep 0.02; done`,
		"an escaped child does not":          `trap "exit 0" TERM; setsid sh -c 'trap "" TERM; echo ready; sleep 1000; sleep 1000' & while :; do sleep 0.02; done`,
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, o Options) {
				const grace = 700 * time.Millisecond
				l := newLife(t)
				r := start(t, o, script(l, body)...)
				r.expect(t, "ready")
				from := time.Now()
				r.Stop(grace)
				r.gone(t)
				if took := time.Since(from); took < grace {
					t.Errorf("the end came after %v, before the grace of %v was over", took, grace)
				}
				if l.lives() {
					t.Error("a descendant lives")
				}
			})
		})
	}
}

// TestGraceIsNotWaitedOut is point 4: nothing is waited for once all are gone.
func TestGraceIsNotWaitedOut(t *testing.T) {
	for name, body := range map[string]string{
		"obeys":                  `echo ready; sleep 1000`,
		"group child":            `sleep 1000 & echo ready; sleep 1000`,
		"escaped child":          `setsid sleep 1000 & echo ready; sleep 1000`,
		"escaped, stopped child": `setsid sh -c 'kill -STOP $$; sleep 1000' & echo ready; sleep 1000`,
		"a child takes longer":   `setsid sh -c 'trap "sleep 0.3; exit" TERM; echo ready; while :; do sleep 0.02; done' & sleep 1000`,
		"exits by itself before": `echo ready; exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, o Options) {
				r := start(t, o, "/bin/sh", "-c", body)
				r.expect(t, "ready")
				r.Stop(longGrace)
				g := r.gone(t)
				if g.Swept != 0 {
					t.Errorf("swept %d, want 0: all obeyed SIGTERM", g.Swept)
				}
			})
		})
	}
}

// TestStopOnlyGetsShorter: a second call may shorten the grace, not lengthen it.
func TestStopOnlyGetsShorter(t *testing.T) {
	eachMode(t, func(t *testing.T, o Options) {
		r := start(t, o, "/bin/sh", "-c", `trap "" TERM; echo ready; sleep 1000; sleep 1000`)
		r.expect(t, "ready")
		r.Stop(longGrace)
		r.Stop(time.Hour)
		r.Stop(10 * time.Millisecond)
		r.Stop(longGrace)
		if e := r.exit(t); e != (Exit{Signal: 9, Signaled: true}) {
			t.Errorf("exit %+v, want signal 9", e)
		}
		r.gone(t)
	})
}

// TestStoppedLeaderObeys is F18: SIGCONT lets who is stopped run its handler.
func TestStoppedLeaderObeys(t *testing.T) {
	eachMode(t, func(t *testing.T, o Options) {
		r := start(t, o, "/bin/sh", "-c", `trap "echo bye; exit 42" TERM; echo ready; kill -STOP $$; while :; do sleep 0.02; done`)
		r.expect(t, "ready")
		awaitState(t, r.PID(), 'T')
		r.Stop(longGrace)
		r.expect(t, "bye")
		if e := r.exit(t); e != (Exit{Code: 42}) {
			t.Errorf("exit %+v, want code 42", e)
		}
		r.gone(t)
	})
}

func awaitState(t *testing.T, pid int, state byte) {
	t.Helper()
	p := openProc()
	defer p.close()
	for end := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		s, ok := p.stat(pid)
		if ok && s.state == state {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d is in state %q, want %q", pid, s.state, state)
		}
	}
}

// TestHeldPipe is F30: a leaked holder of stderr does not change the exit, and
// its end ends the pipe.
func TestHeldPipe(t *testing.T) {
	for _, code := range []int{0, 3, 137} {
		eachMode(t, func(t *testing.T, o Options) {
			r := start(t, o, "/bin/sh", "-c", "setsid sleep 1000 & exit "+strconv.Itoa(code))
			if e := r.exit(t); e != (Exit{Code: code}) {
				t.Errorf("exit %+v, want code %d", e, code)
			}
			r.Kill()
			r.gone(t)
			r.Stderr.SetReadDeadline(time.Now().Add(hang))
			if _, err := io.ReadAll(r.Stderr); err != nil {
				t.Errorf("stderr is still held: %v", err)
			}
		})
	}
}

// TestChildExitsWithTheLeader is F30: a group child that ends about when the
// leader does never changes its exit.
func TestChildExitsWithTheLeader(t *testing.T) {
	for i := range times(40) {
		o := modes[i%len(modes)].o
		r := start(t, o, "/bin/sh", "-c", "sleep 0.00"+strconv.Itoa(i%6)+" & exit 0")
		if e := r.exit(t); e != (Exit{}) {
			t.Fatalf("exit %+v, want code 0", e)
		}
		r.Kill()
		g := r.gone(t)
		if len(g.Survivors) > 0 {
			t.Fatalf("survivors %+v", g.Survivors)
		}
		if !o.noGuardian && !slices.Contains(g.Means, MeanGuardian) {
			t.Fatalf("means %q, want the guardian: %q", g.Means, r.s.Notes())
		}
	}
}

// TestLastBytes: everything written before the exit can still be read.
func TestLastBytes(t *testing.T) {
	eachMode(t, func(t *testing.T, o Options) {
		r := start(t, o, "/bin/sh", "-c", "head -c 50000 /dev/zero; exit 0")
		r.exit(t)
		r.Kill()
		r.gone(t)
		all, err := io.ReadAll(r.out)
		if err != nil || len(all) != 50000 {
			t.Errorf("read %d bytes (%v), want 50000", len(all), err)
		}
	})
}

// TestUnkillable is a process in state D after SIGKILL: the freezer of cgroup
// v1 holds one where no signal reaches it.
func TestUnkillable(t *testing.T) {
	const freezer = "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(filepath.Join(freezer, "cgroup.procs")); err != nil {
		t.Skip("no freezer of cgroup v1 here:", err)
	}
	cage := filepath.Join(freezer, "prp-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(cage, 0o755); err != nil {
		t.Skip("the freezer cannot be used here:", err)
	}
	set := func(file, value string) {
		if err := os.WriteFile(filepath.Join(cage, file), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Remove(cage) })
	r := start(t, Options{}, "/bin/sh", "-c", "setsid sh -c 'echo $$; exec sleep 1000' & wait")
	line, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(line[:len(line)-1])
	set("cgroup.procs", strconv.Itoa(pid))
	set("freezer.state", "FROZEN")
	thaw := func() { set("freezer.state", "THAWED") }
	defer thaw()
	awaitState(t, pid, 'D')
	from := time.Now()
	r.Kill()
	g := r.gone(t)
	if took := time.Since(from); took < hardBound {
		t.Errorf("the end came after %v, before the hard bound of %v", took, hardBound)
	}
	if len(g.Survivors) != 1 || g.Survivors[0].PID != pid || g.Survivors[0].State != "D" ||
		g.Survivors[0].Name != "sleep" && g.Survivors[0].Name != "sh" { // it may not have come to its exec
		t.Errorf("survivors %+v, want the process %d in state D", g.Survivors, pid)
	}
	thaw()
	for end := time.Now().Add(hang); alive(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the process lives on after it was thawed")
		}
	}
}

// TestWaitingIsFree is F33: next to no processor time is used while a harness
// takes its time to end, and none while nothing happens.
func TestWaitingIsFree(t *testing.T) {
	for _, opts := range []string{"", "noguardian,nocgroup"} {
		t.Run(opts, func(t *testing.T) {
			h := launchHelper(t, helperCmd(t, opts, "/bin/sh", "-c", `trap "" TERM; setsid sleep 1000 & echo ready; sleep 1000; sleep 1000`))
			pids := h.expect(t, "started")
			h.expect(t, "out")
			guard, _ := strconv.Atoi(pids[1])
			if guard != 0 {
				awaitGuardian(t, guard) // its start is not what is measured
			}
			used := func() time.Duration {
				total := cpu(t, h.cmd.Process.Pid)
				if guard != 0 {
					total += cpu(t, guard)
				}
				return total
			}
			before := used()
			h.say("stop 600000")
			const watched = 2 * time.Second // what is measured is what happens in it
			time.Sleep(watched)
			const most = 100 * time.Millisecond
			if spent := used() - before; spent > most {
				t.Errorf("%v of processor time in %v of grace, want at most %v", spent, watched, most)
			}
			h.say("close")
			h.expect(t, "closed")
		})
	}
}
