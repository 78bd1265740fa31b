//go:build unix

package connector

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"prp/controller/bridge"
	"prp/controller/devserver"
)

// load starts so many runs at once and waits until the server has every event of
// them, each once and in order. It returns how many there were.
func (w *world) load(runs int) (events int) {
	w.t.Helper()
	var ids []string
	for range runs {
		ids = append(ids, w.create("many"))
	}
	for _, run := range ids {
		w.until("the completion of "+run, func() bool { return w.server.Over(run) })
		list, _, faults := w.server.Delivered(run)
		if len(faults) > 0 {
			w.t.Errorf("%s: %q", run, faults)
		}
		events += len(list)
	}
	return events
}

// longestPause is the longest time between two heartbeats, by their own times.
func (w *world) longestPause() time.Duration {
	w.t.Helper()
	var before time.Time
	longest := time.Duration(0)
	for _, f := range w.server.Frames() {
		if f.Type != "heartbeat" {
			continue
		}
		at, err := time.Parse(time.RFC3339, object(w.t, f.Raw)["timestamp"].(string))
		if err != nil {
			w.t.Fatal(err)
		}
		if !before.IsZero() {
			longest = max(longest, at.Sub(before))
		}
		before = at
	}
	return longest
}

// TestLoad: many runs at once over one connection: no event is lost, heartbeats
// go on, the connection stays.
func TestLoad(t *testing.T) {
	runs, each := 6, 300
	if testing.Short() {
		runs, each = 3, 100
	}
	w := settle(t, devserver.ConnectorConfig{AckEvery: 50})
	w.agent("many", many(each), func(a *Agent) { a.MaxConcurrentRuns = runs })
	w.cfg.Times.Heartbeat = 50 * time.Millisecond
	w.start()
	if n := w.load(runs); n < runs*each {
		t.Errorf("%d events, want at least %d", n, runs*each)
	}
	if n := w.count("register", ""); n != 1 {
		t.Errorf("there were %d sessions, want 1: %q", n, w.reported())
	}
	if n := w.count("heartbeat", ""); n == 0 {
		t.Error("no heartbeat was sent")
	}
}

// TestSlowServer: a server that is slow slows the delivery down and nothing else.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	var rules []devserver.Rule
	for n := range 5 {
		rules = append(rules, rule("run_event", 5+10*n, devserver.Late))
	}
	w := settle(t, devserver.ConnectorConfig{Rules: rules})
	w.agent("many", many(100))
	w.start()
	w.over(w.create("many"))
	if n := w.count("register", ""); n != 1 {
		t.Errorf("there were %d sessions, want 1", n)
	}
}

// TestSpoolFull: while the server is gone the spool takes so much and no more;
// only pieces of text are dropped, and the gap is told in their place
// (remote.md rule 10).
func TestSpoolFull(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	const pieces, size = 800, 8000
	piece := strings.Repeat("x", size)
	w.agent("many", fmt.Sprintf(`[{"kind":"repeat","times":%d,"steps":[{"kind":"event","event_type":"item.delta","item_id":"i",`+
		`"payload":{"kind":"assistant_message","delta":%q}}]},%s]`, pieces, piece, result))
	w.cfg.MaxConcurrentRuns = 1000 // so that a run has the least share
	w.start()
	run := w.create("many")
	w.got("run_accepted", run)
	w.server.Misbehave(rule("connect", 0, devserver.Drop), rule("run_event", 0, devserver.Drop), rule("post", 0, "http-503"))
	w.server.Quit(0)
	for w.conn.State().ActiveRuns > 0 {
		if w.ctx.Err() != nil {
			t.Fatal("the run does not end while nobody takes its events")
		}
		time.Sleep(time.Millisecond)
	}
	if n := w.conn.State().SpoolBytes; n > 2*minSpool {
		t.Errorf("the spool has %d bytes", n)
	}
	// Nor are there more on the disk: of 6.4 MB, those that were dropped are gone.
	if n := filesBelow(t, w.cfg.Dir); n > 5<<20 {
		t.Errorf("the files of the connector have %d bytes", n)
	}
	w.server.Misbehave()
	w.until("the completion", func() bool { return w.server.Over(run) })
	list, _, faults := w.server.Delivered(run)
	if len(faults) > 0 {
		t.Errorf("the server found %q", faults)
	}
	gaps, hard, next := 0, 0, int64(1)
	for _, f := range list {
		var ev runEvent
		if err := json.Unmarshal(f.Raw, &ev); err != nil {
			t.Fatal(err)
		}
		from := ev.Seq
		if unquoted(ev.Payload["code"]) == "events_dropped" {
			gaps++
			if json.Unmarshal(ev.Payload["from_seq"], &from) != nil || string(ev.Payload["to_seq"]) != fmt.Sprint(ev.Seq) {
				t.Errorf("a gap is %s", f.Raw)
			}
		} else if ev.Payload["text"] == nil || unquoted(ev.Payload["source_event"]) != "item.delta" {
			hard++
		}
		if from != next {
			t.Errorf("expected event %d, got %d", next, from)
		}
		next = ev.Seq + 1
	}
	// All that is no text is there: nine of the start, the result, the exit and
	// the terminal.
	if gaps == 0 || hard != 12 {
		t.Errorf("%d gaps and %d events that are no text, want some and 12", gaps, hard)
	}
}

// filesBelow is how many bytes the files below a folder have.
func filesBelow(t testing.TB, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// BenchmarkLoad is 50 runs at once with 2,000 events each over one connection
// with permessage-deflate: go test ./controller/connector -run xxx -bench Load
// -benchtime 1x.
func BenchmarkLoad(b *testing.B) {
	const runs, each = 50, 2000
	for range b.N {
		w := settle(b, devserver.ConnectorConfig{AckEvery: 100})
		w.agent("many", many(each), func(a *Agent) { a.MaxConcurrentRuns = runs })
		w.cfg.MaxConcurrentRuns = runs
		w.cfg.Times.Heartbeat = 200 * time.Millisecond
		peak := watchResident()
		w.start()
		w.until("a connector", w.server.Registered)
		began := time.Now()
		events := w.load(runs)
		took := time.Since(began)
		if n := w.count("register", ""); n != 1 {
			b.Errorf("there were %d sessions: %q", n, w.reported())
		}
		b.ReportMetric(float64(events)/took.Seconds(), "events/s")
		b.ReportMetric(float64(peak())/1e6, "MB-resident-with-server")
		b.ReportMetric(w.longestPause().Seconds(), "s-longest-heartbeat-pause")
		b.ReportMetric(took.Seconds(), "s")
		w.end()
	}
}

// BenchmarkGone is the same while the server is gone for a minute from the first
// events on, with the connector's own times: every event has to be there in the
// end, and what is measured is the time from the server's return. -bench Gone
// -benchtime 1x -timeout 10m.
func BenchmarkGone(b *testing.B) {
	const runs, each, gone = 50, 2000, time.Minute
	for range b.N {
		w := settleFor(b, devserver.ConnectorConfig{AckEvery: 100}, 8*time.Minute)
		w.agent("many", many(each), func(a *Agent) { a.MaxConcurrentRuns = runs })
		w.cfg.MaxConcurrentRuns, w.cfg.Link.Backoff, w.cfg.Times = runs, bridge.Backoff{}, Times{}
		peak := watchResident()
		w.start()
		var ids []string
		for range runs {
			ids = append(ids, w.create("many"))
		}
		w.until("the first events", func() bool { return w.count("run_event", "") > 100 })
		w.server.Misbehave(rule("connect", 0, devserver.Drop), rule("post", 0, devserver.Drop))
		w.server.Quit(0)
		left := time.Now()
		before := w.count("run_event", "")
		for time.Since(left) < gone {
			time.Sleep(100 * time.Millisecond)
		}
		s, onDisk := w.conn.State(), filesBelow(b, w.cfg.Dir)
		w.server.Misbehave()
		back := time.Now()
		w.until("a connector", w.server.Registered)
		found := time.Since(back)
		events := 0
		for _, run := range ids {
			w.until("the completion of "+run, func() bool { return w.server.Over(run) })
			list, _, faults := w.server.Delivered(run)
			if len(faults) > 0 || len(list) != each+12 {
				b.Errorf("%s: %d events, want %d; %q", run, len(list), each+12, faults)
			}
			events += len(list)
		}
		took := time.Since(back) - found
		b.Logf("%d of %d events had come before; after a minute %d runs were active, %d had events to deliver", before, events, s.ActiveRuns, s.WaitingRuns)
		b.ReportMetric(float64(onDisk)/1e6, "MB-on-disk")
		b.ReportMetric(float64(peak())/1e6, "MB-resident-with-server")
		b.ReportMetric(found.Seconds(), "s-until-connected")
		b.ReportMetric(took.Seconds(), "s-until-all-is-there")
		b.ReportMetric(float64(events-before)/took.Seconds(), "events/s")
		w.end()
	}
}

// watchResident watches the memory of this process until the function that it
// returns is called, which tells the most.
func watchResident() (most func() uint64) {
	var peak atomic.Uint64
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
				peak.Store(max(peak.Load(), resident()))
			}
		}
	}()
	return func() uint64 {
		close(done)
		return peak.Load()
	}
}

// resident is the memory of this process in bytes, 0 where it is not known.
func resident() uint64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var total, pages uint64
	if _, err := fmt.Sscan(string(raw), &total, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
