//go:build unix

package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"prp/controller/awaittest"
	"prp/controller/bridge"
)

// taking is a pipe that takes frames and lets the test see each batch.
type taking func(frames [][]byte) error

// Read implements pipe: nothing comes.
func (taking) Read(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Write implements pipe.
func (f taking) Write(_ context.Context, frames [][]byte) error { return f(frames) }

// filled is a connector that has so many events for each of so many runs.
func filled(t *testing.T, runs, each int) *Connector {
	t.Helper()
	c, err := New(Config{
		ID: "c", Dir: t.TempDir(), Runner: []string{"runner"}, Link: bridge.LinkConfig{URL: "ws://127.0.0.1:1/"},
		Agents: []Agent{{AgentID: "a", Runtime: "r", Harness: "h"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	for run := range runs {
		id := fmt.Sprint("run_", run)
		if err := os.MkdirAll(c.runDir(id), 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := c.openSpool(id)
		if err != nil {
			t.Fatal(err)
		}
		for n := range each {
			if _, err := s.put(warning(stamp(), "c", "m", nil), fmt.Sprint(n+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// TestHeartbeatPassesEvents: however many events wait, a heartbeat goes before
// them, behind those that are being written (row 5).
func TestHeartbeatPassesEvents(t *testing.T) {
	t.Parallel()
	const runs, each = 8, 200
	c := filled(t, runs, each)
	errSeen := errors.New("the heartbeat was sent")
	for transport, most := range map[string]int{transportSocket: burst, transportPoll: burstPoll} {
		var s *session
		events, behind, due := 0, 0, false
		s = newSession(c, taking(func(frames [][]byte) error {
			for i, raw := range frames {
				var f struct {
					Type string `json:"type"`
				}
				if err := json.Unmarshal(raw, &f); err != nil {
					return err
				}
				switch {
				case f.Type == typeHeartbeat:
					return errSeen
				case f.Type == typeRunEvent:
					events++
				}
				if due {
					behind++
				}
				if f.Type == typeRunEvent && !due { // it becomes due in the middle of a batch
					due, behind = true, len(frames)-i-1
					s.hurry(marshal(heartbeat{Type: typeHeartbeat}))
					return nil
				}
			}
			return nil
		}), transport)
		if err := s.write(t.Context()); !errors.Is(err, errSeen) {
			t.Fatalf("%s: the writer ended with %v", transport, err)
		}
		if behind > most || events >= runs*each {
			t.Errorf("%s: %d frames were before the heartbeat, want at most %d", transport, behind, most)
		}
	}
}

// TestWindow: what is on its way is bounded, and more so where the server is slow
// to answer heartbeats, so that they come to their answer (row 5).
func TestWindow(t *testing.T) {
	t.Parallel()
	c := filled(t, 2, 300)
	s := newSession(c, nil, transportSocket)
	most := c.cfg.Times.HeartbeatAnswer
	for _, step := range []struct {
		took time.Duration
		want int64
	}{
		{0, mostWindow},
		{most / 10, mostWindow},
		{most / 2, mostWindow / 2},
		{most / 10, mostWindow / 2},
		{most, mostWindow / 4},
		{time.Millisecond, mostWindow / 2},
		{most, mostWindow / 4},
		{most, mostWindow / 8},
		{most, mostWindow / 16},
		{most, leastWindow},
		{most, leastWindow},
	} {
		if s.adapt(step.took); s.window.Load() != step.want {
			t.Fatalf("after an answer in %s the window is %d, want %d", step.took, s.window.Load(), step.want)
		}
	}
	s.paced = time.Now().Add(time.Hour) // nothing beyond the window
	sent := 0
	for {
		b, err := s.collect()
		if err != nil {
			t.Fatal(err)
		}
		if sent += len(b.frames); b.held {
			break
		}
		if len(b.frames) == 0 || len(b.frames) > burst {
			t.Fatalf("a batch has %d frames", len(b.frames))
		}
	}
	if sent != leastWindow {
		t.Errorf("%d events are on their way, want %d", sent, leastWindow)
	}
	for _, sp := range c.spooled() { // each had its turn
		if n := s.cursor(sp).sent; n < leastWindow/4 {
			t.Errorf("%s: %d events of %d were sent", sp.runID, n, leastWindow)
		}
	}
	s.paced = time.Time{}
	if b, err := s.collect(); err != nil || len(b.frames) == 0 || b.held {
		t.Errorf("a server that acknowledges rarely gets %d frames, %v", len(b.frames), err)
	}
}

// giving is a pipe that brings frames.
type giving struct {
	taking
	frames chan []byte
}

// Read implements pipe.
func (g giving) Read(ctx context.Context) ([]byte, error) {
	select {
	case frame := <-g.frames:
		return frame, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestAnswersPassRequests: while the loop is busy with requests, the answers to
// heartbeats and the acknowledgements behind them are seen, and then the requests
// come in their order (rows 5 and 9).
func TestAnswersPassRequests(t *testing.T) {
	t.Parallel()
	const requests = 50
	c := filled(t, 1, 3)
	g := giving{frames: make(chan []byte, requests+2)}
	for n := range requests {
		g.frames <- fmt.Appendf(nil, `{"type":"cancel_run","id":"c","run_id":"r_%d"}`, n)
	}
	g.frames <- []byte(`{"type":"event_ack","run_id":"run_0","seq":2}`)
	g.frames <- []byte(`{"type":"heartbeat_ack"}`)
	s := newSession(c, g, transportSocket)
	ctx, stop := context.WithTimeout(t.Context(), hang)
	defer stop()
	go s.read(ctx)
	go s.feed(ctx)
	select {
	case <-s.acked:
	case <-ctx.Done():
		t.Fatal("the answer to the heartbeat waits for the loop")
	}
	if n := c.spooled()[0].out.Acked(); n != 2 {
		t.Errorf("%d events are acknowledged, want 2", n)
	}
	for n := range requests { // now the loop has time
		select {
		case in := <-c.frames:
			if want := fmt.Sprint("r_", n); in.runID != want {
				t.Fatalf("the request is for %q, want %q", in.runID, want)
			}
		case <-ctx.Done():
			t.Fatal("a request was lost")
		}
	}
}

// TestClamped: what the server sets is taken within bounds, and its absence or
// nonsense is the connector's own value (row 4).
func TestClamped(t *testing.T) {
	t.Parallel()
	c := filled(t, 1, 0)
	go func() { // the loop
		for {
			select {
			case call := <-c.calls:
				call()
			case <-t.Context().Done():
				return
			}
		}
	}()
	s := newSession(c, nil, transportSocket)
	for _, k := range []struct {
		given serverConfig
		beat  time.Duration
		frame int
		room  int
	}{
		{serverConfig{}, 30 * time.Second, maxFrame, defaultRuns},
		{serverConfig{HeartbeatIntervalS: 7, MaxFrameBytes: 100 << 10, MaxConcurrentRuns: 3}, 7 * time.Second, 100 << 10, 3},
		{serverConfig{HeartbeatIntervalS: 0.001, MaxFrameBytes: 1, MaxConcurrentRuns: 1}, 5 * time.Second, minFrame, 1},
		{serverConfig{HeartbeatIntervalS: 1e300, MaxFrameBytes: 1 << 60, MaxConcurrentRuns: 1 << 40}, maxBeat, maxFrame, defaultRuns},
		{serverConfig{HeartbeatIntervalS: -1, MaxFrameBytes: -1, MaxConcurrentRuns: -1}, 30 * time.Second, maxFrame, defaultRuns},
	} {
		s.configure(&registerAck{Config: k.given})
		room := make(chan int, 1)
		c.call(func() { room <- c.room })
		if got := awaittest.Came(t, "the loop", room); c.beat != k.beat || c.frame != k.frame || got != k.room {
			t.Errorf("%+v: a heartbeat each %s, frames of %d bytes, %d runs, want %s, %d, %d", k.given, c.beat, c.frame, got, k.beat, k.frame, k.room)
		}
	}
}

// TestEventBatch: event_batch_ms, within bounds, is how long an event waits for
// others before it is sent; a heartbeat does not wait (row 4).
func TestEventBatch(t *testing.T) {
	t.Parallel()
	c := filled(t, 1, 0)
	ctx, stop := context.WithTimeout(t.Context(), hang)
	defer stop()
	go func() { // the loop
		for {
			select {
			case call := <-c.calls:
				call()
			case <-ctx.Done():
				return
			}
		}
	}()
	s := newSession(c, nil, transportSocket)
	for given, want := range map[float64]time.Duration{0: 0, -1: 0, 40: 40 * time.Millisecond, 1e12: maxBatchWait} {
		ack := &registerAck{}
		ack.Config.EventBatchMS = given
		if s.configure(ack); c.gather != want {
			t.Errorf("event_batch_ms %g is %s, want %s", given, c.gather, want)
		}
	}
	c.gather = 40 * time.Millisecond
	began := time.Now()
	if err := s.gather(ctx); err != nil || time.Since(began) < 40*time.Millisecond {
		t.Errorf("an event is sent after %s, %v", time.Since(began), err)
	}
	c.gather = 24 * time.Hour
	s.hurry(marshal(heartbeat{Type: typeHeartbeat}))
	if err := s.gather(ctx); err != nil {
		t.Errorf("a heartbeat waits with the events: %v", err)
	}
}
