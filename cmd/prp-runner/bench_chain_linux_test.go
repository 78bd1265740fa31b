package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// binaries are what a benchmark starts, built from this tree.
type binaries struct{ runner, harness, flood string }

func build(b *testing.B) binaries {
	b.Helper()
	dir := b.TempDir()
	for _, pkg := range []string{".", "./testdata/flood", "../prp-harness"} {
		cmd := exec.Command("go", "build", "-o", dir+"/", pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	return binaries{
		runner: filepath.Join(dir, "prp-runner"), harness: filepath.Join(dir, "prp-harness"), flood: filepath.Join(dir, "flood"),
	}
}

// hang bounds the life of everything that a case starts: far more than it
// takes.
const hang = 2 * time.Minute

// chain is a harness behind a runner or a relay, as the controller sees it.
// Its reads and writes are plain blocking calls, so that what is measured is
// the chain and not this process.
type chain struct {
	b       *testing.B
	middle  *exec.Cmd // the runner or the relay, nil where there is none
	harness *exec.Cmd // nil where the runner starts it
	guard   int       // pid of the runner's guardian, 0 where there is none
	in      *os.File  // commands
	out     *lines    // what the controller reads
	seq     int       // controllerSeq of the last command
	extra   int       // lines that come beside those of the harness after begin
}

func pipe(b *testing.B) (r, w *os.File) {
	b.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		b.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe")
}

// launch starts a program between two of our pipe ends, which it closes.
func (c *chain) launch(stdin, stdout *os.File, argv ...string) *exec.Cmd {
	c.b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		c.b.Fatal(err)
	}
	timer := time.AfterFunc(hang, func() { _ = cmd.Process.Kill() })
	c.b.Cleanup(func() {
		timer.Stop()
		_ = cmd.Process.Kill() // ended long ago, but where a case has failed
		_ = cmd.Wait()
	})
	stdin.Close()
	stdout.Close()
	return cmd
}

var runnerIDs = []string{"--run-id", "run", "--session-id", "session", "--runner-id", "runner"}

// startRunner starts a runner and prepares its harness.
func startRunner(b *testing.B, bin binaries, harness ...string) *chain {
	b.Helper()
	c := &chain{b: b, extra: 2} // session.starting and a receipt
	theirIn, in := pipe(b)
	out, theirOut := pipe(b)
	c.in, c.out = in, newLines(out)
	argv := append([]string{bin.runner, "--harness", strings.Join(harness, " ")}, runnerIDs...)
	c.middle = c.launch(theirIn, theirOut, argv...)
	c.command("run.prepare", "{}")
	c.out.until(b, `"command_receipt"`)
	c.guard = childOf(c.middle.Process.Pid)
	return c
}

// startRelay starts a harness and, unless it is to be alone, a relay behind it.
func startRelay(b *testing.B, bin binaries, harness ...string) *chain {
	b.Helper()
	c := &chain{b: b}
	theirIn, in := pipe(b)
	relayIn, harnessOut := pipe(b)
	out, theirOut := pipe(b)
	c.in, c.out = in, newLines(out)
	c.harness = c.launch(theirIn, harnessOut, harness...)
	c.middle = c.launch(relayIn, theirOut, bin.flood, "relay")
	c.out.until(b, `"ready"`)
	return c
}

// line is the text of the next command.
func (c *chain) line(typ, payload string) string {
	c.seq++
	return fmt.Sprintf(`{"schema":"paperclip.prp.command.v1","commandId":"c%d","controllerSeq":%d,"type":%q,"issuedAt":"2026-01-01T00:00:00Z","payload":%s}`+"\n",
		c.seq, c.seq, typ, payload)
}

func (c *chain) command(typ, payload string) { c.write(c.line(typ, payload)) }

func (c *chain) write(text string) {
	c.b.Helper()
	if _, err := unix.Write(int(c.in.Fd()), []byte(text)); err != nil {
		c.b.Fatal(err)
	}
}

// begin has the harness do its work.
func (c *chain) begin() {
	c.b.Helper()
	if c.harness == nil {
		c.command("session.open", "{}")
	} else {
		c.write("\n")
	}
}

// end closes the chain and checks that it ended as it should.
func (c *chain) end() {
	c.b.Helper()
	c.in.Close()
	c.out.rest(c.b)
	c.out.in.Close()
	for _, cmd := range []*exec.Cmd{c.middle, c.harness} {
		if cmd == nil {
			continue
		}
		if err := cmd.Wait(); err != nil {
			c.b.Fatalf("%v: %v", cmd.Args, err)
		}
	}
	if c.harness == nil && !bytes.Contains(c.out.last(), []byte(`"eventType":"run.terminal"`)) {
		c.b.Fatalf("the last line is no terminal: %.300q", c.out.last())
	}
}

// lines is a reader that counts lines and costs little.
type lines struct {
	in    *os.File
	buf   []byte
	end   int // of what was read into buf
	reads int
	count int
}

const (
	readBytes  = 64 << 10  // what a pipe gives at most
	tailBytes  = 128 << 10 // of what was read are kept: more than the longest line
	checkEvery = 64        // of so many reads the first whole line is checked
)

func newLines(in *os.File) *lines { return &lines{in: in, buf: make([]byte, 4*tailBytes)} }

// read reads once. The bytes are valid until the next read.
func (l *lines) read(b *testing.B) []byte {
	if l.end+readBytes > len(l.buf) {
		l.end = copy(l.buf, l.buf[l.end-tailBytes:l.end])
	}
	n, err := unix.Read(int(l.in.Fd()), l.buf[l.end:l.end+readBytes])
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(int(l.in.Fd()), l.buf[l.end:l.end+readBytes])
	}
	if err != nil {
		b.Fatal(err)
	}
	chunk := l.buf[l.end : l.end+n]
	l.end += n
	l.count += bytes.Count(chunk, []byte("\n"))
	if l.reads++; l.reads%checkEvery == 0 {
		l.check(b, chunk)
	}
	return chunk
}

// check looks closely at one line of a chunk.
func (l *lines) check(b *testing.B, chunk []byte) {
	b.Helper()
	_, rest, _ := bytes.Cut(chunk, []byte("\n"))
	if line, _, whole := bytes.Cut(rest, []byte("\n")); whole && !json.Valid(line) {
		b.Fatalf("expected JSON, got %.300q", line)
	}
}

// to reads until n lines have come in all, and reports false at the end of
// the input.
func (l *lines) to(b *testing.B, n int) bool {
	b.Helper()
	for l.count < n {
		if len(l.read(b)) == 0 {
			return false
		}
	}
	return true
}

// until reads until a line with this text is whole.
func (l *lines) until(b *testing.B, text string) {
	b.Helper()
	for {
		if _, after, ok := bytes.Cut(l.kept(), []byte(text)); ok && bytes.Contains(after, []byte("\n")) {
			return
		}
		if len(l.read(b)) == 0 {
			b.Fatalf("expected %q before the end, got %.2000q", text, l.kept())
		}
	}
}

// rest reads to the end.
func (l *lines) rest(b *testing.B) {
	b.Helper()
	for len(l.read(b)) > 0 {
	}
}

// kept is the end of what was read.
func (l *lines) kept() []byte { return l.buf[max(0, l.end-tailBytes):l.end] }

// last is the last line.
func (l *lines) last() []byte {
	t := bytes.TrimSuffix(l.kept(), []byte("\n"))
	return t[bytes.LastIndexByte(t, '\n')+1:]
}

// lastNumber is the last value of a member in what was kept.
func (l *lines) lastNumber(name string) int {
	t := string(l.kept())
	_, after, _ := strings.Cut(t[max(0, strings.LastIndex(t, name)):], ":")
	n, _ := strconv.Atoi(after[:max(0, strings.IndexAny(after, ",}"))])
	return n
}

// cpu is what a process has used so far, user and system.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	// The number of another process's CPU clock, see clock_getcpuclockid(3).
	const scheduled = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|scheduled, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// childOf is the first child of a process, 0 for none.
func childOf(pid int) int {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		text, _ := os.ReadFile(name)
		// Behind the name in parentheses: the state and the parent.
		f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(f) > 1 && f[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(strings.Split(name, "/")[2])
			return child
		}
	}
	return 0
}

// status is a number of /proc/PID/status or of a task's; false where the
// process is gone.
func status(path, member string) (int, bool) {
	text, err := os.ReadFile(filepath.Join(path, "status"))
	if err != nil {
		return 0, false
	}
	_, after, ok := strings.Cut(string(text), "\n"+member+":")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.Fields(after)[0])
	return n, err == nil
}

// peak is the peak of a process's memory, in KiB.
func peak(pid int) (int, bool) { return status(fmt.Sprintf("/proc/%d", pid), "VmHWM") }

// wakes is how often the threads of processes have gone to sleep so far.
func wakes(pids ...int) int {
	sum := 0
	for _, pid := range pids {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		for _, task := range tasks {
			n, _ := status(task, "voluntary_ctxt_switches")
			sum += n
		}
	}
	return sum
}
