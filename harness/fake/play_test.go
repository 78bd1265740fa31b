package fake

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/protocol"
	"prp/protocol/jsonl"
)

// hang is far longer than anything here takes; it only ends a test that hangs.
const hang = 60 * time.Second

// TestMain makes the test binary a fake harness too: the words play FILE, and
// those that lead to a worker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "play":
			os.Exit(playMain(os.Args[2:]))
		case WorkerCommand:
			os.Exit(WorkerMain(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func playMain(args []string) int {
	script, err := Load(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	options := Options{Worker: []string{os.Args[0], WorkerCommand}}
	if len(args) > 1 && args[1] == "no-delay" {
		options.DelayMS = new(int64)
	}
	return Run(script, options)
}

// played is a fake harness in a process of its own, seen as a runner sees it.
type played struct {
	t       *testing.T
	process *exec.Cmd
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	lines   *jsonl.Reader
	decoder *protocol.Decoder
	seq     int64 // the messageSeq that comes next
	sent    int   // commands
}

func play(t *testing.T, script string, words ...string) *played {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, seq: 1, decoder: protocol.NewDecoder()}
	p.process = exec.Command(os.Args[0], append([]string{"play", path}, words...)...)
	// The race detector sleeps for a second at every exit unless told not to.
	p.process.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	var theirs [3]*os.File
	theirs[0], p.stdin = pipe(t)
	p.stdout, theirs[1] = pipe(t)
	p.stderr, theirs[2] = pipe(t)
	p.process.Stdin, p.process.Stdout, p.process.Stderr = theirs[0], theirs[1], theirs[2]
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range theirs {
		f.Close()
	}
	t.Cleanup(func() {
		// Fails where it has exited, which is what most tests want.
		_ = p.process.Process.Kill()
		_ = p.process.Wait()
	})
	limit := time.Now().Add(hang)
	if err := errors.Join(p.stdout.SetReadDeadline(limit), p.stderr.SetReadDeadline(limit)); err != nil {
		t.Fatal(err)
	}
	p.lines = jsonl.NewReader(p.stdout, protocol.DefaultHarnessLine)
	return p
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		read.Close()
		write.Close()
	})
	return read, write
}

// say sends a command.
func (p *played) say(command protocol.CommandType, payload string) {
	p.t.Helper()
	p.sent++
	line := protocol.AppendHarnessCommand(nil, protocol.FamilyFake, fmt.Sprintf("c%d", p.sent), command, []byte(payload))
	if _, err := p.stdin.Write(line); err != nil {
		p.t.Fatal(err)
	}
}

// hear returns the next message as TYPE and what matters of it, after checking
// that it is a valid message with the next number.
func (p *played) hear() string {
	p.t.Helper()
	line, flags, err := p.lines.Next()
	if err != nil {
		p.t.Fatalf("message %d: %v", p.seq, err)
	}
	if flags != 0 {
		p.t.Fatalf("message %d: the line has the flags %d", p.seq, flags)
	}
	var m protocol.HarnessMessage
	if fault := p.decoder.HarnessMessage(line, &m); fault != nil {
		p.t.Fatalf("message %d: %v: %s", p.seq, fault, line)
	}
	if m.Family != protocol.FamilyFake || m.Seq != p.seq {
		p.t.Fatalf("family %d and number %d, want %d and %d", m.Family, m.Seq, protocol.FamilyFake, p.seq)
	}
	p.seq++
	return summary(&m)
}

func summary(m *protocol.HarnessMessage) string {
	switch m.Type {
	case protocol.MessageEvent:
		e := m.Event
		return strings.Join([]string{"event", string(e.EventType), e.TurnID, e.ItemID, string(e.Payload)}, " ")
	case protocol.MessageLog:
		return "log " + m.Log.Stream + ": " + m.Log.Text
	case protocol.MessageReady:
		return "ready " + m.Ready.DriverKind + " " + m.Ready.Version
	}
	return string(m.Type) + " " + string(m.Raw)
}

// expect compares the next messages.
func (p *played) expect(want ...string) {
	p.t.Helper()
	for _, w := range want {
		if got := p.hear(); got != w {
			p.t.Fatalf("message %d is\n %s\nwant\n %s", p.seq-1, got, w)
		}
	}
}

// start goes through the handshake, as spec section 8 has it.
func (p *played) start() {
	p.t.Helper()
	p.expect("ready fake " + Version)
	p.say(protocol.SessionOpen, "{}")
	p.expect("event session.started   {}", `event runtime.phase.changed   {"phase":"executing"}`)
	p.say(protocol.TurnStart, `{"turnId":"turn_1","text":"hello"}`)
	p.expect("event turn.started turn_1  {}")
}

// end expects the end of stdout and then the exit status.
func (p *played) end(status int) {
	p.t.Helper()
	if line, _, err := p.lines.Next(); !errors.Is(err, io.EOF) {
		p.t.Fatalf("expected the end of stdout, got %q, %v", line, err)
	}
	p.exit(status)
}

// exit expects the exit status.
func (p *played) exit(status int) {
	p.t.Helper()
	p.wait()
	if state := p.process.ProcessState; state.ExitCode() != status {
		p.t.Fatalf("expected exit status %d, got %v", status, state)
	}
}

func (p *played) wait() {
	p.t.Helper()
	done := make(chan struct{})
	go func() {
		_ = p.process.Wait() // the status is in ProcessState
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(hang):
		p.t.Fatal("the fake does not exit")
	}
}

// notes returns all of stderr; it blocks until stderr is closed.
func (p *played) notes() string {
	p.t.Helper()
	text, err := io.ReadAll(p.stderr)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
