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
	// The journal has room for all but the last line: also then it is told
	// that the line is missing, before it.
	each(t, "full at the last line", func(t *testing.T) {
		play := func(words ...string) (*run, []byte) {
			path := filepath.Join(t.TempDir(), "journal")
			r := start(t, setup{harness: ready().result().cat(t), words: words, flags: []string{"--journal", path, "--clock", "deterministic"}})
			r.send(protocol.RunPrepare, "")
			r.end().reason(protocol.ReasonSuccess)
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return r, kept
		}
		_, whole := play()
		const block = 512 // bytes, the unit of ulimit -f in a POSIX shell
		r, kept := play("sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$@"`, (len(whole)-1)/block), "sh")
		if !bytes.HasSuffix(kept, []byte("\n")) || !bytes.HasPrefix(bytes.Join(r.lines, nil), kept) {
			t.Errorf("the journal has\n%s\nwant the first lines of stdout", kept)
		}
		at := bytes.Count(kept, []byte("\n"))
		if at >= len(r.msgs) || r.msgs[at].Diagnostic == nil || r.msgs[at].Diagnostic.Code != "journal_failed" {
			t.Errorf("the journal has %d lines, and what follows does not begin with a diagnostic\n%s", at, r.tail())
		}
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
		{[]string{"--harness", "a", "--run-id", ""}, "--run-id: expected 1 to 140 characters"},
		{[]string{"--harness", "a", "--session-id", long}, "--session-id: "},
		{[]string{"--harness", "a", "--runner-id", "\xff"}, "--runner-id: "},
		{[]string{"--harness", "a", "--clock", "sundial"}, `--clock: expected "system" or "deterministic", got "sundial"`},
		{[]string{"--harness", "a", "--on-eof", "panic"}, `--on-eof: expected "cancel" or "finish", got "panic"`},
		{[]string{"--harness", "a", "--max-events", "-1"}, "--max-events"},
		{[]string{"--harness", "a", "--max-event-bytes", "1.5"}, "--max-event-bytes"},
		{[]string{"--harness", "a", "--ready-timeout-ms", "1s"}, "--ready-timeout-ms"},
		{[]string{"--harness", "a", "--shutdown-grace-ms", "99999999999999999999"}, "--shutdown-grace-ms"},
		{[]string{"--harness", "a", "--harness-max-line-bytes", "0"}, "--harness-max-line-bytes: "},
		{[]string{"--harness", "a", "--command-history", "0"}, "--command-history: "},
		{[]string{"--harness", "a", "--command-max-line-bytes", "1"}, "--command-max-line-bytes: "},
		{[]string{"--harness", "a", "--log-max-lines", "99999999"}, "--log-max-lines: "},
		{[]string{"--harness", "a", "--log-max-bytes", "99999999"}, "--log-max-bytes: "},
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
