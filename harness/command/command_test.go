//go:build unix

package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"prp/harness/child"
	"prp/protocol"
	"prp/protocol/jsonl"
)

// role in the environment makes the test binary an adapter: the members that
// are allowed, a semicolon, and whether it runs its arguments.
const role = "PRP_TEST_COMMAND_ALLOW"

// hang is far longer than anything here takes; it only ends a test that hangs.
const hang = 60 * time.Second

func TestMain(m *testing.M) {
	if allow, ok := os.LookupEnv(role); ok {
		o := Options{Argv: os.Args[1:], Shell: []string{"sh", "-c"}, Stdin: os.Stdin, Stdout: os.Stdout}
		if allow != "" {
			var err error
			if o.Allow, err = ParseAllow(allow); err != nil {
				panic(err)
			}
		}
		os.Exit(child.Mirror(Run(o)))
	}
	os.Exit(m.Run())
}

// played is an adapter under a test that plays the runner.
type played struct {
	t       *testing.T
	cmd     *exec.Cmd
	stdin   *os.File
	lines   *jsonl.Reader
	decoder *protocol.Decoder
	seq     int64
	text    map[string]string // the deltas by stream
	events  []protocol.HarnessEvent
	results []protocol.Result
}

// play starts an adapter in a session of its own, as a runner does.
func play(t *testing.T, allow string, argv ...string) *played {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], argv...)
	cmd.Env = append(os.Environ(), role+"="+allow, "GORACE=atexit_sleep_ms=0")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	p := &played{
		t: t, cmd: cmd, stdin: in, decoder: protocol.NewDecoder(), text: map[string]string{},
		lines: jsonl.NewReader(out, protocol.DefaultHarnessLine),
	}
	watchdog := time.AfterFunc(hang, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() {
		watchdog.Stop()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		in.Close()
		out.Close()
	})
	return p
}

func (p *played) say(t protocol.CommandType, payload string) {
	p.t.Helper()
	line := protocol.AppendHarnessCommand(nil, protocol.FamilyHarness, "c", t, []byte(payload))
	if _, err := p.stdin.Write(line); err != nil {
		p.t.Fatal(err)
	}
}

// begin opens the session and starts a turn.
func (p *played) begin(turn string) {
	p.t.Helper()
	p.say(protocol.SessionOpen, "{}")
	p.say(protocol.TurnStart, turn)
}

// next reads one message, strictly as a runner does; false at the end.
func (p *played) next() bool {
	p.t.Helper()
	line, flags, err := p.lines.Next()
	if err == io.EOF {
		return false
	}
	if err != nil || flags != 0 {
		p.t.Fatalf("after %d messages: flags %d, %v", p.seq, flags, err)
	}
	var m protocol.HarnessMessage
	if fault := p.decoder.HarnessMessage(line, &m); fault != nil {
		p.t.Fatalf("message %d: %v: %.300s", p.seq+1, fault, line)
	}
	if p.seq++; m.Seq != p.seq || m.Family != protocol.FamilyHarness {
		p.t.Fatalf("message %d has number %d", p.seq, m.Seq)
	}
	switch m.Type {
	case protocol.MessageEvent:
		e := m.Event
		e.Payload = bytes.Clone(e.Payload)
		var payload struct{ Stream, Delta string }
		if err := json.Unmarshal(e.Payload, &payload); err != nil {
			p.t.Fatal(err)
		}
		if e.EventType == protocol.EventItemDelta {
			p.text[payload.Stream] += payload.Delta
		} else {
			p.events = append(p.events, e)
		}
	case protocol.MessageResult:
		r, err := protocol.DecodeResult(bytes.Clone(m.Raw))
		if err != nil {
			p.t.Fatal(err)
		}
		p.results = append(p.results, r)
	}
	return true
}

// until reads until a stream's text contains a word.
func (p *played) until(stream, word string) {
	p.t.Helper()
	for !strings.Contains(p.text[stream], word) {
		if !p.next() {
			p.t.Fatalf("ended before %q on %s: %q", word, stream, p.text[stream])
		}
	}
}

// end reads to the end and checks the exit, the result and the events.
func (p *played) end(exit child.Exit, disposition protocol.Disposition, types ...protocol.EventType) {
	p.t.Helper()
	for p.next() {
	}
	_ = p.cmd.Wait()
	w := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	got := child.Exit{Status: w.ExitStatus()}
	if w.Signaled() {
		got = child.Exit{Signal: int(w.Signal())}
	}
	if got != exit {
		p.t.Errorf("the adapter ended with %v, want %v", got, exit)
	}
	switch {
	case disposition == "" && len(p.results) > 0, disposition != "" && len(p.results) != 1:
		p.t.Errorf("%d results", len(p.results))
	case disposition != "" && p.results[0].ReportedWorkDisposition != disposition:
		p.t.Errorf("the result says %s, want %s", p.results[0].ReportedWorkDisposition, disposition)
	}
	var seen []protocol.EventType
	for _, e := range p.events {
		seen = append(seen, e.EventType)
	}
	if fmt.Sprint(seen) != fmt.Sprint(types) {
		p.t.Errorf("events\n%v, want\n%v", seen, types)
	}
}

// payload is the payload of the last event of a type.
func (p *played) payload(t protocol.EventType) map[string]any {
	p.t.Helper()
	var found map[string]any
	for _, e := range p.events {
		if e.EventType == t {
			found = nil
			if err := json.Unmarshal(e.Payload, &found); err != nil {
				p.t.Fatal(err)
			}
			if e.TurnID == "" && t != protocol.EventSessionClosed && !strings.HasPrefix(string(t), "session.") && t != protocol.EventPhaseChanged {
				p.t.Errorf("%s has no turnId", t)
			}
		}
	}
	return found
}

const (
	started   = protocol.EventSessionStarted
	executing = protocol.EventPhaseChanged
	begun     = protocol.EventTurnStarted
	item      = protocol.EventItemStarted
	closed    = protocol.EventSessionClosed
)

const plainTurn = `{"turnId":"turn_1","text":"go"}`

func TestSuccess(t *testing.T) {
	p := play(t, "", "sh", "-c", "echo out; echo err >&2; cat")
	p.begin(plainTurn)
	p.end(child.Exit{}, protocol.DispositionDone, started, executing, begun, item, protocol.EventItemCompleted, protocol.EventTurnCompleted, closed)
	if p.text["stdout"] != "out\n" || p.text["stderr"] != "err\n" {
		t.Errorf("the text is %q", p.text)
	}
	end := p.payload(protocol.EventItemCompleted)
	if end["kind"] != "command" || end["exitCode"] != 0.0 || end["stdoutBytes"] != 4.0 || end["replacedBytes"] != nil {
		t.Errorf("the item ended with %v", end)
	}
	if c := p.payload(item); c["title"] != "sh -c echo out; echo err >&2; cat" {
		t.Errorf("the item began with %v", c)
	}
}

func TestExitIsMirrored(t *testing.T) {
	for _, tt := range []struct {
		script string
		exit   child.Exit
	}{
		{"exit 3", child.Exit{Status: 3}},
		{"exit 255", child.Exit{Status: 255}},
		{"kill -KILL $$", child.Exit{Signal: 9}},
		{"kill -TERM $$", child.Exit{Signal: 15}},
		{"kill -SEGV $$", child.Exit{Signal: 11}},
	} {
		t.Run(tt.script, func(t *testing.T) {
			p := play(t, "", "sh", "-c", tt.script)
			p.begin(plainTurn)
			p.end(tt.exit, protocol.DispositionYielded, started, executing, begun, item, protocol.EventItemFailed, protocol.EventTurnFailed, closed)
			if c := p.results[0].Continuation; c == nil || c.IdempotencyKey != "turn_1" {
				t.Errorf("the continuation is %+v", c)
			}
		})
	}
}

// TestAwkwardOutput: whatever bytes come, the lines are strict, fit under the
// bound, lose nothing, and tell what was replaced.
func TestAwkwardOutput(t *testing.T) {
	const repeat = 30000
	p := play(t, "", "perl", "-e", `print "\0\x1b\"\\\xe2\x98\x83\xf0\x9f\x98\x80" x `+fmt.Sprint(repeat)+`; print "\xff\xfe"; print "\xe2\x98"`)
	p.begin(plainTurn)
	p.end(child.Exit{}, protocol.DispositionDone, started, executing, begun, item, protocol.EventItemCompleted, protocol.EventTurnCompleted, closed)
	want := strings.Repeat("\x00\x1b\"\\\u2603\U0001F600", repeat) + "\ufffd\ufffd\ufffd\ufffd"
	if got := p.text["stdout"]; got != want || !utf8.ValidString(got) {
		t.Errorf("%d bytes came, want %d", len(got), len(want))
	}
	if end := p.payload(protocol.EventItemCompleted); end["replacedBytes"] != 4.0 {
		t.Errorf("the item ended with %v", end)
	}
}

// TestBackgroundHolder: a child that keeps the pipes open delays nothing.
func TestBackgroundHolder(t *testing.T) {
	p := play(t, "", "sh", "-c", "sleep 300 & head -c 50000 /dev/zero | tr '\\0' x")
	p.begin(plainTurn)
	p.end(child.Exit{}, protocol.DispositionDone, started, executing, begun, item, protocol.EventItemCompleted, protocol.EventTurnCompleted, closed)
	if n := len(p.text["stdout"]); n != 50000 {
		t.Errorf("%d bytes came", n)
	}
}

func TestFromTurn(t *testing.T) {
	tests := []struct {
		name, turn, stdout string
	}{
		{"text", `{"turnId":"t","text":"told once","argv":["cat"]}`, "told once"},
		{"stdin before text", `{"turnId":"t","text":"x","argv":["cat"],"stdin":"y"}`, "y"},
		{"argv", `{"turnId":"t","text":"","argv":["printf","%s-%s","a b","c"]}`, "a b-c"},
		{"command", `{"turnId":"t","text":"","command":"echo $((1+2)) | cat"}`, "3\n"},
		{"stdin", `{"turnId":"t","text":"","argv":["cat"],"stdin":"\u2603\n"}`, "\u2603\n"},
		{"empty stdin", `{"turnId":"t","text":"","argv":["cat"],"stdin":""}`, ""},
		{"unread stdin", `{"turnId":"t","text":"","argv":["true"],"stdin":"` + strings.Repeat("x", 300000) + `"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := play(t, allMembers)
			p.begin(tt.turn)
			p.end(child.Exit{}, protocol.DispositionDone, started, executing, begun, item, protocol.EventItemCompleted, protocol.EventTurnCompleted, closed)
			if p.text["stdout"] != tt.stdout {
				t.Errorf("stdout is %q", p.text["stdout"])
			}
		})
	}
}

// TestTextIsNoStdin: without --from-turn text a program has no stdin.
func TestTextIsNoStdin(t *testing.T) {
	p := play(t, "argv,stdin")
	p.begin(`{"turnId":"t","text":"not for it","argv":["cat"]}`)
	p.end(child.Exit{}, protocol.DispositionDone, started, executing, begun, item, protocol.EventItemCompleted, protocol.EventTurnCompleted, closed)
	if p.text["stdout"] != "" {
		t.Errorf("stdout is %q", p.text["stdout"])
	}
}

// allMembers is every member that a turn may decide.
var allMembers = strings.Join(Members(), ",")

// TestTurnPlace: the program runs in the turn's folder and environment; that of
// the adapter stays below, but for what the turn takes away, and the PATH of the turn
// finds the program.
func TestTurnPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/tool", []byte("#!/bin/sh\necho $A-$PRP_KEPT-${PRP_GONE-gone}-$(/bin/pwd)\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PRP_KEPT", "kept")
	t.Setenv("PRP_GONE", "here")
	for _, argv := range []string{`["tool"]`, `["./tool"]`} {
		p := play(t, allMembers)
		p.begin(fmt.Sprintf(`{"turnId":"t","text":"","argv":%s,"cwd":%q,"env":{"A":"a=b","PATH":%q,"PRP_GONE":null,"PRP_NEVER":null}}`, argv, dir, dir))
		p.end(child.Exit{}, protocol.DispositionDone, started, executing, begun, item, protocol.EventItemCompleted, protocol.EventTurnCompleted, closed)
		if want := "a=b-kept-gone-" + dir + "\n"; p.text["stdout"] != want {
			t.Errorf("stdout is %q, want %q", p.text["stdout"], want)
		}
	}
	p := play(t, allMembers)
	p.begin(`{"turnId":"t","text":"","argv":["true"],"cwd":"/no/such/folder"}`)
	p.end(child.Exit{Status: child.StatusNotExecutable}, protocol.DispositionYielded, started, executing, begun, item, protocol.EventItemFailed, protocol.EventHarnessDiag, protocol.EventTurnFailed, closed)
}

func TestRefusedTurns(t *testing.T) {
	all := allMembers
	tests := []struct{ name, allow, turn, want string }{
		{"argv not allowed", "", `"argv":["true"]`, "--from-turn does not allow"},
		{"stdin not allowed", "argv", `"stdin":"x"`, "turn.start gives stdin"},
		{"no program", "", ``, "names one"},
		{"empty argv", all, `"argv":[]`, "argv: expected"},
		{"argv of numbers", all, `"argv":[1]`, "argv: expected"},
		{"both", all, `"argv":["a"],"command":"b"`, "got both"},
		{"empty cwd", all, `"argv":["a"],"cwd":""`, "cwd: expected"},
		{"env of numbers", all, `"argv":["a"],"env":{"A":1}`, "env: expected"},
		{"env of truths", all, `"argv":["a"],"env":{"A":false}`, "env: expected"},
		{"env with = and null", all, `"argv":["a"],"env":{"A=B":null}`, `got "A=B"`},
		{"env with =", all, `"argv":["a"],"env":{"A=B":"secret"}`, `got "A=B"`},
		{"a list as env", all, `"argv":["a"],"env":[]`, "env: expected"},
		{"env not allowed", "argv", `"argv":["a"],"env":{}`, "turn.start gives env"},
		{"timeout 0", all, `"argv":["a"],"timeoutMs":0`, "timeoutMs: expected"},
		{"timeout a text", all, `"argv":["a"],"timeoutMs":"5"`, "timeoutMs: expected"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := play(t, tt.allow)
			turn := `{"turnId":"t","text":""`
			if tt.turn != "" {
				turn += "," + tt.turn
			}
			p.begin(turn + "}")
			p.end(child.Exit{Status: StatusRefused}, protocol.DispositionYielded, started, executing, begun, protocol.EventHarnessDiag, protocol.EventTurnFailed, closed)
			if f := p.payload(protocol.EventTurnFailed); !strings.Contains(fmt.Sprint(f["message"]), tt.want) || f["code"] != "turn_refused" {
				t.Errorf("the turn failed with %v", f)
			}
		})
	}
}

func TestProgramThatCannotStart(t *testing.T) {
	for _, tt := range []struct {
		program string
		status  int
	}{{"/no/such/program", child.StatusNotFound}, {"/", child.StatusNotExecutable}} {
		p := play(t, "", tt.program)
		p.begin(plainTurn)
		p.end(child.Exit{Status: tt.status}, protocol.DispositionYielded, started, executing, begun, item, protocol.EventItemFailed, protocol.EventHarnessDiag, protocol.EventTurnFailed, closed)
	}
}

func TestTimeout(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		exit   child.Exit
	}{
		"dies":         {"exec sleep 300", child.Exit{Signal: int(syscall.SIGTERM)}},
		"exits with 0": {`trap "exit 0" TERM; while :; do sleep 0.01; done`, child.Exit{Status: StatusTimedOut}},
		"ignores it":   {`trap "" TERM; while :; do sleep 0.01; done`, child.Exit{Signal: int(syscall.SIGKILL)}},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, "timeoutMs", "sh", "-c", tt.script)
			p.begin(`{"turnId":"turn_1","text":"","timeoutMs":500}`)
			p.end(tt.exit, protocol.DispositionYielded, started, executing, begun, item, protocol.EventItemFailed, protocol.EventTurnFailed, closed)
			if f := p.payload(protocol.EventTurnFailed); f["code"] != "timed_out" {
				t.Errorf("the turn failed with %v", f)
			}
		})
	}
}

// TestInterrupt: SIGINT reaches the foreground child of a shell too, as at a
// terminal. The child says ready: a shell that is still forking it can swallow
// the signal.
func TestInterrupt(t *testing.T) {
	p := play(t, "", "sh", "-c", `trap "echo int; exit 7" INT; sh -c "echo ready; exec sleep 300"`)
	p.begin(plainTurn)
	p.until("stdout", "ready")
	p.say(protocol.TurnInterrupt, `{"reason":"enough"}`)
	p.end(child.Exit{Status: 7}, protocol.DispositionYielded, started, executing, begun, item, protocol.EventItemFailed, protocol.EventTurnInterrupted, closed)
	if e := p.payload(protocol.EventTurnInterrupted); e["reason"] != "enough" || e["exitCode"] != 7.0 {
		t.Errorf("the turn was interrupted with %v", e)
	}
	if p.text["stdout"] != "ready\nint\n" {
		t.Errorf("stdout is %q", p.text["stdout"])
	}
}

// TestInterruptThatIsIgnored: the adapter waits; what follows is the ladder.
func TestInterruptThatIsIgnored(t *testing.T) {
	p := play(t, "", "sh", "-c", `trap "echo int" INT; echo ready; while :; do sleep 0.05; done`)
	p.begin(plainTurn)
	p.until("stdout", "ready")
	p.say(protocol.TurnStop, `{}`)
	p.until("stdout", "int")
	p.stdin.Close()
	p.end(child.Exit{Signal: int(syscall.SIGTERM)}, protocol.DispositionYielded, started, executing, begun, item, protocol.EventItemFailed, protocol.EventTurnInterrupted, closed)
}

func TestStops(t *testing.T) {
	tests := map[string]func(p *played){
		"run.cancel":    func(p *played) { p.say(protocol.RunCancel, "{}") },
		"session.close": func(p *played) { p.say(protocol.SessionClose, "{}") },
		"stdin ended":   func(p *played) { p.stdin.Close() },
		"terminated":    func(p *played) { _ = p.cmd.Process.Signal(syscall.SIGTERM) },
		"hangup":        func(p *played) { _ = p.cmd.Process.Signal(syscall.SIGHUP) },
		"quit":          func(p *played) { _ = p.cmd.Process.Signal(syscall.SIGQUIT) },
	}
	for name, stop := range tests {
		t.Run(name, func(t *testing.T) {
			p := play(t, "", "sh", "-c", `trap "echo term; exit 42" TERM; echo ready; while :; do sleep 0.01; done`)
			p.begin(plainTurn)
			p.until("stdout", "ready")
			stop(p)
			p.end(child.Exit{Status: 42}, protocol.DispositionYielded, started, executing, begun, item, protocol.EventItemFailed, protocol.EventTurnCancelled, closed)
			if p.text["stdout"] != "ready\nterm\n" {
				t.Errorf("stdout is %q", p.text["stdout"])
			}
		})
	}
}

func TestNoTurn(t *testing.T) {
	p := play(t, "", "true")
	p.say(protocol.SessionOpen, "{}")
	p.say(protocol.SessionClose, "{}")
	p.end(child.Exit{}, "", started, executing, closed)

	p = play(t, "", "true")
	p.stdin.Close()
	p.end(child.Exit{}, "")

	p = play(t, "", "true")
	fmt.Fprintln(p.stdin, "garbage")
	p.end(child.Exit{Status: StatusRefused}, "", protocol.EventHarnessDiag)
}

func TestParseAllow(t *testing.T) {
	if a, err := ParseAllow("argv,stdin"); err != nil || !a.Has("argv") || a.Has("command") {
		t.Errorf("%v, %v", a, err)
	}
	for _, bad := range []string{"", "argv,", "Argv", "turnId"} {
		if _, err := ParseAllow(bad); err == nil {
			t.Errorf("%q is allowed", bad)
		}
	}
}
