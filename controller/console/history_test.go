package console

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"prp/protocol"
)

// told is a line of a history as a client reads it.
type told struct {
	Index int64
	Next  int64
	Line  json.RawMessage
	Gap   *gap
}

// event makes an event as a runner writes it.
func event(seq int64, kind protocol.EventType, item, payload string) protocol.StreamMessage {
	return protocol.StreamMessage{Kind: protocol.KindEvent, Event: &protocol.Event{
		SourceSeq: seq, EventType: kind, Priority: kind.Priority(), TurnID: "turn_1", ItemID: item, Payload: json.RawMessage(payload),
	}}
}

// addEvents adds events in turn, with lines of about the given length.
func addEvents(h *history, length int, events ...protocol.StreamMessage) {
	for _, m := range events {
		line := fmt.Sprintf(`{"seq":%d,"x":"%s"}`, m.Event.SourceSeq, strings.Repeat("x", length))
		h.add([]byte(line), &m)
	}
}

// readAllFrom reads a history from an index to its end, and checks that it has
// no holes.
func readAllFrom(t *testing.T, h *history, from int64) []told {
	t.Helper()
	var list []told
	for at := from; at < h.next; {
		lines, next := h.read(at)
		if next <= at || len(lines) == 0 {
			t.Fatalf("reading from %d of %d gives %d lines up to %d", at, h.next, len(lines), next)
		}
		for _, line := range lines {
			var r told
			if err := json.Unmarshal(line, &r); err != nil || line[len(line)-1] != '\n' {
				t.Fatalf("not a line: %q", line)
			}
			if r.Index != at {
				t.Fatalf("expected the record %d, got %d", at, r.Index)
			}
			at++
			if r.Gap != nil {
				at = r.Next
			}
			list = append(list, r)
		}
		if at != next {
			t.Fatalf("the lines lead to %d, and read says %d", at, next)
		}
	}
	return list
}

// TestHistoryMerges: a flood of deltas is merged, in bounds, without a loss of
// text, and everything else stays.
func TestHistoryMerges(t *testing.T) {
	h := history{limit: 200 << 10}
	var want strings.Builder
	seq := int64(0)
	for i := range 2000 {
		if i%10 == 9 {
			seq++
			addEvents(&h, 1, event(seq, protocol.EventUsageReported, "", `{}`))
		}
		seq++
		text := fmt.Sprintf("%d,", i)
		want.WriteString(text)
		addEvents(&h, 150, event(seq, protocol.EventItemDelta, "a", `{"delta":"`+text+`"}`))
		if h.size > h.limit {
			t.Fatalf("after event %d the history has %d bytes of %d", seq, h.size, h.limit)
		}
	}
	if !h.reduced {
		t.Fatal("nothing was merged")
	}
	var got strings.Builder
	events := int64(0)
	for _, r := range readAllFrom(t, &h, 0) {
		switch {
		case r.Gap != nil:
			events += r.Gap.Events
			if r.Gap.Cut || r.Gap.ToSeq-r.Gap.FromSeq+1 != r.Gap.Events {
				t.Errorf("the gap is %+v", *r.Gap)
			}
			for _, text := range r.Gap.Text {
				got.Write(text.Text)
			}
		default:
			events++
		}
	}
	if events != seq {
		t.Errorf("%d events are told, want %d", events, seq)
	}
	if !strings.HasPrefix(want.String(), got.String()) || got.Len() == 0 {
		t.Errorf("the merged text is no beginning of the whole: %.80q", got.String())
	}
}

// TestHistoryKeepsWhatCounts: also a flood of ordinary events leaves the ends
// and the questions.
func TestHistoryKeepsWhatCounts(t *testing.T) {
	h := history{limit: 50 << 10}
	addEvents(&h, 10, event(1, protocol.EventTurnSubmitted, "", `{"text":"x"}`), event(2, protocol.EventRequestCreated, "", `{}`))
	for seq := int64(3); seq < 2000; seq++ {
		addEvents(&h, 200, event(seq, protocol.EventUsageReported, "", `{}`))
	}
	addEvents(&h, 10, event(2000, protocol.EventResultProposed, "", `{}`), event(2001, protocol.EventRunTerminal, "", `{}`))
	var lines []string
	for _, r := range readAllFrom(t, &h, 0) {
		lines = append(lines, string(r.Line))
	}
	for _, seq := range []int64{1, 2, 2000, 2001} {
		if !strings.Contains(strings.Join(lines, "\n"), fmt.Sprintf(`{"seq":%d,`, seq)) {
			t.Errorf("event %d is not kept", seq)
		}
	}
}

// TestHistoryBound: whatever comes, the history stays below its limit, or has
// one record.
func TestHistoryBound(t *testing.T) {
	kinds := []protocol.EventType{
		protocol.EventItemDelta, protocol.EventItemDelta, protocol.EventHarnessDiag, protocol.EventUsageReported,
		protocol.EventTurnCompleted, protocol.EventRequestCreated, protocol.EventItemStarted,
	}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		h := history{limit: 4 << 10 << random.IntN(5)}
		for seq := int64(1); seq < 600; seq++ {
			payload := `{"delta":"` + strings.Repeat("d", random.IntN(300)) + `"}`
			m := event(seq, kinds[random.IntN(len(kinds))], fmt.Sprint(random.IntN(3)), payload)
			if random.IntN(8) == 0 {
				m = protocol.StreamMessage{Kind: protocol.KindDiagnostic}
				h.add([]byte(`{}`), &m)
				continue
			}
			addEvents(&h, random.IntN(700), m)
			size := 0
			for i := range h.records {
				size += h.records[i].cost()
			}
			if size != h.size {
				t.Fatalf("seed %d: the size is %d, and %d is counted", seed, size, h.size)
			}
			if h.size > h.limit && len(h.records) > 2 {
				t.Fatalf("seed %d: %d bytes in %d records, with a limit of %d", seed, h.size, len(h.records), h.limit)
			}
		}
		readAllFrom(t, &h, 0)
		readAllFrom(t, &h, random.Int64N(h.next))
	}
}

// TestHistoryInsideAGap: a client that stands inside a gap gets its rest, and
// not a text of which it may have had a part.
func TestHistoryInsideAGap(t *testing.T) {
	h := history{limit: 20 << 10}
	for seq := int64(1); seq < 200; seq++ {
		addEvents(&h, 200, event(seq, protocol.EventItemDelta, "a", `{"delta":"x"}`))
	}
	first := readAllFrom(t, &h, 0)[0]
	if first.Gap == nil || first.Next < 10 || len(first.Gap.Text) != 1 {
		t.Fatalf("the history begins with %+v", first)
	}
	inside := readAllFrom(t, &h, 5)[0]
	if inside.Gap == nil || inside.Index != 5 || inside.Next != first.Next || len(inside.Gap.Text) != 0 || !inside.Gap.Cut {
		t.Errorf("from inside: %+v", inside)
	}
}

// TestReducedRun: a run that outgrows its history still ends well, and says so.
func TestReducedRun(t *testing.T) {
	flood := scriptFile(t, `{"kind":"event","event_type":"item.started","item_id":"i","payload":{"kind":"message"}},
		{"kind":"repeat","times":3000,"steps":[{"kind":"event","event_type":"item.delta","item_id":"i","payload":{"delta":"0123456789"}}]},
		{"kind":"event","event_type":"item.completed","item_id":"i","payload":{}},{"kind":"exit","code":0}`)
	cfg := withScripts(t, flood)
	cfg.HistoryBytes = 200 << 10
	l := serve(t, cfg, "127.0.0.1:0")
	id := l.start(flood)
	eventually(t, "it ends", func() bool { return !l.info(id).Active })
	info := l.info(id)
	if !info.Reduced || info.State != protocol.RunFailed || info.Events < 3000 {
		t.Errorf("the run is %+v", info)
	}
	lines, _ := l.follow(id, "")
	text, single := 0, 0
	for _, s := range all(t, lines) {
		if s.Gap != nil {
			for _, g := range s.Gap.Text {
				text += len(g.Text)
			}
		}
		if s.Line != nil && s.Line.Message.Event.EventType == "item.delta" {
			single++
		}
	}
	if text+10*single != 30000 || text == 0 {
		t.Errorf("%d characters merged and %d deltas single, want 30000 characters in all", text, single)
	}
}

// TestHistoryCostsNoMoreThanItGets: what was merged is not copied with each
// delta that is merged into it; a run of 400,000 deltas took minutes by that.
func TestHistoryCostsNoMoreThanItGets(t *testing.T) {
	for name, items := range map[string]int{"one item": 1, "two items in turn": 2} {
		t.Run(name, func(t *testing.T) {
			const count, size = 30_000, 200
			h := &history{limit: 4 << 20}
			payload := fmt.Sprintf(`{"delta":%q}`, strings.Repeat("d", size))
			line := []byte(`{"x":"` + strings.Repeat("x", 2*size) + `"}`)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			given := uint64(0)
			for seq := range int64(count) {
				m := event(seq+1, protocol.EventItemDelta, fmt.Sprint("item_", seq%int64(items)), payload)
				h.add(line, &m)
				given += uint64(len(line) + recordOverhead + size)
			}
			runtime.ReadMemStats(&after)
			if !h.reduced {
				t.Fatal("nothing was merged")
			}
			// The line is wrapped, the payload is parsed, the lists and texts
			// double as they grow; to copy all with each would be a thousandfold.
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 20*given {
				t.Errorf("%d bytes came, and %d were allocated", given, taken)
			}
		})
	}
}
