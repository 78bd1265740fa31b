package controller

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"prp/protocol"
)

var update = flag.Bool("update", false, "write the golden snapshots of the recorded runs")

// fixtures is where the recorded runs are.
const fixtures = "../fixtures"

// replayFile replays a recorded run.
func replayFile(t *testing.T, name string) (*Replayer, []Problem) {
	t.Helper()
	f, err := os.Open(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, problems, err := Replay(f)
	if err != nil {
		t.Fatal(err)
	}
	return r, problems
}

// TestRecordedRuns: what is wrong with each record, and the snapshot of it.
func TestRecordedRuns(t *testing.T) {
	tests := []struct {
		name     string
		problems []string // the beginnings of the problems, in order
		complete bool
	}{
		{"happy.jsonl", nil, true},
		{"failed.jsonl", nil, true},
		{"interrupted.jsonl", nil, true},
		{"permission.jsonl", nil, true},
		{"unknown-fields.jsonl", nil, true},
		{"duplicate-event.jsonl", []string{"line 15: message.event.sourceSeq: expected 12, got 11 (sequence)"}, false},
		{"source-gap.jsonl", []string{"line 14: message.event.sourceSeq: expected 11, got 12 (sequence)"}, false},
		{"invalid/torn.jsonl", []string{"line 14: not valid JSON", "line 14: expected run.terminal"}, false},
		{"invalid/unsupported-version.jsonl", slices.Concat(
			slices.Repeat([]string{"message.event.schemaVersion: expected "}, 19), []string{"line 22: expected run.terminal"}), false},
	}
	known, err := filepath.Glob(fixtures + "/*.jsonl")
	deeper, err2 := filepath.Glob(fixtures + "/*/*.jsonl")
	if err != nil || err2 != nil || len(known)+len(deeper) != len(tests) {
		t.Errorf("%d recorded runs and %d rows", len(known)+len(deeper), len(tests))
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, problems := replayFile(t, tt.name)
			if len(problems) != len(tt.problems) {
				t.Errorf("got %d problems, want %d: %v", len(problems), len(tt.problems), problems)
			}
			for i, want := range tt.problems[:min(len(problems), len(tt.problems))] {
				if got := problems[i].String(); !strings.Contains(got, want) {
					t.Errorf("problem %d: got %q, want %q", i, got, want)
				}
			}
			if r.Snapshot.Integrity.Complete != tt.complete {
				t.Errorf("complete is %t, want %t", !tt.complete, tt.complete)
			}
			golden(t, strings.TrimSuffix(tt.name, ".jsonl")+".snapshot.json", &r.Snapshot)
		})
	}
}

// TestNoRecord: one message makes a record, whatever else is in it, and so does
// an empty file. Anything else is told in one line.
func TestNoRecord(t *testing.T) {
	const diagnostic = `{"schema":"paperclip.runner.stream.v1","message":{"kind":"diagnostic","level":"error","message":"m","code":"c"}}`
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{diagnostic + "\n", ""},
		{"# Read me\n" + diagnostic + "\n", ""},
		{"# Read me\n", "got 1 line of something else; line 1: not valid JSON"},
		{"\n# Read me\n\n{}\n", "got 2 lines of something else; line 2: not valid JSON"},
		{`{"schema":"other"}`, `got 1 line of something else; line 1: schema: expected "paperclip.runner.stream.v1", got "other"`},
	} {
		r, _, err := Replay(strings.NewReader(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := r.NoRecord(); err != nil {
			got = err.Error()
		}
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || strings.Contains(got, "\n") {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func golden(t *testing.T, name string, s *Snapshot) {
	t.Helper()
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join(fixtures, name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the snapshot differs; look at it, then run with -update\n(-want +got)\n%s", diff)
	}
	var back Snapshot
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.MarshalIndent(&back, "", "  "); !bytes.Equal(append(again, '\n'), got) {
		t.Error("a snapshot that was read back is not the same")
	}
}

func eventsOf(t *testing.T, name string) []protocol.Event {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	d := protocol.NewDecoder()
	var events []protocol.Event
	for line := range bytes.Lines(text) {
		m, err := d.Stream(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == protocol.KindEvent {
			events = append(events, *m.Event)
		}
	}
	return events
}

func fold(events []protocol.Event) *Snapshot {
	s := new(Snapshot)
	for _, e := range events {
		s.Apply(e)
	}
	return s
}

// withoutIntegrity is a snapshot as far as the run goes.
func withoutIntegrity(s *Snapshot) *Snapshot {
	c := s.Clone()
	c.Integrity = Integrity{}
	return c
}

// TestApplyTwice: an event that comes again, at any later place and any number
// of times, changes nothing of the run, and is listed once.
func TestApplyTwice(t *testing.T) {
	events := eventsOf(t, "permission.jsonl")
	want := fold(events)
	for i := range events {
		for at := i + 1; at <= len(events); at++ {
			twice := slices.Insert(slices.Clone(events), at, events[i], events[i])
			got := fold(twice)
			if diff := cmp.Diff(withoutIntegrity(want), withoutIntegrity(got), exported); diff != "" {
				t.Fatalf("event %d again at %d (-once +twice):\n%s", i, at, diff)
			}
			if !slices.Equal(got.Integrity.Duplicates, []string{events[i].SourceEventID}) {
				t.Fatalf("event %d again at %d: the duplicates are %q", i, at, got.Integrity.Duplicates)
			}
		}
	}
}

// TestGapStays: a missing event is recorded with its number; when it comes
// late it is listed, and neither applied nor taken for the filling of the gap.
func TestGapStays(t *testing.T) {
	events := eventsOf(t, "happy.jsonl")
	for i := range events[:len(events)-1] {
		missing := slices.Delete(slices.Clone(events), i, i+1)
		s := fold(missing)
		gap := []Gap{{Source: "runner_1", From: int64(i + 1), To: int64(i + 1)}}
		if i == 0 {
			gap[0].From = 1
		}
		if !slices.Equal(s.Integrity.Gaps, gap) || s.Integrity.Complete {
			t.Fatalf("without event %d: %+v", i+1, s.Integrity)
		}
		before := withoutIntegrity(s)
		s.Apply(events[i])
		if diff := cmp.Diff(before, withoutIntegrity(s), exported); diff != "" {
			t.Fatalf("event %d came late and was applied:\n%s", i+1, diff)
		}
		if !slices.Equal(s.Integrity.Gaps, gap) || !slices.Equal(s.Integrity.OutOfOrder, []string{events[i].SourceEventID}) {
			t.Fatalf("event %d came late: %+v", i+1, s.Integrity)
		}
	}
}

// TestAnyOrder: whatever is lost, doubled or moved, the fold does not fail,
// its cursor is the highest number, and only the whole run is complete.
func TestAnyOrder(t *testing.T) {
	events := eventsOf(t, "interrupted.jsonl")
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		mixed := []protocol.Event{}
		for _, e := range events {
			for range random.IntN(3) {
				mixed = append(mixed, e)
			}
		}
		if len(mixed) == 0 {
			continue
		}
		if random.IntN(2) == 0 {
			random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		}
		s := fold(mixed)
		highest := slices.MaxFunc(mixed, func(a, b protocol.Event) int { return int(a.SourceSeq - b.SourceSeq) })
		if s.Cursors["runner_1"] != highest.SourceSeq {
			t.Fatalf("the cursor is %d, want %d", s.Cursors["runner_1"], highest.SourceSeq)
		}
		whole := slices.EqualFunc(mixed, events, func(a, b protocol.Event) bool { return a.SourceSeq == b.SourceSeq })
		if s.Integrity.Complete != whole {
			t.Fatalf("complete is %t for %d of %d events", s.Integrity.Complete, len(mixed), len(events))
		}
		for i := 1; i < len(s.Timeline); i++ {
			if s.Timeline[i].Seq <= s.Timeline[i-1].Seq {
				t.Fatalf("the timeline goes from %d to %d", s.Timeline[i-1].Seq, s.Timeline[i].Seq)
			}
		}
	}
}

func TestForeignEvent(t *testing.T) {
	events := eventsOf(t, "happy.jsonl")
	s := fold(events[:5])
	before := withoutIntegrity(s)
	stranger := events[5]
	stranger.RunID, stranger.SourceEventID = "other", "event_other_006"
	s.Apply(stranger)
	if diff := cmp.Diff(before, withoutIntegrity(s), exported); diff != "" {
		t.Errorf("an event of another run was applied:\n%s", diff)
	}
	if !slices.Equal(s.Integrity.Foreign, []string{"event_other_006"}) {
		t.Errorf("got %+v", s.Integrity)
	}
}

// TestCloneIsApart: neither changes when the other goes on.
func TestCloneIsApart(t *testing.T) {
	events := eventsOf(t, "permission.jsonl")
	for i := range events {
		s := fold(events[:i])
		c := s.Clone()
		for _, e := range events[i:] {
			s.Apply(e)
		}
		if diff := cmp.Diff(fold(events[:i]), c, exported); diff != "" {
			t.Fatalf("the clone after %d events has changed:\n%s", i, diff)
		}
	}
}

// TestDeltas: the text of an item is every delta, one after the other.
func TestDeltas(t *testing.T) {
	e := protocol.Event{
		RunID: "r", NormalizedSessionID: "s", SourceInstanceID: "x", EventType: protocol.EventItemDelta, ItemID: "i",
	}
	var s Snapshot
	for _, payload := range []string{`{"delta":"Hel"}`, `{"delta":"lo\n"}`, `{}`, `{"delta":"world"}`} {
		e.SourceSeq++
		e.Payload = json.RawMessage(payload)
		s.Apply(e)
	}
	if got := s.Items[0].Text.String(); got != "Hello\nworld" {
		t.Errorf("got %q", got)
	}
}

// TestSummaryIsOneSafeLine: what a harness writes cannot move the cursor, turn
// the direction of writing, or fill the screen.
func TestSummaryIsOneSafeLine(t *testing.T) {
	for _, hostile := range []string{
		"\x1b[2J", "a\rb", "a\nb", "\u202eabc", "\u0085", "\x00", "\u2028", "\u009b31m", strings.Repeat("x", 100000), "\xff\xfe",
	} {
		text := protocol.AppendString(nil, hostile)
		e := protocol.Event{EventType: protocol.EventItemDelta, Payload: json.RawMessage(`{"delta":` + string(text) + `}`)}
		got := Summarize(&e)
		for _, r := range got {
			if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == 0x202e || r == 0x2028 {
				t.Errorf("%q: the summary %q has %U", hostile, got, r)
			}
		}
		if len([]rune(got)) > summaryLen+4 {
			t.Errorf("a summary of %d characters", len([]rune(got)))
		}
	}
}

// TestSummaryOfAnAnswer: what was answered is shown as a person reads it, also
// where nothing was.
func TestSummaryOfAnAnswer(t *testing.T) {
	for response, want := range map[string]string{
		`{"decision":"allow"}`:      "q: allow",
		`{"text":"It is late."}`:    "q: It is late.",
		`{"text":""}`:               `q: ""`,
		`{"decision":"","text":""}`: `q: ""`,
		`{"text":null}`:             `q: {"text":null}`,
		`{"other":1}`:               `q: {"other":1}`,
		`null`:                      "q",
	} {
		e := protocol.Event{EventType: protocol.EventRequestResolved, Payload: json.RawMessage(`{"requestId":"q","response":` + response + `}`)}
		if got := Summarize(&e); got != want {
			t.Errorf("%s: got %q, want %q", response, got, want)
		}
	}
}

// TestEveryReasonIsASentence: no reason of the spec is shown as a bare word.
func TestEveryReasonIsASentence(t *testing.T) {
	for _, r := range []protocol.Reason{
		protocol.ReasonTurnInterrupted, protocol.ReasonRunCancelled, protocol.ReasonRunnerShutdown,
		protocol.ReasonControllerClosed, protocol.ReasonRunnerTerminated, protocol.ReasonStartFailed,
		protocol.ReasonNotReady, protocol.ReasonProtocolViolation, protocol.ReasonRunTimedOut,
		protocol.ReasonBudgetExceeded, protocol.ReasonSuccess, protocol.ReasonProcessFailed, protocol.ReasonResultMissing,
	} {
		if got := ReasonText(r); !strings.HasSuffix(got, ".") {
			t.Errorf("%s: got %q", r, got)
		}
	}
}

// TestChoices: choices are objects with a key, or plain strings.
func TestChoices(t *testing.T) {
	r := protocol.Request{Choices: json.RawMessage(`[{"key":"allow","label":"Allow it"},"deny",{"label":"no key"},7]`)}
	want := []Choice{{"allow", "Allow it"}, {"deny", "deny"}}
	if diff := cmp.Diff(want, Choices(r)); diff != "" {
		t.Error(diff)
	}
}

func FuzzReplay(f *testing.F) {
	for _, name := range []string{"happy.jsonl", "permission.jsonl", "source-gap.jsonl", "invalid/torn.jsonl"} {
		text, err := os.ReadFile(filepath.Join(fixtures, name))
		if err != nil {
			f.Fatal(err)
		}
		// Short inputs are changed more often in the same time.
		lines := bytes.SplitAfter(text, []byte("\n"))
		f.Add(bytes.Join(lines[:2], nil))
		f.Add(bytes.Join(lines[max(0, len(lines)-3):], nil))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, problems, err := Replay(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if r.Snapshot.Integrity.Complete && r.Snapshot.Terminal == nil {
			t.Error("complete without a terminal")
		}
		if len(problems) == 0 && !r.Snapshot.Integrity.Complete {
			t.Error("no problems, and not complete")
		}
		if _, err := json.Marshal(&r.Snapshot); err != nil {
			t.Error(err)
		}
	})
}

// exported compares what a snapshot shows.
var exported = cmpopts.IgnoreUnexported(Snapshot{})

// A summary is bounded also where line ends, which count as three, step over
// the bound.
func TestOneLineIsBounded(t *testing.T) {
	for pad := range 6 {
		got := OneLine(strings.Repeat("x", summaryLen-pad) + strings.Repeat("\nyy", 1000))
		if n := utf8.RuneCountInString(got); n > summaryLen+len(" ⏎ ") {
			t.Errorf("%d characters before the line ends: %d in all", summaryLen-pad, n)
		}
	}
}

// Items are told apart by turn and id, however their events are mixed.
func TestItemsMixed(t *testing.T) {
	s := &Snapshot{}
	for round := range 3 {
		for i := range 50 {
			item := s.item(fmt.Sprint("turn", i%2), fmt.Sprint("item", i/2))
			item.Text = fmt.Append(item.Text, round)
		}
		s = s.Clone()
	}
	if len(s.Items) != 50 {
		t.Fatalf("%d items, want 50", len(s.Items))
	}
	for _, item := range s.Items {
		if string(item.Text) != "012" {
			t.Errorf("item %s of %s has the text %q, want 012", item.ID, item.TurnID, item.Text)
		}
	}
}
