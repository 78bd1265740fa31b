package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prp/controller"
)

// terminalPatience bounds every wait for the screen, on a loaded machine.
const terminalPatience = time.Minute

// terminal is prp at a real pseudo-terminal: the test holds the keyboard.
type terminal struct {
	t       *testing.T
	cmd     *exec.Cmd
	master  *os.File
	mu      sync.Mutex
	screen  bytes.Buffer // everything that was shown
	grown   chan struct{}
	readAll chan struct{} // closed when the screen will not change any more
}

// atTerminal starts prp with a pseudo-terminal as its controlling terminal,
// so that a Ctrl-C typed there is a signal to its foreground process group.
func atTerminal(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command("prp", args...)
	cmd.Env = append(os.Environ(), "TERM=xterm")
	cmd.Env = append(cmd.Env, env...)
	return seat(t, cmd)
}

// seat starts a program at a pseudo-terminal of its own.
func seat(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, slave := openPTY(t)
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: cmd, master: master, grown: make(chan struct{}, 1), readAll: make(chan struct{})}
	go x.read()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		<-x.readAll
		master.Close()
	})
	return x
}

// columns is how wide a terminal is.
const columns = 80

func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var errUnlock, errNumber, errSize error
	err = conn.Control(func(fd uintptr) {
		errSize = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 24})
		errUnlock = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, errNumber = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	})
	if err = errors.Join(err, errUnlock, errNumber, errSize); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	return master, slave
}

func (x *terminal) read() {
	defer close(x.readAll)
	buf := make([]byte, 4096)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.screen.Write(buf[:n])
		x.mu.Unlock()
		select {
		case x.grown <- struct{}{}:
		default:
		}
		if err != nil { // EIO: nobody has the terminal open any more
			return
		}
	}
}

func (x *terminal) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.String()
}

// see waits until the pattern has been shown.
func (x *terminal) see(pattern string) {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(terminalPatience)
	for !re.MatchString(x.shown()) {
		select {
		case <-x.grown:
		case <-x.readAll:
			if !re.MatchString(x.shown()) {
				x.t.Fatalf("the program ended without showing %q:\n%s", pattern, x.shown())
			}
		case <-deadline:
			x.t.Fatalf("%q is not shown:\n%s", pattern, x.shown())
		}
	}
}

func (x *terminal) typeIn(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// exit waits for the program's end and returns its exit status.
func (x *terminal) exit() int {
	x.t.Helper()
	timer := time.AfterFunc(terminalPatience, func() { x.cmd.Process.Kill() })
	defer timer.Stop()
	x.cmd.Wait()
	<-x.readAll
	return x.cmd.ProcessState.ExitCode()
}

const ctrlC = "\x03"

// pressAgain types another Ctrl-C, so late that it is no echo of the one whose
// answer was seen.
func (x *terminal) pressAgain() {
	x.t.Helper()
	time.Sleep(pressGap)
	x.typeIn(ctrlC)
}

// ran checks the record of the run.
func ran(t *testing.T, record string, events int64, reason string) {
	t.Helper()
	f, err := os.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, problems, err := controller.Replay(f)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if got := r.Snapshot.Terminal.Reconciliation.Reason; string(got) != reason {
		t.Errorf("the reason is %s, want %s", got, reason)
	}
	if events > 0 && r.Events != events {
		t.Errorf("got %d events, want %d", r.Events, events)
	}
}

// TestCtrlCInterrupts: one Ctrl-C ends the turn of the script that waits for
// it. The runner, which is not in the terminal's foreground group, goes on.
func TestCtrlCInterrupts(t *testing.T) {
	record := t.TempDir() + "/trace.jsonl"
	x := atTerminal(t, nil, "run", "interrupted", "--delay-ms", "0", "--record", record)
	x.see("item_long_command")
	x.typeIn(ctrlC)
	x.see("interrupting the turn")
	x.see("The run was cancelled.*The turn was interrupted by the controller")
	if got := x.exit(); got != exitCancelled {
		t.Errorf("exit status %d, want 130", got)
	}
	ran(t, record, 16, "turn_interrupted")
}

// A harness that does not react to an interrupt.
const deafScript = `{"schema":"paperclip.fake_harness.script.v1","name":"deaf","steps":[
	{"kind":"event","event_type":"item.started","item_id":"item_deaf","payload":{}},
	{"kind":"ignore_sigterm"},{"kind":"hang"}]}`

func writeScript(t *testing.T, text string) string {
	t.Helper()
	path := t.TempDir() + "/script.json"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// soon lets a run that is cancelled end at once: the graces are not what the
// tests here are about.
const soon = "--cancel-grace-ms 10"

// TestCtrlCTwiceCancels: the run is cancelled, as the first cause says.
func TestCtrlCTwiceCancels(t *testing.T) {
	record := t.TempDir() + "/trace.jsonl"
	x := atTerminal(t, nil, "run", writeScript(t, `{"schema":"paperclip.fake_harness.script.v1","name":"deaf","steps":[
		{"kind":"event","event_type":"item.started","item_id":"item_deaf","payload":{}},{"kind":"hang"}]}`), "--record", record, "--runner-flags", soon)
	x.see("item_deaf")
	x.typeIn(ctrlC)
	x.see("interrupting the turn")
	x.pressAgain()
	x.see("cancelling the run")
	x.see("The run was cancelled")
	if got := x.exit(); got != exitCancelled {
		t.Errorf("exit status %d, want 130", got)
	}
	// The interrupt was accepted first, so it is the cause (spec section 5).
	ran(t, record, 0, "turn_interrupted")
}

// TestCtrlCThriceKills: nothing is waited for any more, and nothing is left.
func TestCtrlCThriceKills(t *testing.T) {
	x := atTerminal(t, nil, "run", writeScript(t, deafScript))
	x.see("item_deaf")
	for _, answer := range []string{"interrupting the turn", "cancelling the run", "killing the run"} {
		x.pressAgain()
		x.see(answer)
	}
	x.see("The run has no terminal")
	if got := x.exit(); got != exitCancelled {
		t.Errorf("exit status %d, want 130", got)
	}
}

// TestQuestionsAtTheTerminal: a wrong key is asked again; a number, a label or
// a key is taken.
func TestQuestionsAtTheTerminal(t *testing.T) {
	x := atTerminal(t, nil, "run", "permission-input", "--delay-ms", "0")
	x.see(`May I run the command: git push origin greeting\?[^>]*1  Allow \(allow\)\s+2  Deny \(deny\)\s+> `)
	x.typeIn("perhaps\n")
	x.see(`expected one of "allow", "deny", got "perhaps"; a key or its number answers`)
	x.typeIn("1\n")
	x.see(`request_permission: allow`)
	x.see(`What shall the note for the reviewers say\?[^>]*> $`)
	x.typeIn("\n")
	x.see(`nothing was typed; Enter again answers with an empty text\s[^>]*> $`)
	x.typeIn("It is late.\n")
	x.see(`request_input: It is late\.`)
	x.see("20 events")
	if got := x.exit(); got != exitOK {
		t.Errorf("exit status %d, want 0", got)
	}
}

// TestEmptyAnswer: nothing is an answer where it is meant, and shown as one.
func TestEmptyAnswer(t *testing.T) {
	x := atTerminal(t, []string{"NO_COLOR=1"}, "run", "permission-input", "--delay-ms", "0", "--answer", "request_permission=allow")
	x.see(`What shall the note for the reviewers say\?[^>]*> $`)
	x.typeIn("\n")
	x.see(`Enter again answers with an empty text\s[^>]*> $`)
	x.typeIn("\n")
	x.see(`request_input: ""`)
	if got := x.exit(); got != exitOK {
		t.Errorf("exit status %d, want 0", got)
	}
}

// TestCtrlCAtAQuestion: the turn can be interrupted while a question waits.
func TestCtrlCAtAQuestion(t *testing.T) {
	x := atTerminal(t, nil, "run", "permission-input", "--delay-ms", "0", "--runner-flags", soon)
	x.see(`> $`)
	x.typeIn(ctrlC)
	x.see("interrupting the turn")
	x.pressAgain()
	x.see("The run was cancelled")
	if got := x.exit(); got != exitCancelled {
		t.Errorf("exit status %d, want 130", got)
	}
}

// TestEndOfKeyboard: Ctrl-D is no answer.
func TestEndOfKeyboard(t *testing.T) {
	x := atTerminal(t, nil, "run", "permission-input", "--delay-ms", "0", "--runner-flags", soon)
	x.see(`> $`)
	x.typeIn("\x04")
	x.see("stdin ended without an answer; cancelling the run")
	if got := x.exit(); got != exitCancelled {
		t.Errorf("exit status %d, want 130", got)
	}
}

// TestColours: on a terminal there are colours and a progress line; NO_COLOR
// takes the colours away and leaves the line.
func TestColours(t *testing.T) {
	colour := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	x := atTerminal(t, nil, "run", "happy-path", "--delay-ms", "30")
	x.see("19 events")
	x.exit()
	if out := x.shown(); !colour.MatchString(out) || !strings.Contains(out, "turn started: Run the tests") {
		t.Errorf("want colours and a progress line:\n%q", out)
	}
	x = atTerminal(t, []string{"NO_COLOR=1"}, "run", "happy-path", "--delay-ms", "30")
	x.see("19 events")
	x.exit()
	if out := x.shown(); colour.MatchString(out) || !strings.Contains(out, spinnerPictures[0]) {
		t.Errorf("want a progress line without colours:\n%q", out)
	}
}

// TestProgressFits: a progress line that wrapped could not be taken away.
func TestProgressFits(t *testing.T) {
	title := strings.Repeat("wide 漢字 ", 30)
	x := atTerminal(t, []string{"NO_COLOR=1"}, "run", writeScript(t, `{"schema":"paperclip.fake_harness.script.v1","name":"wide","steps":[
		{"kind":"event","event_type":"item.started","item_id":"item_wide","payload":{"title":"`+title+`"}},
		{"kind":"delay","milliseconds":300}]}`))
	x.see("The run failed")
	x.exit()
	drawn := regexp.MustCompile(`\r\x1b\[K([^\r\n]+)`).FindAllStringSubmatch(x.shown(), -1)
	longest := 0
	for _, m := range drawn {
		if !strings.Contains(m[1], "turn started: wide") {
			continue
		}
		width := 0
		for _, r := range m[1] {
			width++
			if r == '漢' || r == '字' {
				width++
			}
		}
		longest = max(longest, width)
	}
	if longest < columns/2 || longest >= columns {
		t.Errorf("the longest progress line has %d columns of %d", longest, columns)
	}
}
