package fake

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/protocol"
)

// stat is what /proc says of a process.
type stat struct {
	state               byte
	ppid, pgrp, session int
}

// statOf returns false where the process is gone.
func statOf(t *testing.T, pid int) (stat, bool) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, false
	}
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var n [3]int
	for i := range n {
		if n[i], err = strconv.Atoi(fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return stat{state: fields[0][0], ppid: n[0], pgrp: n[1], session: n[2]}, true
}

func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }

func alive(t *testing.T, pid int) bool {
	t.Helper()
	s, ok := statOf(t, pid)
	return ok && !s.dead()
}

// eventually waits for a condition, which has to come by itself.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(hang); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// worker returns the pid that the fake says, and kills that process at the end
// of the test.
func (p *played) worker() int {
	p.t.Helper()
	text, ok := strings.CutPrefix(p.hear(), `diagnostic {"workerPid":`)
	pid, err := strconv.Atoi(strings.TrimSuffix(text, "}"))
	if !ok || err != nil {
		p.t.Fatalf("expected a worker's pid, got %q", text)
	}
	killAtEnd(p.t, pid)
	return pid
}

// killAtEnd kills by pidfd, so that a pid which is free again by then hits
// nobody.
func killAtEnd(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Kill() // fails where it is dead
		_ = process.Release()
	})
}

func spawnScript(members string) string {
	return scriptOf(`{"kind":"spawn_worker"`+members+`}`, `{"kind":"hang"}`)
}

func TestWorkerEscapes(t *testing.T) {
	for _, escape := range []string{EscapeNone, EscapeSetpgid, EscapeSetsid, EscapeDoubleFork} {
		t.Run(escape, func(t *testing.T) {
			p := play(t, spawnScript(`,"escape":"`+escape+`"`))
			p.start()
			pid, fakePID := p.worker(), p.process.Process.Pid
			w, ok := statOf(t, pid)
			f, _ := statOf(t, fakePID)
			if !ok {
				t.Fatal("the worker does not live")
			}
			if got, want := w.pgrp == f.pgrp, escape == EscapeNone; got != want {
				t.Errorf("in the fake's group: %t, want %t", got, want)
			}
			if got, want := w.session == f.session, escape == EscapeNone || escape == EscapeSetpgid; got != want {
				t.Errorf("in the fake's session: %t, want %t", got, want)
			}
			if got, want := w.session == pid, escape == EscapeSetsid; got != want {
				t.Errorf("leader of a session: %t, want %t", got, want)
			}
			if got, want := w.ppid == fakePID, escape != EscapeDoubleFork; got != want {
				t.Errorf("child of the fake: %t, want %t", got, want)
			}
			for _, fd := range []int{1, 2} {
				if link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); err != nil || link != os.DevNull {
					t.Errorf("descriptor %d is %q, %v", fd, link, err)
				}
			}
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the worker obeys SIGTERM", func() bool { return !alive(t, pid) })
		})
	}
}

func TestWorkerIgnoresSigterm(t *testing.T) {
	p := play(t, spawnScript(`,"ignore_sigterm":true`))
	p.start()
	pid := p.worker()
	const term = uint64(1) << (syscall.SIGTERM - 1)
	if mask(t, pid, "SigCgt")&term == 0 {
		t.Error("SIGTERM has its default action")
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "SIGTERM is taken", func() bool { return mask(t, pid, "ShdPnd")&term == 0 })
	if !alive(t, pid) {
		t.Error("the worker is dead")
	}
}

// mask reads a signal mask from /proc.
func mask(t *testing.T, pid int, name string) uint64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no mask %s", name)
	return 0
}

func TestWorkerObeysWhereTheFakeDoesNot(t *testing.T) {
	p := play(t, scriptOf(`{"kind":"ignore_sigterm"}`, `{"kind":"spawn_worker"}`, `{"kind":"hang"}`))
	p.start()
	pid := p.worker()
	for _, target := range []int{p.process.Process.Pid, pid} {
		if err := syscall.Kill(target, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the worker obeys SIGTERM", func() bool { return !alive(t, pid) })
	if !alive(t, p.process.Process.Pid) {
		t.Error("the fake is dead")
	}
}

func TestWorkerHoldsStreams(t *testing.T) {
	p := play(t, scriptOf(`{"kind":"spawn_worker","hold_stdout":true,"hold_stderr":true}`, `{"kind":"exit","code":0}`))
	p.start()
	pid := p.worker()
	p.exit(0)
	if !alive(t, pid) {
		t.Fatal("the worker ended with the fake")
	}
	for fd, ours := range map[int]*os.File{1: p.stdout, 2: p.stderr} {
		theirs, err := os.Stat(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
		if err != nil {
			t.Fatal(err)
		}
		info, err := ours.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(theirs, info) {
			t.Errorf("descriptor %d is not the fake's", fd)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.end(0)
}

func TestWorkerEnvironment(t *testing.T) {
	for _, clear := range []bool{false, true} {
		t.Setenv("FAKE_WORKER_MARK", "yes")
		p := play(t, spawnScript(`,"clear_env":`+strconv.FormatBool(clear)))
		p.start()
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.worker()))
		if err != nil {
			t.Fatal(err)
		}
		if clear && len(env) > 0 {
			t.Errorf("the environment is %q", env)
		}
		if !clear && !bytes.Contains(env, []byte("FAKE_WORKER_MARK=yes\x00")) {
			t.Errorf("the environment was not inherited: %q", env)
		}
	}
}

func TestWorkerStopped(t *testing.T) {
	p := play(t, spawnScript(`,"stopped":true,"escape":"setsid"`))
	p.start()
	pid := p.worker()
	eventually(t, "the worker is stopped", func() bool {
		s, ok := statOf(t, pid)
		return ok && s.state == 'T'
	})
}

func TestWorkerLifetime(t *testing.T) {
	p := play(t, spawnScript(`,"lifetime_ms":50,"ignore_sigterm":true`))
	p.start()
	pid := p.worker()
	eventually(t, "the worker ends by itself", func() bool { return !alive(t, pid) })
}

// workers finds the living processes that carry a mark in their environment,
// except the fake itself.
func (p *played) workers(mark string) []int {
	p.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		p.t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == p.process.Process.Pid {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, []byte(mark)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestWorkerForksAtTerm(t *testing.T) {
	mark := fmt.Sprintf("FAKE_TERM_FORKS=%d", os.Getpid())
	t.Setenv("FAKE_TERM_FORKS", strconv.Itoa(os.Getpid()))
	p := play(t, spawnScript(`,"term_forks":true,"lifetime_ms":60000`))
	p.start()
	pid := p.worker()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "five more workers", func() bool { return len(p.workers(mark)) == 1+termForks })
	sessions := 0
	for _, w := range p.workers(mark) {
		killAtEnd(t, w)
		if s, ok := statOf(t, w); ok && s.session == w {
			sessions++
		}
	}
	if sessions != termForksSessions {
		t.Errorf("%d workers lead a session, want %d", sessions, termForksSessions)
	}
	if !alive(t, pid) {
		t.Error("the worker that forked is dead")
	}
}

func TestWorkerForkChain(t *testing.T) {
	mark := fmt.Sprintf("FAKE_FORK_CHAIN=%d", os.Getpid())
	t.Setenv("FAKE_FORK_CHAIN", strconv.Itoa(os.Getpid()))
	p := play(t, spawnScript(`,"fork_chain":true,"lifetime_ms":4000`))
	p.start()
	first := p.worker()
	seen := map[int]bool{first: true}
	eventually(t, "the chain goes on", func() bool {
		for _, pid := range p.workers(mark) {
			if s, ok := statOf(t, pid); ok && pid != first && s.session == pid {
				seen[pid] = true
			}
		}
		return len(seen) >= 4
	})
	if alive(t, first) {
		eventually(t, "the first one ends", func() bool { return !alive(t, first) })
	}
	eventually(t, "the chain ends with its lifetime", func() bool { return len(p.workers(mark)) == 0 })
}

func TestWorkerWritesAfterTheExit(t *testing.T) {
	tests := []struct {
		name, members string
		steps         []string
		first         int64
	}{
		{"next number", ``, nil, 6},
		{"given number", `,"writes_from_seq":8`, []string{samples["log"], samples["log"]}, 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spawn := `{"kind":"spawn_worker","hold_stdout":true,"escape":"setsid","writes_every_ms":5` + tt.members + `}`
			p := play(t, scriptOf(slices.Concat([]string{spawn}, tt.steps, []string{`{"kind":"await_command","command_type":"turn.steer"}`})...))
			p.start()
			p.worker()
			for range tt.steps {
				p.expect("log stdout: a")
			}
			p.say(protocol.TurnSteer, `{"text":"end"}`)
			p.exit(0)
			if p.seq != tt.first {
				t.Fatalf("the fake said %d messages", p.seq-1)
			}
			for range 3 {
				p.expect(`event item.delta  item_worker {"delta":"still here"}`)
			}
		})
	}
}

// A worker that somebody starts by hand says why it does not work.
func TestWorkerWithoutOrder(t *testing.T) {
	out, err := exec.Command(os.Args[0], WorkerCommand, "nonsense").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !bytes.Contains(out, []byte("expected the order")) {
		t.Errorf("%v: %s", err, out)
	}
}
