//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"prp/protocol"
)

const (
	// patience bounds what should take no time at all, on a loaded machine.
	patience = 60 * time.Second
	// memoryBound is the most memory that the runner may ever take, in KiB.
	memoryBound = 16 << 10

	testRun     = "run_1"
	testSession = "session_1"
	testRunner  = "runner_1"
)

// setup is how a runner is started; the zero value has pipes everywhere.
type setup struct {
	harness string   // of --harness; empty where flags name it
	flags   []string // after those that every run has
	env     []string
	words   []string // before the runner's path, such as a shell that execs it
	stdin   *os.File // the runner's end, given by the test; closed after the start
	stdout  *os.File
	stderr  *os.File
	extra   []*os.File
	group   bool // in a process group of its own
	unread  bool // stdout is not read before r.read is called
	watch   bool // follow the peak of its memory
}

// run is a runner under test and all that it has said.
type run struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  *os.File // our ends; nil where the test gave its own
	stdout *os.File
	mark   string
	errors *os.File
	exited chan struct{} // closed when the process has been waited for
	seq    int64         // of the last command that send numbered

	peak atomic.Int64 // KiB, where watched

	mu    sync.Mutex
	news  chan struct{} // closed and replaced whenever something was read
	lines [][]byte
	msgs  []protocol.StreamMessage
	bad   []string // invariants that were broken while reading
	ended bool     // stdout has ended
}

var marks atomic.Int64

// start starts a runner; its end is the end of the test at the latest.
func start(t *testing.T, s setup) *run {
	t.Helper()
	r := &run{t: t, exited: make(chan struct{}), news: make(chan struct{})}
	r.mark = fmt.Sprintf("PRP_TEST_MARK=%d-%d.", os.Getpid(), marks.Add(1))
	args := append([]string{}, s.words...)
	args = append(args, runnerBin, "--run-id", testRun, "--session-id", testSession, "--runner-id", testRunner,
		"--env-allow", "PRP_TEST_MARK")
	if s.harness != "" {
		args = append(args, "--harness", s.harness)
	}
	args = append(args, s.flags...)
	r.cmd = exec.Command(args[0], args[1:]...)
	r.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), r.mark, "GORACE=atexit_sleep_ms=0"}, s.env...)
	r.cmd.ExtraFiles = s.extra
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: s.group}
	r.connect(s)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, end := range []any{r.cmd.Stdin, r.cmd.Stdout} {
		end.(*os.File).Close()
	}
	go func() {
		r.cmd.Wait()
		close(r.exited)
	}()
	t.Cleanup(r.clean)
	if s.watch {
		go r.watchPeak()
	}
	if s.stdout == nil && !s.unread {
		r.read()
	}
	return r
}

// connect gives the runner its three files.
func (r *run) connect(s setup) {
	if s.stdin == nil {
		theirs, ours := pipe(r.t)
		s.stdin, r.stdin = theirs, ours
	}
	if s.stdout == nil {
		ours, theirs := pipe(r.t)
		s.stdout, r.stdout = theirs, ours
	}
	if s.stderr == nil {
		f, err := os.CreateTemp(r.t.TempDir(), "stderr")
		if err != nil {
			r.t.Fatal(err)
		}
		s.stderr, r.errors = f, f
	}
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = s.stdin, s.stdout, s.stderr
}

func pipe(t *testing.T) (read, write *os.File) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	return read, write
}

// clean ends what a failed test has left.
func (r *run) clean() {
	select {
	case <-r.exited:
	default:
		r.cmd.Process.Kill()
		<-r.exited
	}
	if r.errors != nil {
		r.errors.Close()
	}
}

// read begins to read stdout.
func (r *run) read() { r.readFrom(r.stdout) }

func (r *run) readFrom(f io.Reader) {
	go func() {
		decoder := protocol.NewDecoder()
		buffered := bufio.NewReaderSize(f, 64<<10)
		for {
			line, err := buffered.ReadBytes('\n')
			if len(line) > 0 {
				r.took(decoder, line)
			}
			if err != nil {
				break
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = true
		r.tell()
	}()
}

// took checks one line and keeps it.
func (r *run) took(decoder *protocol.Decoder, line []byte) {
	var bad []string
	m, err := decoder.Stream(bytes.TrimSuffix(line, []byte("\n")))
	switch {
	case !bytes.HasSuffix(line, []byte("\n")):
		bad = append(bad, fmt.Sprintf("a line without an end: %.200q", line))
	case err != nil:
		bad = append(bad, fmt.Sprintf("%v: %.200q", err, line))
	case !json.Valid(line):
		bad = append(bad, fmt.Sprintf("not valid JSON: %.200q", line))
	}
	if m.Event != nil && m.Event.EventType == protocol.EventRunTerminal {
		for _, p := range ofHarness(r.cmd.Process.Pid, r.mark) {
			bad = append(bad, "alive when run.terminal was read: "+p.String())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = append(r.bad, bad...)
	r.lines = append(r.lines, line)
	r.msgs = append(r.msgs, m)
	r.tell()
}

func (r *run) tell() {
	close(r.news)
	r.news = make(chan struct{})
}

// until waits until done holds of what was read; done may look at r.msgs.
func (r *run) until(what string, done func() bool) {
	r.t.Helper()
	limit := time.After(patience)
	for {
		r.mu.Lock()
		ok, ended, news := done(), r.ended, r.news
		r.mu.Unlock()
		if ok {
			return
		}
		if ended {
			r.t.Fatalf("stdout ended before %s\n%s", what, r.tail())
		}
		select {
		case <-news:
		case <-limit:
			r.t.Fatalf("no %s within %s\n%s", what, patience, r.tail())
		}
	}
}

// tail shows the last lines that were read and what stands on stderr.
func (r *run) tail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, line := range r.lines[max(0, len(r.lines)-8):] {
		fmt.Fprintf(&b, "  %.300s\n", bytes.TrimSpace(line))
	}
	return b.String() + r.complaints()
}

// complaints is what the runner wrote to stderr.
func (r *run) complaints() string {
	if r.errors == nil {
		return ""
	}
	text, _ := os.ReadFile(r.errors.Name())
	return string(text)
}

// await waits for the first message that fits.
func (r *run) await(what string, fits func(protocol.StreamMessage) bool) (found protocol.StreamMessage) {
	r.t.Helper()
	at := 0
	r.until(what, func() bool {
		for ; at < len(r.msgs); at++ {
			if fits(r.msgs[at]) {
				found = r.msgs[at]
				return true
			}
		}
		return false
	})
	return found
}

// event waits for the first event of a type.
func (r *run) event(t protocol.EventType) *protocol.Event {
	r.t.Helper()
	return r.await("event "+string(t), func(m protocol.StreamMessage) bool {
		return m.Event != nil && m.Event.EventType == t
	}).Event
}

// answers waits for n receipts of a command.
func (r *run) answers(id string, n int) []protocol.Receipt {
	r.t.Helper()
	var got []protocol.Receipt
	at := 0
	r.until(fmt.Sprintf("receipt %d of %s", n, id), func() bool {
		for ; at < len(r.msgs); at++ {
			if m := r.msgs[at].Receipt; m != nil && m.CommandID == id {
				got = append(got, *m)
			}
		}
		return len(got) >= n
	})
	return got
}

// answer waits for the receipt of a command.
func (r *run) answer(id string) protocol.Receipt {
	r.t.Helper()
	return r.answers(id, 1)[0]
}

// signal sends a signal to the runner.
func (r *run) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Errorf("send %v to the runner: %v", sig, err)
	}
}

// watchPeak follows the peak of the runner's memory until it exits.
func (r *run) watchPeak() {
	const interval = 20 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if n := int64(statusKiB(r.cmd.Process.Pid, "VmHWM")); n > r.peak.Load() {
			r.peak.Store(n)
		}
		select {
		case <-r.exited:
			return
		case <-tick.C:
		}
	}
}

// checkPeak fails where the runner took more memory than it may.
func (r *run) checkPeak() {
	r.t.Helper()
	r.t.Logf("peak memory of the runner: %d KiB", r.peak.Load())
	if r.peak.Load() > memoryBound && !*raceRunner {
		r.t.Errorf("the runner took %d KiB, want at most %d", r.peak.Load(), memoryBound)
	}
}

// waitExit waits for the process and returns its exit status.
func (r *run) waitExit() int {
	r.t.Helper()
	select {
	case <-r.exited:
	case <-time.After(patience):
		r.t.Fatalf("the runner did not exit within %s\n%s", patience, r.tail())
	}
	if ws, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.t.Fatalf("the runner was killed by %v\n%s", ws.Signal(), r.tail())
	}
	return r.cmd.ProcessState.ExitCode()
}

var errNoTerminal = errors.New("no run.terminal")
