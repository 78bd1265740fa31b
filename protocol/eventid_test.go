package protocol

import (
	"encoding/json"
	"testing"
)

// TestEventIDDerived: an event without an id is printed with the id that
// follows from its run and number, whatever the run id is made of.
func TestEventIDDerived(t *testing.T) {
	for _, run := range []string{"run-1", `a"b\c`, "日本", "x"} {
		for _, seq := range []int64{1, 9, 10, 99, 100, 999, 1000, 1234567} {
			line := AppendEvent(nil, &Event{RunID: run, SourceSeq: seq, EventType: EventItemDelta})
			var got struct{ Message struct{ Event Event } }
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatalf("%q %d: %v", run, seq, err)
			}
			if want := EventID(run, seq); got.Message.Event.SourceEventID != want {
				t.Errorf("got %q, want %q", got.Message.Event.SourceEventID, want)
			}
		}
	}
	if got := EventID("r", 7); got != "event_r_007" {
		t.Errorf("got %q", got)
	}
}
