package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hang is when a test gives up: far beyond what any machine needs.
const hang = 2 * time.Minute

// self is this test binary.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// testEnv is the environment of harnesses and runners; GORACE keeps a build
// with the race detector from sleeping for a second when it exits.
var testEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "GORACE=atexit_sleep_ms=0"}

// life is a FIFO whose write end the harness opens and every descendant
// inherits: it has no writer once all are dead.
type life struct {
	path string
	fd   int
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{path: filepath.Join(t.TempDir(), "life")}
	if err := unix.Mkfifo(l.path, 0o666); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(l.path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.fd = fd
	t.Cleanup(func() { unix.Close(fd) })
	return l
}

// lives tells that somebody has the write end.
func (l *life) lives() bool {
	n, err := unix.Read(l.fd, make([]byte, 1))
	return err == unix.EAGAIN || n > 0
}

// await waits until nobody has it.
func (l *life) await(t *testing.T, bound time.Duration) {
	t.Helper()
	for end := time.Now().Add(bound); l.lives(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a descendant lives after %v", bound)
		}
	}
}

// script is a shell harness whose tree holds l.
func script(l *life, body string) []string {
	return []string{"/bin/sh", "-c", "exec 9>" + l.path + "\n" + body}
}

// run is a supervisor of this process with a started child.
type run struct {
	s *Supervisor
	*Child
	out *bufio.Reader
}

func start(t *testing.T, o Options, argv ...string) *run {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		sweepStrays()
	})
	c, err := s.Start(Spec{Argv: argv, Env: testEnv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Stdin.Close()
		c.Stdout.Close()
		c.Stderr.Close()
	})
	c.Stdout.SetReadDeadline(time.Now().Add(hang))
	return &run{s: s, Child: c, out: bufio.NewReader(c.Stdout)}
}

// expect reads one line of the harness.
func (r *run) expect(t *testing.T, want string) {
	t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		t.Fatalf("harness said %q (%v), want %q", line, err, want)
	}
}

func (r *run) exit(t *testing.T) Exit {
	t.Helper()
	return receive(t, r.Exited(), "the exit")
}

func (r *run) gone(t *testing.T) Containment {
	t.Helper()
	return receive(t, r.Gone(), "the end")
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(hang):
		t.Fatalf("%s did not come within %v", what, hang)
		panic("unreachable")
	}
}

// sweepStrays ends what a control has left behind: this process is a
// subreaper, so it has come to us.
func sweepStrays() {
	t := strayTree()
	defer t.close()
	t.sweep(time.Now().Add(hang))
}

func strayTree() *tree {
	t := newTree(newOrder(), func(Exit) {})
	t.children, t.exitSeen = watchChildren(), true
	t.since = startOf(t.proc, t.self)
	return t
}

// awaitNoStrays waits until everything that has come to this process as the
// subreaper is dead.
func awaitNoStrays(t *testing.T, bound time.Duration) {
	t.Helper()
	tr := strayTree()
	defer tr.close()
	for end := time.Now().Add(bound); ; time.Sleep(time.Millisecond) {
		var left []string
		tr.each(func(s stat, direct bool) {
			if !s.dead() {
				left = append(left, fmt.Sprintf("%d %s", s.pid, tr.proc.comm(s.pid)))
			} else if direct {
				reap(s.pid)
			}
		})
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			sweepStrays()
			t.Fatalf("after %v these live: %q", bound, left)
		}
	}
}

// beSubreaper makes this process adopt orphans, as Open would.
func beSubreaper(t *testing.T) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}

// helper is a runner in a process of its own.
type helper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
}

// helperCmd prepares a runner; the test may still change how it is launched.
func helperCmd(t *testing.T, opts string, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(self(t), append([]string{"role:runner", opts}, argv...)...)
	cmd.Env = testEnv
	cmd.Stderr = os.Stderr
	return cmd
}

func launchHelper(t *testing.T, cmd *exec.Cmd) *helper {
	t.Helper()
	beSubreaper(t)
	h := &helper{cmd: cmd, lines: make(chan string, 64)}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.stdin = stdin
	// A pipe of our own: what a killed runner leaves behind must not keep
	// Wait from returning.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	startOwned(t, cmd)
	w.Close()
	go func() {
		defer r.Close()
		defer close(h.lines)
		for in := bufio.NewScanner(r); in.Scan(); {
			h.lines <- in.Text()
		}
	}()
	t.Cleanup(func() { h.kill() })
	return h
}

// startOwned starts a process that no sweep of this one may take for an
// adopted one.
func startOwned(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	_, err := owned.birth(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kill ends the runner with SIGKILL and reaps it.
func (h *helper) kill() {
	h.cmd.Process.Kill()
	h.cmd.Wait()
	owned.remove(h.cmd.Process.Pid)
	for range h.lines {
	}
}

func (h *helper) say(line string) { fmt.Fprintln(h.stdin, line) }

// expect waits for a line that begins with word and gives its other fields.
// Lines of other kinds that come before are passed over.
func (h *helper) expect(t *testing.T, word string) []string {
	t.Helper()
	for {
		select {
		case line, ok := <-h.lines:
			if !ok {
				t.Fatalf("the runner ended before it said %q", word)
			}
			fields := strings.Fields(line)
			if len(fields) > 0 && fields[0] == word {
				return fields[1:]
			}
			if len(fields) > 0 && fields[0] == "failed" {
				t.Fatal(line)
			}
		case <-time.After(hang):
			t.Fatalf("the runner did not say %q within %v", word, hang)
		}
	}
}

// cpu is the processor time that a process has used.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	const utime, tick = 11, 10 * time.Millisecond // counted from the state on
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	total := 0
	for _, f := range fields[utime : utime+2] {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return time.Duration(total) * tick
}

// alive tells a process that is there and not a zombie.
func alive(pid int) bool {
	p := openProc()
	defer p.close()
	s, ok := p.stat(pid)
	return ok && !s.dead()
}

// bystander is a process of ours that nobody may hit.
func bystander(t *testing.T, sys *syscall.SysProcAttr) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.SysProcAttr = sys
	startOwned(t, cmd)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		owned.remove(cmd.Process.Pid)
	})
	return cmd
}

// burden keeps both processors busy while a test runs.
func burden(t *testing.T) {
	t.Helper()
	const burners = 3
	for range burners {
		cmd := exec.Command(self(t), "role:burn")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		startOwned(t, cmd)
		t.Cleanup(func() {
			in.Close()
			cmd.Wait()
			owned.remove(cmd.Process.Pid)
		})
	}
}
