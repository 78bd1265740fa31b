package process

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

// TestStartFailures is F14: each cause is named, nothing is left, and the next
// start works.
func TestStartFailures(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	busy := file("busy", "#!/bin/sh\n", 0o755)
	script, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(busy, script, 0o755); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(busy, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	file("onpath", "", 0o644)
	rows := []struct {
		name string
		spec Spec
		want string
		err  error
	}{
		{"no command", Spec{}, "expected a command", nil},
		{"missing", Spec{Argv: []string{"/nonexistent/harness"}}, "does not exist", syscall.ENOENT},
		{"not in PATH", Spec{Argv: []string{"nosuchharness"}, Env: testEnv}, "not found in PATH", syscall.ENOENT},
		{"no PATH", Spec{Argv: []string{"sh"}}, "expected a PATH", syscall.ENOENT},
		{"relative PATH", Spec{Argv: []string{"sh"}, Env: []string{"PATH=.:bin:"}, Dir: "/bin"}, "not found in PATH", syscall.ENOENT},
		{"directory", Spec{Argv: []string{dir}}, "is a directory", syscall.EACCES},
		{"not executable", Spec{Argv: []string{file("plain", "#!/bin/sh\n", 0o644)}}, "is not executable", syscall.EACCES},
		{"not executable in PATH", Spec{Argv: []string{"onpath"}, Env: []string{"PATH=" + dir}}, "is not executable", syscall.EACCES},
		{"empty file", Spec{Argv: []string{file("empty", "", 0o755)}}, "the file is empty", syscall.ENOEXEC},
		{"bad interpreter", Spec{Argv: []string{file("interp", "#!/nonexistent/sh -x\n", 0o755)}}, `bad interpreter "/nonexistent/sh"`, syscall.ENOENT},
		{"text busy", Spec{Argv: []string{busy}}, "open for writing elsewhere", syscall.ETXTBSY},
		{"too long", Spec{Argv: []string{"/bin/true", strings.Repeat("x", 4<<20)}}, "too long", syscall.E2BIG},
		{"NUL", Spec{Argv: []string{"/bin/true", "a\x00b"}}, "NUL byte", nil},
		{"NUL in environment", Spec{Argv: []string{"/bin/true"}, Env: []string{"A=secret\x00"}}, "NUL byte", nil},
		{"no directory", Spec{Argv: []string{"/bin/true"}, Dir: "/nonexistent"}, "working directory", syscall.ENOENT},
		{"directory is a file", Spec{Argv: []string{"/bin/true"}, Dir: busy}, "expected a directory, found a file", nil},
	}
	for _, o := range []Options{{}, {noGuardian: true}} {
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				c, err := s.Start(row.spec)
				var e *StartError
				if c != nil || !errors.As(err, &e) {
					t.Fatalf("got %v, %v, want a StartError", c, err)
				}
				if !strings.Contains(e.Error(), row.want) {
					t.Errorf("error %q, want it to say %q", e, row.want)
				}
				if row.err != nil && !errors.Is(err, row.err) {
					t.Errorf("error %#v, want %v within", e.Err, row.err)
				}
				if strings.Contains(e.Error(), "secret") {
					t.Errorf("error %q shows a value of the environment", e)
				}
			})
		}
		c, err := s.Start(Spec{Argv: []string{"/bin/true"}})
		if err != nil {
			t.Fatalf("a start after the failures: %v", err)
		}
		receive(t, c.Exited(), "the exit")
		c.Kill()
		receive(t, c.Gone(), "the end")
		closeAll([]*os.File{c.Stdin, c.Stdout, c.Stderr})
		if _, err := s.Start(Spec{Argv: []string{"/bin/true"}}); err == nil {
			t.Error("a second child was started")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTextBusyForAMoment: a file that is closed in time is started.
func TestTextBusyForAMoment(t *testing.T) {
	text, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fresh")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(busyPatience/3, func() { w.Close() })
	r := start(t, Options{}, path)
	if e := r.exit(t); e != (Exit{}) {
		t.Errorf("exit %+v, want code 0", e)
	}
	r.Kill()
	r.gone(t)
}

// TestNoDescriptorsLeft is F14: the runner has no descriptors for the pipes.
func TestNoDescriptorsLeft(t *testing.T) {
	const tight, roomy = 12, 20 // below, a shell and Go's runtime have no room themselves
	failures := 0
	for limit := tight; limit <= roomy; limit++ {
		cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" role:runner all /bin/true`, limit), self(t))
		cmd.Env = testEnv
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, "close")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("limit %d: %v: %s", limit, err, out)
		}
		if strings.Contains(string(out), "failed") {
			failures++
			if !strings.Contains(string(out), "no file descriptors left") {
				t.Errorf("limit %d: the runner said %q, want the cause", limit, out)
			}
		}
	}
	if failures == 0 {
		t.Error("no limit was low enough for a start to fail")
	}
}

// output runs a helper whose harness is argv and gives what the harness wrote.
func output(t *testing.T, cmd *exec.Cmd) []string {
	t.Helper()
	h := launchHelper(t, cmd)
	h.expect(t, "started")
	var out []string
	for {
		select {
		case line, ok := <-h.lines:
			if !ok {
				t.Fatal("the runner ended early")
			}
			if text, ok := strings.CutPrefix(line, "out "); ok {
				out = append(out, text)
			}
			if line == "eof" {
				h.say("close")
				h.expect(t, "closed")
				return out
			}
		case <-time.After(hang):
			t.Fatal("the harness did not end")
		}
	}
}

var helperModes = []string{"all", "nocgroup,noguardian"}

// TestDescriptors is F20: the runner is started with 7, 10 and 63 open, and the
// harness has 0, 1 and 2.
func TestDescriptors(t *testing.T) {
	for _, mode := range helperModes {
		cmd := helperCmd(t, mode, "/bin/sh", "-c",
			`i=0; while [ $i -lt 1024 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done`)
		null, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		cmd.ExtraFiles = make([]*os.File, 61)
		for _, fd := range []int{7, 10, 63} {
			cmd.ExtraFiles[fd-3] = null
		}
		if out := output(t, cmd); strings.Join(out, " ") != "0 1 2" {
			t.Errorf("%s: open descriptors %q, want 0, 1 and 2", mode, out)
		}
	}
}

// TestSignalState: dispositions are at default and the mask is empty, whatever
// the launcher had.
func TestSignalState(t *testing.T) {
	for _, mode := range helperModes {
		cmd := helperCmd(t, mode, "/bin/cat", "/proc/self/status")
		cmd.Args = append([]string{cmd.Args[0], "role:launcher", cmd.Path}, cmd.Args[1:]...)
		seen := 0
		for _, line := range output(t, cmd) {
			name, value, _ := strings.Cut(line, ":")
			if name == "SigBlk" || name == "SigIgn" {
				seen++
				if bits, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64); err != nil || bits != 0 {
					t.Errorf("%s: %s, want none", mode, line)
				}
			}
		}
		if seen != 2 {
			t.Errorf("%s: saw %d of 2 signal sets", mode, seen)
		}
	}
	// The control: the launcher does ignore and block.
	cmd := exec.Command(self(t), "role:launcher", "/bin/cat", "/proc/self/status")
	out, err := cmd.Output()
	if err != nil || strings.Contains(string(out), "SigIgn:\t0000000000000000") || strings.Contains(string(out), "SigBlk:\t0000000000000000") {
		t.Errorf("the launcher ignores or blocks nothing (%v): %s", err, out)
	}
}

// TestSession: a session and group of its own, and no controlling terminal.
func TestSession(t *testing.T) {
	for _, mode := range helperModes {
		out := output(t, helperCmd(t, mode, "/bin/sh", "-c", `cat /proc/$$/stat; :`))
		if len(out) != 1 {
			t.Fatalf("%s: %q", mode, out)
		}
		f := strings.Fields(out[0][strings.LastIndexByte(out[0], ')')+1:])
		pid, _, _ := strings.Cut(out[0], " ")
		if f[2] != pid || f[3] != pid || f[4] != "0" {
			t.Errorf("%s: pid %s has group %s, session %s, terminal %s", mode, pid, f[2], f[3], f[4])
		}
	}
}

// TestInherited: limits, umask, directory and OOM score are the runner's own.
func TestInherited(t *testing.T) {
	const ask = `umask; pwd; ulimit -Sn; ulimit -Hn; ulimit -c; cat /proc/self/oom_score_adj`
	const launch = `umask 027; cd /tmp; ulimit -Sn 123; ulimit -Hn 4567; ulimit -c 0; `
	plain := exec.Command("/bin/sh", "-c", launch+ask)
	plain.Env = testEnv
	want, err := plain.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range helperModes {
		cmd := helperCmd(t, mode, "/bin/sh", "-c", ask)
		cmd.Args = append([]string{"/bin/sh", "-c", launch + `exec "$0" "$@"`}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = "/bin/sh"
		if got := strings.Join(output(t, cmd), "\n") + "\n"; got != string(want) {
			t.Errorf("%s: the harness has\n%swant\n%s", mode, got, want)
		}
	}
}

// TestEnvironmentIsWhole is F21 at this level: byte for byte what was given.
func TestEnvironmentIsWhole(t *testing.T) {
	var env []string
	for i := range 300 {
		env = append(env, fmt.Sprintf("NAME_%d=value %d\nwith a second line \xff", i, i))
	}
	env = append(env, "LARGE="+strings.Repeat("x", 100<<10), "EMPTY=")
	eachMode(t, func(t *testing.T, o Options) {
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c, err := s.Start(Spec{Argv: []string{"/bin/cat", "/proc/self/environ"}, Env: env, Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll([]*os.File{c.Stdin, c.Stdout, c.Stderr})
		c.Stdout.SetReadDeadline(time.Now().Add(hang))
		got, err := io.ReadAll(c.Stdout)
		if err != nil || string(got) != strings.Join(env, "\x00")+"\x00" {
			t.Errorf("read %d bytes of environment (%v), want the %d that were given", len(got), err, len(strings.Join(env, "\x00"))+1)
		}
	})
}

// TestDeadlines: our pipe ends know deadlines, the harness's ends block.
func TestDeadlines(t *testing.T) {
	r := start(t, Options{}, "/bin/sh", "-c", "read x; echo got $x; sleep 1000")
	r.Stdout.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := r.Stdout.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read gave %v, want the deadline", err)
	}
	r.Stdout.SetReadDeadline(time.Now().Add(hang))
	r.Stdin.WriteString("this\n")
	r.expect(t, "got this")
	r.Kill()
	r.gone(t)
}
