//go:build unix

package child

import (
	"errors"
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
)

// role in the environment makes the test binary something else.
const role = "PRP_TEST_CHILD_ROLE"

// hang is far longer than anything here takes; it only ends a test that hangs.
const hang = 60 * time.Second

func TestMain(m *testing.M) {
	switch r := os.Getenv(role); {
	case strings.HasPrefix(r, "mirror "):
		status, signal, _ := strings.Cut(strings.TrimPrefix(r, "mirror "), " ")
		var e Exit
		e.Status, _ = strconv.Atoi(status)
		e.Signal, _ = strconv.Atoi(signal)
		os.Exit(Mirror(e))
	}
	os.Exit(m.Run())
}

func start(t *testing.T, o Options) *Child {
	t.Helper()
	c, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

func shell(t *testing.T, script string) *Child {
	t.Helper()
	return start(t, Options{Argv: []string{"sh", "-c", script}})
}

// end waits for the exit.
func end(t *testing.T, c *Child) Exit {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(hang):
		t.Fatal("the program did not end")
	}
	return c.Exit()
}

// all reads an output to its end.
func all(t *testing.T, o *Output) string {
	t.Helper()
	type result struct {
		data []byte
		err  error
	}
	got := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(o)
		got <- result{data, err}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			t.Fatal(r.err)
		}
		return string(r.data)
	case <-time.After(hang):
		t.Fatal("the output did not end")
		return ""
	}
}

func TestOutputAndExit(t *testing.T) {
	c := shell(t, `echo out; echo err >&2; exit 3`)
	if out, notes := all(t, c.Stdout), all(t, c.Stderr); out != "out\n" || notes != "err\n" {
		t.Errorf("stdout %q, stderr %q", out, notes)
	}
	if e := end(t, c); e != (Exit{Status: 3}) || e.String() != "status 3" {
		t.Errorf("the exit is %v", e)
	}
	c.Interrupt() // long gone: nobody is hit
	c.Terminate()
	c.Kill()
}

func TestStdin(t *testing.T) {
	c := start(t, Options{Argv: []string{"cat"}, Input: true})
	fmt.Fprint(c.Stdin, "hello")
	c.Stdin.Close()
	if out := all(t, c.Stdout); out != "hello" {
		t.Errorf("stdout %q", out)
	}
	empty := start(t, Options{Argv: []string{"cat"}})
	if out := all(t, empty.Stdout); out != "" || !end(t, empty).Success() {
		t.Errorf("stdout %q, exit %v", out, empty.Exit())
	}
}

// TestNothingIsLost: what was written before the exit is read though a
// descendant holds the pipe, and that descendant delays nothing.
func TestNothingIsLost(t *testing.T) {
	for range 20 {
		c := shell(t, `sleep 300 & head -c 60000 /dev/zero | tr '\0' x; echo $!`)
		end(t, c) // only now is it read
		out := all(t, c.Stdout)
		pid := strings.TrimLeft(out, "x")
		if n := len(out) - len(pid); n != 60000 {
			t.Fatalf("%d bytes were read, want 60000", n)
		}
		killPID(t, strings.TrimSpace(pid))
	}
}

// TestFloodByADescendant: a descendant that writes for ever does not keep the
// output from ending.
func TestFloodByADescendant(t *testing.T) {
	c := shell(t, `yes & echo $! >&2`)
	pid := strings.TrimSpace(all(t, c.Stderr))
	n := len(all(t, c.Stdout))
	if n > 64*maxPipe { // what was read before the exit is not bounded
		t.Errorf("%d bytes were read", n)
	}
	killPID(t, pid)
}

func killPID(t *testing.T, text string) {
	t.Helper()
	pid, err := strconv.Atoi(text)
	if err != nil || pid < 2 {
		t.Fatalf("expected a pid, got %q", text)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}

func TestSignals(t *testing.T) {
	tests := []struct {
		name string
		send func(*Child)
		want Exit
	}{
		{"interrupt", (*Child).Interrupt, Exit{Signal: int(syscall.SIGINT)}},
		{"terminate", (*Child).Terminate, Exit{Signal: int(syscall.SIGTERM)}},
		{"kill", (*Child).Kill, Exit{Signal: int(syscall.SIGKILL)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, Options{Argv: []string{"sleep", "300"}})
			tt.send(c)
			if e := end(t, c); e != tt.want {
				t.Errorf("the exit is %v, want %v", e, tt.want)
			}
		})
	}
}

func TestTerminateReachesAStoppedProgram(t *testing.T) {
	c := shell(t, `trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done`)
	ready := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(c.Stdout, ready); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(c.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.Terminate()
	if e := end(t, c); e != (Exit{Status: 42}) {
		t.Errorf("the exit is %v", e)
	}
}

// TestSameSession: the program is in our process group, where the runner's
// signals and its sweep reach it.
func TestSameSession(t *testing.T) {
	c := start(t, Options{Argv: []string{"sleep", "300"}})
	group, err := syscall.Getpgid(c.PID())
	if err != nil || group != syscall.Getpgrp() {
		t.Errorf("group %d, %v, want %d", group, err, syscall.Getpgrp())
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		argv   []string
		status int
		want   string
	}{
		{"none", nil, StatusNotFound, "expected a program"},
		{"missing", []string{"/no/such/program"}, StatusNotFound, `start "/no/such/program"`},
		{"missing name", []string{"no-such-program-here"}, StatusNotFound, "not found"},
		{"directory", []string{dir}, StatusNotExecutable, "start"},
		{"not executable", []string{plain}, StatusNotExecutable, "permission denied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Start(Options{Argv: tt.argv})
			var e *StartError
			if !errors.As(err, &e) || c != nil || e.Status != tt.status || !strings.Contains(e.Error(), tt.want) {
				t.Errorf("%v, %v; want status %d and %q", c, err, tt.status, tt.want)
			}
		})
	}
}

// TestTextFileBusy: a file that is open for writing elsewhere for a moment is
// waited for.
func TestTextFileBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "busy")
	data, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skipf("no /bin/true: %v", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*busyWait, func() { f.Close() })
	c := start(t, Options{Argv: []string{path}})
	if e := end(t, c); !e.Success() {
		t.Errorf("the exit is %v", e)
	}
}

func TestMirror(t *testing.T) {
	for _, want := range []Exit{
		{},
		{Status: 1},
		{Status: 137},
		{Status: 255},
		{Signal: int(syscall.SIGINT)},
		{Signal: int(syscall.SIGTERM)},
		{Signal: int(syscall.SIGKILL)},
		{Signal: int(syscall.SIGHUP)},
		{Signal: int(syscall.SIGABRT)},
		{Signal: int(syscall.SIGSEGV)},
		{Signal: int(syscall.SIGPIPE)},
		{Signal: int(syscall.SIGQUIT)},
		{Signal: int(syscall.SIGUSR1)},
	} {
		t.Run(want.String(), func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=mirror %d %d", role, want.Status, want.Signal), "GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := exitOf(cmd.ProcessState); got != want || len(out) > 0 {
				t.Errorf("mirrored as %v, want %v; output %q", got, want, out)
			}
			if w := cmd.ProcessState.Sys().(syscall.WaitStatus); w.CoreDump() {
				t.Error("a core was dumped")
			}
		})
	}
	t.Run("a signal that does not end", func(t *testing.T) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=mirror 0 %d", role, syscall.SIGCHLD))
		_ = cmd.Run()
		if got := exitOf(cmd.ProcessState); got != (Exit{Status: 1}) {
			t.Errorf("mirrored as %v, want status 1", got)
		}
	})
}
