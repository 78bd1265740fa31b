package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"prp/controller/bridge"
	"prp/protocol"
)

// TestEventNames: a member of an event in other letters is not known (prp.md
// section 1), and takes nothing away from the one that is.
func TestEventNames(t *testing.T) {
	w := newWatched(bridge.NewMasker(nil))
	apply := func(kind protocol.EventType, payload string) (string, string) {
		return w.apply(&protocol.Event{EventType: kind, Payload: json.RawMessage(payload)})
	}
	apply(protocol.EventItemStarted, `{"PID":7,"pid":8,"Pid":9,"startedAt":"then","StartedAt":"now"}`)
	stream, delta := apply(protocol.EventItemDelta, `{"stream":"stderr","Stream":"stdout","DELTA":"x","delta":"y","Delta":"z","replacedBytes":1,"ReplacedBytes":2}`)
	apply(protocol.EventHarnessDiag, `{"Code":"command_not_started","message":"why"}`)
	apply(protocol.EventItemCompleted, `{"StdoutBytes":5,"StderrBytes":5}`)
	if w.pid != 8 || w.startedAt != "then" || stream != "stderr" || delta != "y" || w.replaced != 1 || w.notStarted != "" || w.stdoutBytes != -1 {
		t.Errorf("%q %q, %+v", stream, delta, w)
	}
	apply(protocol.EventHarnessDiag, `{"code":"command_not_started","message":"why","Message":"x"}`)
	apply(protocol.EventItemCompleted, `{"stdoutBytes":0,"stderrBytes":1,"STDERRBYTES":5}`)
	if w.end(); w.notStarted != "why" || w.stdoutBytes != 0 || w.stderrBytes != 1 {
		t.Errorf("%+v", w)
	}
}

// TestCancelFits: rows 2 and 10. The reply to a cancel of a task that has had as
// many commands as are remembered fits into a frame; every command that was
// cancelled is in it.
func TestCancelFits(t *testing.T) {
	var list []cancelledResult
	for i := range 65_536 {
		outcome := outcomeFinished
		if i%1000 == 7 {
			outcome = outcomeCancelled
		}
		list = append(list, cancelledResult{CommandID: fmt.Sprintf("%d-%s", i, strings.Repeat("\"", 20)), Outcome: outcome})
	}
	kept, omitted := fitting(list)
	text, err := json.Marshal(kept)
	if err != nil || len(text) > resultBytes-frameRoom {
		t.Errorf("the list has %d bytes, %v", len(text), err)
	}
	if omitted == 0 || len(kept)+omitted != len(list) || kept[len(kept)-1] != list[len(list)-1] {
		t.Errorf("%d of %d are kept, %d omitted", len(kept), len(list), omitted)
	}
	cancelled := 0
	for _, one := range kept {
		if one.Outcome == outcomeCancelled {
			cancelled++
		}
	}
	if cancelled != 66 {
		t.Errorf("%d cancelled ones are in it, want 66", cancelled)
	}
	if kept, omitted := fitting(list[:10]); len(kept) != 10 || omitted != 0 {
		t.Errorf("of 10 there are %d kept, %d omitted", len(kept), omitted)
	}
}
