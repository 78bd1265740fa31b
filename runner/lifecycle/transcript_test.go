package lifecycle_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"prp/protocol"
	"prp/runner/lifecycle"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// base is the time of every first step; a line "at +2s" moves it on.
var base = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// player feeds a transcript to a state and prints what it orders. It answers
// the effects that are answered at once, as the shell does.
type player struct {
	t         *testing.T
	state     *lifecycle.State
	at        time.Time
	seq       int64  // messageSeq of the harness
	workspace string // detail of the next WorkspaceChecked
	start     string // detail of the next HarnessStartFailed
	out       strings.Builder
}

func testConfig() lifecycle.Config {
	return lifecycle.Config{
		RunID: "run-1", SessionID: "session-1", RunnerID: "runner-1", WorkingDirectory: ".",
		DriverKind: "process", Deterministic: true, CommandHistory: 64,
		ReadyTimeout: 30 * time.Second, ShutdownGrace: 5 * time.Second, CancelGrace: 2 * time.Second,
		InterruptGrace: 10 * time.Second, DrainGrace: time.Second, ExitGrace: 5 * time.Second,
	}
}

func newPlayer(t *testing.T, cfg lifecycle.Config) *player {
	return &player{t: t, state: lifecycle.New(cfg), at: base}
}

// step gives one input and prints the effects.
func (p *player) step(in lifecycle.Input) {
	queue := []lifecycle.Input{in}
	for len(queue) > 0 {
		in, queue = queue[0], queue[1:]
		for _, fx := range p.state.Step(p.at, in) {
			fmt.Fprintln(&p.out, "  "+show(fx))
			switch fx.Kind {
			case lifecycle.CheckWorkspace:
				queue = append(queue, lifecycle.WorkspaceChecked{Detail: p.workspace})
			case lifecycle.StartHarness:
				if p.start != "" {
					queue = append(queue, lifecycle.HarnessStartFailed{Detail: p.start})
				} else {
					queue = append(queue, lifecycle.HarnessStarted{})
				}
			case lifecycle.CloseHarness:
				queue = append(queue, lifecycle.HarnessClosed{Logs: protocol.LogTail{}})
			case lifecycle.Settle:
				queue = append(queue, lifecycle.Settled{})
			}
		}
	}
}

// show prints an effect as one line.
func show(fx lifecycle.Effect) string {
	switch fx.Kind {
	case lifecycle.Emit:
		e := fx.Event
		where := ""
		if e.TurnID != "" {
			where += " turn=" + e.TurnID
		}
		if e.ItemID != "" {
			where += " item=" + e.ItemID
		}
		return fmt.Sprintf("event %d %s%s %s", e.SourceSeq, e.EventType, where, e.Payload)
	case lifecycle.Answer:
		r := fx.Receipt
		return strings.TrimRight(fmt.Sprintf("receipt %s/%d %s %s %s", r.CommandID, r.ControllerSeq, r.Status, r.Code, r.Detail), " ")
	case lifecycle.Diagnose:
		return fmt.Sprintf("diagnostic %s %s %s", fx.Diagnostic.Level, fx.Diagnostic.Code, fx.Diagnostic.Message)
	case lifecycle.Log:
		return fmt.Sprintf("log %s: %s", fx.Stream, fx.Text)
	case lifecycle.SendHarness:
		return fmt.Sprintf("send %s %s", fx.Command.Type, fx.Command.Payload)
	case lifecycle.CloseHarnessInput:
		return fmt.Sprintf("CloseHarnessInput flush=%t", fx.Flush)
	case lifecycle.StopTree:
		return fmt.Sprintf("StopTree grace=%s", fx.Delay)
	case lifecycle.SetTimer:
		return fmt.Sprintf("SetTimer %s %s", fx.Timer, fx.Delay)
	case lifecycle.ClearTimer:
		return fmt.Sprintf("ClearTimer %s", fx.Timer)
	}
	return fx.Kind.String()
}

// play runs one line of a transcript.
func (p *player) play(line string) {
	p.t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case ">":
		p.command(rest)
	case ">>":
		p.commandLine(rest)
	case "<":
		kind, payload, _ := strings.Cut(rest, " ")
		p.seq++
		p.harnessLine(fmt.Sprintf(`{"schema":"paperclip.fake_harness.message.v1","messageSeq":%d,"type":%q,"payload":%s}`, p.seq, kind, payload))
	case "<<":
		p.harnessLine(rest)
	case "torn":
		p.step(lifecycle.HarnessBroke{Torn: true, Fault: protocol.MessageFault{Code: protocol.CodeHarnessTornLastLine, Detail: "half a line"}})
	case "exit":
		p.step(lifecycle.LeaderExited{Exit: exitFact(p.t, rest)})
	case "at":
		d, err := time.ParseDuration(strings.TrimPrefix(rest, "+"))
		if err != nil {
			p.t.Fatal(err)
		}
		p.at = p.at.Add(d)
	case "timer":
		p.timer(rest)
	default:
		p.fact(word, rest)
	}
}

func (p *player) fact(word, rest string) {
	p.t.Helper()
	switch word {
	case "eof":
		p.step(lifecycle.ControllerClosed{})
	case "signal":
		p.step(lifecycle.RunnerSignalled{Signal: rest})
	case "broken":
		p.step(lifecycle.OutputBroken{Detail: rest})
	case "outend":
		p.step(lifecycle.HarnessOutputEnded{})
	case "errend":
		p.step(lifecycle.HarnessErrorsEnded{})
	case "gone":
		swept, _ := strconv.Atoi(rest)
		p.step(lifecycle.TreeGone{Containment: protocol.Containment{Means: []string{"test"}, Swept: swept}})
	case "survivor":
		p.step(lifecycle.TreeGone{Containment: protocol.Containment{
			Means:     []string{"test"},
			Survivors: []protocol.Survivor{{PID: 42, Name: "stuck", State: "D"}},
		}})
	case "sent":
		p.step(lifecycle.HarnessInputWritten{Commands: 1, Size: 258})
	case "undelivered":
		p.step(lifecycle.HarnessInputBroken{Undelivered: strings.Fields(rest)})
	case "workspace":
		p.workspace = rest
	case "startfails":
		p.start = rest
	default:
		p.t.Fatalf("transcript line %q %q is not known", word, rest)
	}
}

// command is "ID SEQ TYPE [PAYLOAD]".
func (p *player) command(rest string) {
	parts := strings.SplitN(rest, " ", 4)
	payload := "{}"
	if len(parts) == 4 {
		payload = parts[3]
	}
	p.commandLine(fmt.Sprintf(`{"schema":"prp.command.v1","commandId":%q,"controllerSeq":%s,"type":%q,"issuedAt":"2026-03-01T12:00:00Z","payload":%s}`,
		parts[0], parts[1], parts[2], payload))
}

func (p *player) commandLine(line string) {
	c, fault := protocol.NewDecoder().Command([]byte(line))
	if fault != nil {
		p.step(lifecycle.CommandInvalid{Fault: fault})
		return
	}
	p.step(lifecycle.CommandReceived{Command: &c})
}

func (p *player) harnessLine(line string) {
	var m protocol.HarnessMessage
	if fault := protocol.NewDecoder().HarnessMessage([]byte(line), &m); fault != nil {
		p.step(lifecycle.HarnessBroke{Fault: *fault})
		return
	}
	p.step(&lifecycle.HarnessSaid{Message: &m, Bytes: len(line)})
}

// timer fires the named timer in its newest generation; the state ignores all
// others, so every generation is tried.
func (p *player) timer(name string) {
	for t := range lifecycle.Timers {
		if t.String() != name {
			continue
		}
		for gen := range 50 {
			p.step(lifecycle.TimerFired{Timer: t, Gen: gen})
		}
		return
	}
	p.t.Fatalf("timer %q is not known", name)
}

func exitFact(t *testing.T, text string) protocol.ExitFact {
	t.Helper()
	kind, number, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if kind != "signal" {
		n, err = strconv.Atoi(kind)
	}
	if err != nil {
		t.Fatalf("exit %q: %v", text, err)
	}
	if kind == "signal" {
		return protocol.ExitFact{Signal: &n}
	}
	return protocol.ExitFact{ExitCode: &n, Success: n == 0}
}

// TestTranscripts plays every transcript: its inputs, and the effects that
// each must have. A section "config" is JSON of the members that differ.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { playFile(t, file) })
	}
}

func playFile(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig()
	var in, want string
	for _, f := range archive.Files {
		switch f.Name {
		case "config":
			if err := json.Unmarshal(f.Data, &cfg); err != nil {
				t.Fatal(err)
			}
		case "in":
			in = string(f.Data)
		case "out":
			want = string(f.Data)
		}
	}
	p := newPlayer(t, cfg)
	for line := range strings.Lines(in) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fmt.Fprintln(&p.out, line)
		p.play(line)
	}
	got := p.out.String()
	if *update {
		files := archive.Files[:0]
		for _, f := range archive.Files {
			if f.Name != "out" {
				files = append(files, f)
			}
		}
		archive.Files = append(files, txtar.File{Name: "out", Data: []byte(got)})
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("effects differ (-want +got), -update rewrites:\n%s", diff)
	}
}
