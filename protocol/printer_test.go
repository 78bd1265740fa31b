package protocol

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A printer and AppendEvent print the same, whatever changes from one event to
// the next.
func TestPrinterPrintsTheSame(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	p := NewEventPrinter(`run "1"`, "session-é", "runner\n1")
	for range 5000 {
		e := &Event{
			RunID: `run "1"`, NormalizedSessionID: "session-é", SourceInstanceID: "runner\n1",
			SourceSeq: rnd.Int64N(3000) + 1,
			TurnID:    pick("", "t1", `t"2`), ItemID: pick("", "i1", "i2"),
			EventType: EventType(pick("item.delta", "turn.started", "mcp_app.x")),
			Priority:  rnd.IntN(3), EmittedAt: "2026-01-01T00:00:00.000Z",
			Payload: []byte(pick("", "{}", `{"a":1}`)),
		}
		switch rnd.IntN(8) {
		case 0:
			e.RunID = "another"
		case 1:
			e.SourceEventID = "given"
		case 2:
			e.Schema, e.SourceKind, e.SchemaVersion = SchemaEvent, SourceKindRunner, EventSchemaVersion
		}
		want, got := string(AppendEvent([]byte("x\n"), e)), string(p.Append([]byte("x\n"), e))
		if want != got {
			t.Fatal(cmp.Diff(want, got))
		}
	}
}

func TestPrinterAllocatesNothing(t *testing.T) {
	p := NewEventPrinter("run", "session", "runner")
	e := &Event{RunID: "run", NormalizedSessionID: "session", SourceInstanceID: "runner", EventType: EventItemDelta, TurnID: "t", ItemID: "i", Priority: 2, EmittedAt: "2026-01-01T00:00:00.000Z"}
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { e.SourceSeq++; p.Append(buf, e) }); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}
