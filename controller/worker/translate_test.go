package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

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
