//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"prp/protocol"
)

// Whole runs: the scripts, the clock, the journal, the end of stdin, graces
// and budgets, flags and exit statuses.

// builtin plays a script of the harness to its end without delays.
func builtin(t *testing.T, name string, flags ...string) ending {
	t.Helper()
	r := start(t, setup{harness: harnessBin + " fake --delay-ms 0 --script " + name, flags: flags})
	r.begin()
	switch name {
	case "permission-input":
		r.event(protocol.EventRequestCreated)
		r.accepted(protocol.RequestResolve, `{"requestId":"request_permission","response":{"choice":"allow"}}`)
		r.await("second request", func(m protocol.StreamMessage) bool {
			return m.Event != nil && m.Event.EventType == protocol.EventRequestCreated && strings.Contains(string(m.Event.Payload), "request_input")
		})
		r.accepted(protocol.RequestResolve, `{"requestId":"request_input","response":{"text":"hello"}}`)
	case "interrupted":
		r.event(protocol.EventItemStarted)
		r.accepted(protocol.TurnInterrupt, `{"reason":"enough"}`)
	case "linger":
		r.event(protocol.EventItemStarted)
		r.hangUp()
	}
	return r.end()
}

var wholeRuns = []struct {
	script string
	events int
	reason protocol.Reason
}{
	{"happy-path", 19, protocol.ReasonSuccess},
	{"permission-input", 20, protocol.ReasonSuccess},
	{"interrupted", 16, protocol.ReasonTurnInterrupted},
	{"error", 15, protocol.ReasonProcessFailed},
	{"duplicate-terminal", 15, protocol.ReasonSuccess},
	{"linger", 12, protocol.ReasonControllerClosed},
	{"oversized-line", 0, protocol.ReasonProtocolViolation},
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, c := range wholeRuns {
		each(t, c.script, func(t *testing.T) {
			e := builtin(t, c.script).reason(c.reason)
			if c.events > 0 && len(e.events) != c.events {
				t.Errorf("%d events, want %d: %v", len(e.events), c.events, e.types())
			}
		})
	}
}

// unstable is what two runs of a script may differ in: what was swept, and the
// numbers of processes, which are in the log tail.
var unstable = regexp.MustCompile(`"containment":\{[^}]*\}|workerPid\\":\d+|"retainedBytes":\d+`)

func TestDeterministicClock(t *testing.T) {
	t.Parallel()
	for _, c := range wholeRuns {
		each(t, c.script, func(t *testing.T) {
			// Receipts come when the controller asks, so events are compared.
			text := func() string {
				e := builtin(t, c.script, "--clock", "deterministic")
				var b strings.Builder
				for _, ev := range e.events {
					b.WriteString(e.raw(ev))
				}
				return unstable.ReplaceAllString(b.String(), "-")
			}
			if first, second := settled(text()), settled(text()); first != second {
				t.Errorf("two runs differ:\n%s\n%s", first, second)
			}
		})
	}
}

// settled puts turn.submitted, which comes when turn.start does, behind the
// events of the harness that it may swap with (spec section 3), and takes the
// numbers away that depend on it.
func settled(text string) string {
	lines := strings.SplitAfter(text, "\n")
	numbers := regexp.MustCompile(`"sourceEventId":"[^"]*"|"sourceSeq":\d+|"emittedAt":"[^"]*"`)
	at, end := -1, -1
	for i, line := range lines {
		if strings.Contains(line, `"turn.submitted"`) {
			at = i
		}
		if strings.Contains(line, `"turn.started"`) {
			end = i
		}
	}
	if at < 0 || end < at {
		return text
	}
	moved := lines[at]
	copy(lines[at:], lines[at+1:end])
	lines[end-1] = moved
	for i := range end {
		lines[i] = numbers.ReplaceAllString(lines[i], "-")
	}
	return strings.Join(lines, "")
}

// Where commands wait for each other's effect, two runs are the same byte for
// byte, receipts too.
func TestDeterministicBytes(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{
		{"--harness", harnessBin + " fake --delay-ms 0 --script happy-path", "--clock", "deterministic"},
		{"--fake-harness", harnessBin, "--script", "happy-path", "--delay-ms", "0"},
	} {
		text := func() string {
			r := start(t, setup{flags: flags})
			r.accepted(protocol.RunPrepare, "")
			r.accepted(protocol.SessionOpen, "")
			r.event(protocol.EventPhaseChanged)
			r.await("executing", func(m protocol.StreamMessage) bool {
				return m.Event != nil && m.Event.EventType == protocol.EventPhaseChanged && strings.Contains(string(m.Event.Payload), "executing")
			})
			r.send(protocol.TurnStart, turn)
			r.end().reason(protocol.ReasonSuccess)
			return unstable.ReplaceAllString(string(bytes.Join(r.lines, nil)), "-")
		}
		first, second := text(), text()
		if first != second {
			t.Errorf("%q: two runs differ:\n%s\n%s", flags, first, second)
		}
		if !strings.Contains(first, `"sourceSeq":1,`) || !strings.Contains(first, `.001Z"`) {
			t.Errorf("%q: the first event is not 1 ms after a fixed base:\n%.400s", flags, first)
		}
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	each(t, "every line, and before stdout", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal")
		r := start(t, setup{harness: harnessBin + " fake --delay-ms 20 --script happy-path", flags: []string{"--journal", path}})
		r.begin()
		seen := 0
		r.until("the end of stdout", func() bool {
			if len(r.lines) > seen {
				seen = len(r.lines)
				kept, err := os.ReadFile(path)
				if err != nil || !bytes.HasPrefix(kept, bytes.Join(r.lines, nil)) {
					t.Errorf("%d lines were read and the journal has %d bytes: %v", seen, len(kept), err)
				}
			}
			return r.ended
		})
		r.end().reason(protocol.ReasonSuccess)
		if kept, _ := os.ReadFile(path); !bytes.Equal(kept, bytes.Join(r.lines, nil)) {
			t.Errorf("the journal has\n%s\nstdout had\n%s", kept, bytes.Join(r.lines, nil))
		}
	})
	each(t, "appends, repairs a torn end", func(t *testing.T) {
		path := file(t, "journal", "{\"old\":1}\n{\"torn")
		r := start(t, setup{harness: ready().result().cat(t), flags: []string{"--journal", path}})
		r.send(protocol.RunPrepare, "")
		r.end().reason(protocol.ReasonSuccess)
		kept, _ := os.ReadFile(path)
		if want := "{\"old\":1}\n" + string(bytes.Join(r.lines, nil)); string(kept) != want {
			t.Errorf("the journal has\n%s\nwant\n%s", kept, want)
		}
	})
	each(t, "full", func(t *testing.T) {
		if _, err := os.Stat("/dev/full"); err != nil {
			t.Skip("no /dev/full here: ", err)
		}
		r := start(t, setup{harness: ready().result().cat(t), flags: []string{"--journal", "/dev/full"}})
		r.send(protocol.RunPrepare, "")
		if r.waitExit() == 2 {
			return // refused at the start is good as well
		}
		r.end().reason(protocol.ReasonSuccess)
	})
	each(t, "cannot be opened", func(t *testing.T) {
		misused(t, setup{harness: "true", flags: []string{"--journal", "/no/such/folder/journal"}}, "/no/such/folder/journal")
	})
}

// misused checks for exit status 2, a word on stderr and nothing on stdout.
func misused(t *testing.T, s setup, want string) {
	t.Helper()
	r := start(t, s)
	if status := r.waitExit(); status != 2 {
		t.Errorf("exit status %d, want 2", status)
	}
	if text := r.complaints(); !strings.HasPrefix(text, "prp-runner: ") || !strings.Contains(text, want) {
		t.Errorf("stderr %q, want one that names %q", text, want)
	}
	r.until("the end of stdout", func() bool { return r.ended })
	if len(r.lines) > 0 {
		t.Errorf("stdout has %q", r.lines)
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("i", 141)
	open := file(t, "env", "TOKEN=hidden-value\n")
	if err := os.Chmod(open, 0o640); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "--harness"},
		{[]string{"--harness", ""}, "--harness"},
		{[]string{"--harness", "a | b"}, "a | b"},
		{[]string{"--harness", "a; b"}, "a; b"},
		{[]string{"--harness", "a & b"}, "a & b"},
		{[]string{"--harness", "a > b"}, "a > b"},
		{[]string{"--harness", "a 'b"}, "a 'b"},
		{[]string{"--harness", "a", "--nothing"}, "--nothing"},
		{[]string{"--harness", "a", "word"}, "word"},
		{[]string{"--harness"}, "--harness"},
		{[]string{"--harness", "a", "--fake-harness", "b", "--script", "c"}, "--fake-harness"},
		{[]string{"--fake-harness", "b"}, "--script"},
		{[]string{"--harness", "a", "--script", "c"}, "--script"},
		{[]string{"--harness", "a", "--run-id", ""}, "run id"},
		{[]string{"--harness", "a", "--session-id", long}, "session id"},
		{[]string{"--harness", "a", "--runner-id", "\xff"}, "runner id"},
		{[]string{"--harness", "a", "--clock", "sundial"}, "sundial"},
		{[]string{"--harness", "a", "--on-eof", "panic"}, "panic"},
		{[]string{"--harness", "a", "--max-events", "-1"}, "--max-events"},
		{[]string{"--harness", "a", "--max-event-bytes", "1.5"}, "--max-event-bytes"},
		{[]string{"--harness", "a", "--ready-timeout-ms", "1s"}, "--ready-timeout-ms"},
		{[]string{"--harness", "a", "--shutdown-grace-ms", "99999999999999999999"}, "--shutdown-grace-ms"},
		{[]string{"--harness", "a", "--harness-max-line-bytes", "0"}, "harness line"},
		{[]string{"--harness", "a", "--command-history", "0"}, "command history"},
		{[]string{"--harness", "a", "--env-allow", "A=B"}, "--env-allow"},
		{[]string{"--harness", "a", "--env-file", "/no/such/file"}, "/no/such/file"},
		{[]string{"--harness", "a", "--env-file", open}, open},
		{[]string{"--harness", "a", "--env-file", file(t, "env", "no equals sign: hidden-value\n")}, ":1:"},
	} {
		each(t, fmt.Sprintf("%.60q", c.flags), func(t *testing.T) {
			s := setup{flags: c.flags}
			misused(t, s, c.want)
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	const golden = "testdata/help.txt"
	want, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, flag := range []string{"-h", "--help"} {
		cmd := exec.Command(runnerBin, flag)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		got, err := cmd.Output()
		if err != nil || stderr.Len() > 0 {
			t.Fatalf("%s: %v, stderr %q", flag, err, stderr.String())
		}
		if *update {
			want = got
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s prints\n%s\nwant, as in %s (-update writes it anew),\n%s", flag, got, golden, want)
		}
	}
}

func TestEndOfStdin(t *testing.T) {
	t.Parallel()
	commands := func(last string) string {
		return commandLine("c1", 1, protocol.RunPrepare, "", "") + "\n" +
			commandLine("c2", 2, protocol.SessionOpen, "", "") + "\n" +
			commandLine("c3", 3, protocol.TurnStart, turn, "") + last
	}
	each(t, "finish", func(t *testing.T) {
		for _, last := range []string{"\n", ""} {
			r := start(t, setup{harness: script(t, `{"kind":"delay","milliseconds":300}`, turnDone, result, exit(0)), flags: []string{"--on-eof", "finish"}})
			r.write(commands(last))
			r.hangUp()
			e := r.end().reason(protocol.ReasonSuccess)
			for _, id := range []string{"c1", "c2", "c3"} {
				if got := e.receipts()[id]; len(got) != 1 || got[0].Status != protocol.ReceiptAccepted {
					t.Errorf("%s: %+v", id, got)
				}
			}
		}
	})
	each(t, "finish, a request nobody can answer", func(t *testing.T) {
		r := start(t, setup{harness: script(t, request("q"), `{"kind":"await_resolution","request_id":"q"}`, result), flags: []string{"--on-eof", "finish"}})
		r.write(commands("\n"))
		r.hangUp()
		r.end().reason(protocol.ReasonProcessFailed)
	})
	each(t, "cancel", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang)})
		r.write(commands("\n"))
		r.hangUp()
		e := r.end().reason(protocol.ReasonControllerClosed)
		for _, id := range []string{"c1", "c2", "c3"} {
			if got := e.receipts()[id]; len(got) != 1 || got[0].Status != protocol.ReceiptAccepted {
				t.Errorf("%s: %+v", id, got)
			}
		}
	})
	each(t, "nothing at all", func(t *testing.T) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		e := start(t, setup{harness: "true", stdin: null}).end().reason(protocol.ReasonControllerClosed)
		if len(e.events) != 1 {
			t.Errorf("events %v", e.types())
		}
	})
	each(t, "a file, into a file", func(t *testing.T) {
		in, err := os.Open(file(t, "commands", commands("\n")))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "out")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, setup{harness: script(t, turnDone, result, exit(0)), stdin: in, stdout: out, flags: []string{"--on-eof", "finish"}})
		r.waitExit()
		got, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		r.readFrom(got)
		r.end().reason(protocol.ReasonSuccess)
	})
	each(t, "closed descriptor", func(t *testing.T) {
		r := start(t, setup{words: []string{"sh", "-c", `exec "$@" <&-`, "sh"}, harness: "true"})
		r.end().reason(protocol.ReasonControllerClosed)
	})
	each(t, "cancel before the end", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang), flags: []string{"--cancel-grace-ms", "100"}})
		r.write(commands("\n") + commandLine("c4", 4, protocol.RunCancel, "", "") + "\n")
		r.hangUp()
		r.end().reason(protocol.ReasonRunCancelled)
	})
}

func TestGraces(t *testing.T) {
	t.Parallel()
	each(t, "interrupt", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang), flags: []string{"--interrupt-grace-ms", "200", "--shutdown-grace-ms", longGrace}})
		r.begin()
		r.rejected(protocol.TurnInterrupt, `{"turnId":"other"}`, protocol.CodeTurnMismatch)
		r.accepted(protocol.TurnInterrupt, `{"turnId":"turn_1"}`)
		r.end().reason(protocol.ReasonTurnInterrupted).killed(15)
	})
	each(t, "interrupt, the turn ends", func(t *testing.T) {
		r := start(t, setup{
			harness: script(t, `{"kind":"await_interrupt"}`, `{"kind":"delay","milliseconds":1500}`, delta, exit(0)),
			flags:   []string{"--interrupt-grace-ms", "1000"},
		})
		r.begin()
		r.accepted(protocol.TurnInterrupt, "")
		e := r.end().reason(protocol.ReasonTurnInterrupted).code(0)
		if len(e.of(protocol.EventItemDelta)) != 1 {
			t.Error("the harness was ended though its turn had ended")
		}
	})
	each(t, "interrupt, then another turn", func(t *testing.T) {
		r := start(t, setup{harness: script(t, `{"kind":"await_interrupt"}`, `{"kind":"await_command","command_type":"turn.start"}`, turnDone, result, exit(0))})
		r.begin()
		r.accepted(protocol.TurnStop, "")
		r.event(protocol.EventTurnInterrupted)
		r.accepted(protocol.TurnStart, `{"turnId":"turn_2","text":"again"}`)
		r.end().reason(protocol.ReasonSuccess)
	})
	each(t, "cancel", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang), flags: []string{"--cancel-grace-ms", "200", "--shutdown-grace-ms", longGrace}})
		r.begin()
		r.accepted(protocol.RunCancel, "")
		r.end().reason(protocol.ReasonRunCancelled).killed(15)
	})
	each(t, "cancel is obeyed", func(t *testing.T) {
		r := start(t, setup{harness: script(t, `{"kind":"await_command","command_type":"run.cancel"}`, turnOver, exit(5)), flags: []string{"--cancel-grace-ms", longGrace}})
		r.begin()
		r.accepted(protocol.RunCancel, "")
		r.end().reason(protocol.ReasonRunCancelled).code(5)
	})
	each(t, "run timeout", func(t *testing.T) {
		r := start(t, setup{harness: script(t, stubborn, hang), flags: []string{"--run-timeout-ms", "700", "--shutdown-grace-ms", "300"}})
		r.begin()
		r.end().reason(protocol.ReasonRunTimedOut)
	})
	each(t, "a slow interrupt and then a cancel", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang), flags: []string{"--cancel-grace-ms", "100"}})
		r.begin()
		r.accepted(protocol.TurnInterrupt, "")
		r.accepted(protocol.RunCancel, "")
		// The first cause that happened decides.
		r.end().reason(protocol.ReasonTurnInterrupted)
	})
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	each(t, "events", func(t *testing.T) {
		// The handshake has three events of its own.
		r := start(t, setup{harness: script(t, manyDeltas), flags: []string{"--max-events", "10"}})
		r.beginUnread()
		e := r.end().reason(protocol.ReasonBudgetExceeded)
		if n := len(e.of(protocol.EventItemDelta)); n != 7 {
			t.Errorf("%d events item.delta, want 7", n)
		}
	})
	each(t, "exactly", func(t *testing.T) {
		r := start(t, setup{harness: script(t, delta, result, exit(0)), flags: []string{"--max-events", "5"}})
		r.beginUnread()
		r.end().reason(protocol.ReasonSuccess)
	})
	each(t, "bytes", func(t *testing.T) {
		r := start(t, setup{harness: script(t, manyDeltas), flags: []string{"--max-event-bytes", "4000"}})
		r.beginUnread()
		e := r.end().reason(protocol.ReasonBudgetExceeded)
		if n := len(e.of(protocol.EventItemDelta)); n < 5 || n > 40 {
			t.Errorf("%d events item.delta within 4000 bytes", n)
		}
	})
}

// Forged and unknown events are not passed on.
func TestForgedEvents(t *testing.T) {
	t.Parallel()
	s := ready()
	for _, typ := range []string{"run.terminal", "harness.exited", "runner.ready", "turn.submitted"} {
		s.event(typ, proposal)
	}
	s.event("no.such.type", `{}`)
	r := start(t, setup{harness: s.result().cat(t)})
	r.send(protocol.RunPrepare, "")
	e := r.end().reason(protocol.ReasonSuccess)
	if n := len(e.of(protocol.EventHarnessDiag)); n != 5 {
		t.Errorf("%d events harness.diagnostic, want 5", n)
	}
	for _, code := range []protocol.Code{protocol.CodeReservedEventType, protocol.CodeUnknownEventType} {
		if _, ok := e.diagnosed(code); !ok {
			t.Errorf("no diagnostic %s", code)
		}
	}
}

// A harness that dies by a signal has no exit code.
func TestDeathBySignal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGTERM} {
		each(t, sig.String(), func(t *testing.T) {
			r := start(t, setup{harness: script(t, result, fmt.Sprintf(`{"kind":"crash","signal":%d}`, sig))})
			r.beginUnread()
			r.end().reason(protocol.ReasonProcessFailed).killed(int(sig))
		})
	}
}
