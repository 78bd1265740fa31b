package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prp/protocol"
	"prp/protocol/jsonl"
	"prp/scripts"
)

// command is a line for the harness.
func command(t protocol.CommandType, payload string) string {
	return string(protocol.AppendHarnessCommand(nil, protocol.FamilyFake, "command", t, []byte(payload)))
}

var opening = command(protocol.SessionOpen, "{}") + command(protocol.TurnStart, `{"turnId":"turn_1","text":"hello"}`)

// beginning is what every script says first.
var beginning = []string{"ready", "session.started", "runtime.phase.changed", "turn.started turn_1"}

// runs are the scripts of the table in spec section 8: what the harness says
// after the beginning, its exit status, and how many events a run has.
var runs = []struct {
	script, commands string
	says             []string
	status, events   int
}{
	{"happy-path", "", []string{
		"log stdout", "item.started turn_1 item_command", "log stdout", "item.delta turn_1 item_command",
		"item.completed turn_1 item_command", "log stdout", "item.started turn_1 item_file", "log stdout",
		"item.completed turn_1 item_file", "result done", "turn.completed turn_1", "terminal succeeded",
		"session.closed", "log stdout",
	}, 0, 19},
	{"permission-input", command(protocol.RequestResolve, `{"requestId":"request_permission","response":{"decision":"allow"}}`) +
		command(protocol.RequestResolve, `{"requestId":"request_input","response":{"text":"hello"}}`), []string{
		"request permission request_permission allow deny", "runtime_request.resolved turn_1 request_permission",
		"request input request_input", "runtime_request.resolved turn_1 request_input",
		"item.started turn_1 item_message", "item.completed turn_1 item_message",
		"result done", "turn.completed turn_1", "terminal succeeded", "session.closed",
	}, 0, 20},
	{"interrupted", command(protocol.TurnInterrupt, `{"reason":"enough"}`), []string{
		"item.started turn_1 item_long_command", "turn.interrupted turn_1", "item.failed turn_1 item_long_command",
		"result yielded", "terminal cancelled", "session.closed",
	}, 130, 16},
	{"error", "", []string{
		"log stderr", "item.failed turn_1 item_build", "result yielded", "terminal failed",
		"turn.failed turn_1", "session.failed",
	}, 7, 15},
	{"duplicate-terminal", "", []string{
		"result done", "turn.completed turn_1", "session.closed", "terminal succeeded", "terminal failed",
	}, 0, 15},
}

func TestScripts(t *testing.T) {
	for _, run := range runs {
		t.Run(run.script, func(t *testing.T) {
			h := begin(t, "fake", "--script", run.script, "--delay-ms", "0")
			h.write(opening + run.commands)
			want := slices.Concat(beginning, run.says)
			var got []string
			for {
				said, ok := h.next()
				if !ok {
					break
				}
				got = append(got, said)
			}
			if !slices.Equal(got, want) {
				t.Errorf("says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if events := eventsOf(got); events != run.events {
				t.Errorf("a run has %d events, want %d", events, run.events)
			}
			if status := h.wait(); status != run.status {
				t.Errorf("exit status %d, want %d", status, run.status)
			}
		})
	}
}

// eventsOf counts the events that a run with these messages has by spec
// sections 3 to 5.
func eventsOf(said []string) int {
	// workspace_preparing, workspace.ready, harness.starting, session.starting
	// and turn.submitted before, harness.exited and run.terminal after.
	n := 7
	results, terminals := 0, 0
	for _, s := range said {
		switch word, _, _ := strings.Cut(s, " "); word {
		case "log", "diagnostic":
		case "result":
			results++
			n++
		case "terminal":
			terminals++
			if terminals > 1 {
				n++ // ignored with a diagnostic
			}
		default:
			n++
		}
	}
	return n
}

func TestLinger(t *testing.T) {
	h := begin(t, "fake", "--script", "linger", "--delay-ms", "0")
	h.write(opening)
	for _, want := range beginning {
		h.expect(want)
	}
	said, _ := h.next()
	pid, err := strconv.Atoi(strings.TrimPrefix(said, "diagnostic "))
	if err != nil {
		t.Fatalf("expected the pid of the worker, got %q", said)
	}
	worker, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Kill()
		_ = worker.Release()
	})
	h.expect("item.started turn_1 item_watch")
	if events := eventsOf(append(slices.Clone(beginning), "diagnostic", "item.started")); events != 12 {
		t.Errorf("a run has %d events, want 12", events)
	}
	// Neither session.close nor the end of stdin ends it: the next thing that
	// comes is the end of stdout when it is killed.
	h.write(command(protocol.SessionClose, "{}") + command(protocol.RunCancel, "{}"))
	h.stdin.Close()
	if err := h.process.Kill(); err != nil {
		t.Fatal(err)
	}
	if said, ok := h.next(); ok {
		t.Errorf("said %q", said)
	}
	if status := h.wait(); status != -1 {
		t.Errorf("exit status %d before it was killed", status)
	}
}

func TestOversizedLine(t *testing.T) {
	h := begin(t, "fake", "--script", "oversized-line", "--delay-ms", "0")
	h.write(opening)
	for _, want := range beginning {
		h.expect(want)
	}
	if _, flags, err := h.lines.Next(); err != nil || flags&jsonl.TooLong == 0 {
		t.Errorf("expected a line that is too long, got the flags %d, %v", flags, err)
	}
}

func TestOneOfOnesOwn(t *testing.T) {
	data, err := scripts.Read("error")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "own.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	// The form in which a runner starts it.
	h := begin(t, "--script", path, "--delay-ms", "1")
	h.write(opening)
	for _, want := range slices.Concat(beginning, runs[3].says) {
		h.expect(want)
	}
	if status := h.wait(); status != 7 {
		t.Errorf("exit status %d, want 7", status)
	}
}

// TestEveryScriptIsTested fails where a script has come that no run plays.
func TestEveryScriptIsTested(t *testing.T) {
	tested := []string{"linger", "oversized-line"}
	for _, run := range runs {
		tested = append(tested, run.script)
	}
	slices.Sort(tested)
	if !slices.Equal(tested, scripts.Names()) {
		t.Errorf("the scripts are %q, tested are %q", scripts.Names(), tested)
	}
}

// running is a harness at the other end of its pipes.
type running struct {
	t       *testing.T
	process *os.Process
	stdin   *os.File
	lines   *jsonl.Reader
	decoder *protocol.Decoder
	seq     int64
	exited  func() (int, error)
}

func begin(t *testing.T, args ...string) *running {
	t.Helper()
	theirIn, stdin := pipe(t)
	stdout, theirOut := pipe(t)
	cmd := harness(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	if err := stdout.SetReadDeadline(time.Now().Add(hang)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // fails where it has exited
	return &running{
		t: t, process: cmd.Process, stdin: stdin,
		lines:   jsonl.NewReader(stdout, protocol.DefaultHarnessLine),
		decoder: protocol.NewDecoder(),
		exited: func() (int, error) {
			err := cmd.Wait()
			return cmd.ProcessState.ExitCode(), err
		},
	}
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

func (h *running) write(lines string) {
	h.t.Helper()
	if _, err := io.WriteString(h.stdin, lines); err != nil {
		h.t.Fatal(err)
	}
}

// wait returns the exit status, -1 for a signal.
func (h *running) wait() int {
	h.t.Helper()
	status := make(chan int, 1)
	go func() {
		n, _ := h.exited() // the error repeats the status
		status <- n
	}()
	select {
	case n := <-status:
		return n
	case <-time.After(hang):
		h.t.Fatal("the harness does not exit")
		return 0
	}
}

func (h *running) expect(want string) {
	h.t.Helper()
	if got, ok := h.next(); !ok || got != want {
		h.t.Fatalf("message %d is %q, want %q", h.seq, got, want)
	}
}

// next returns the next message in short, after checking that it is valid and
// has the next number, and false at the end of stdout.
func (h *running) next() (string, bool) {
	h.t.Helper()
	line, flags, err := h.lines.Next()
	if errors.Is(err, io.EOF) {
		return "", false
	}
	if err != nil || flags != 0 {
		h.t.Fatalf("a line with the flags %d, %v", flags, err)
	}
	var m protocol.HarnessMessage
	if fault := h.decoder.HarnessMessage(line, &m); fault != nil {
		h.t.Fatalf("%v: %s", fault, line)
	}
	h.seq++
	if m.Seq != h.seq || m.Family != protocol.FamilyFake {
		h.t.Fatalf("message %d has the number %d", h.seq, m.Seq)
	}
	return h.short(&m), true
}

func (h *running) short(m *protocol.HarnessMessage) string {
	h.t.Helper()
	words := []string{string(m.Type)}
	switch m.Type {
	case protocol.MessageEvent:
		if m.Event.EventType.Origin() != protocol.OriginHarness {
			h.t.Errorf("a harness does not send %q", m.Event.EventType)
		}
		words = []string{string(m.Event.EventType), m.Event.TurnID, m.Event.ItemID, m.RequestID}
	case protocol.MessageLog:
		words = append(words, m.Log.Stream)
	case protocol.MessageRequest:
		words = append(words, string(m.Request.Type), m.Request.RequestID)
		for _, key := range []string{"allow", "deny"} {
			if strings.Contains(string(m.Request.Choices), `"key":"`+key+`"`) {
				words = append(words, key)
			}
		}
	case protocol.MessageResult:
		result, err := protocol.DecodeResult(m.Raw)
		if err != nil {
			h.t.Error(err)
		}
		words = append(words, string(result.ReportedWorkDisposition))
	case protocol.MessageTerminal:
		terminal, err := protocol.DecodeTerminalProposal(m.Raw)
		if err != nil {
			h.t.Error(err)
		}
		words = append(words, string(terminal.RunTerminalState))
	case protocol.MessageDiagnostic:
		words = append(words, strings.Trim(string(m.Raw), `{}":workePid`))
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return strings.Join(words, " ")
}
