//go:build unix

package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prp/controller/devserver"
)

// TestProgressPace: row 13. Of ten reports in a second two are sent, for as long
// as it takes, and none in the first half second.
func TestProgressPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(progressEvery)
		var sent []time.Duration
		begun := time.Now()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if p.now() {
				sent = append(sent, time.Since(begun))
			}
		}
		if len(sent) != 20 || sent[0] != 500*time.Millisecond {
			t.Errorf("in 10 s there were %d reports, at %s", len(sent), sent)
		}
	})
}

// TestProgress: seed, row 13. A search tells how far it is before its result,
// in the seed's envelope.
func TestProgress(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.ProgressEvery = time.Nanosecond
	p.start()
	const folders = 5
	for i := range folders {
		p.write(fmt.Sprintf("d%d/f", i), "text\n")
	}
	r := p.do(ToolSearch, `{"query":"text"}`)
	if len(r.Fields["matches"].([]any)) != folders {
		t.Errorf("the result is %s", r.Raw)
	}
	var events int
	for _, f := range p.server.Frames() {
		if f.Kind != devserver.OnProgress {
			continue
		}
		events++
		var e struct {
			Event     string
			CommandID string `json:"command_id"`
			Progress  struct {
				Percent *int
				Message string
			}
		}
		if err := json.Unmarshal(f.Raw, &e); err != nil || e.CommandID != r.CommandID || e.Progress.Percent != nil || !strings.HasPrefix(e.Progress.Message, "Searching: ") {
			t.Errorf("the event is %s, %v", f.Raw, err)
		}
	}
	frames := p.server.Frames()
	if events != folders || frames[len(frames)-1].Kind != devserver.OnResult {
		t.Errorf("%d events for %d folders, the last frame is %s", events, folders, frames[len(frames)-1].Raw)
	}
}
