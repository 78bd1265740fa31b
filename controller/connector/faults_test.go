//go:build unix

package connector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"prp/controller/awaittest"
	"prp/controller/devserver"
)

// rule is a rule of the server.
func rule(on string, nth int, do string) devserver.Rule {
	return devserver.Rule{On: on, Nth: nth, Do: do}
}

// many is a script with many events.
func many(n int) string {
	return fmt.Sprintf(`[{"kind":"repeat","times":%d,"steps":[{"kind":"event","event_type":"item.delta","item_id":"i",`+
		`"payload":{"kind":"assistant_message","delta":"some text "}}]},%s]`, n, result)
}

// insist asks for a run again on each connection until it is accepted, as a
// server does whose request may have been lost with the connection.
func (w *world) insist(agent string) string {
	w.t.Helper()
	w.next++
	run := fmt.Sprintf("run_%d", w.next)
	create := fmt.Appendf(nil, `{"type":"create_run","id":"create_%d","run_id":%q,"agent_id":%q,"goal":"the goal"}`, w.next, run, agent)
	for w.count("run_accepted", run) == 0 {
		// Counted before: what is registered after it asks for the run once more.
		sessions := w.count("register", "")
		w.until("a registered connector", w.server.Registered)
		_ = w.server.Send(create) // it may be lost
		w.until("an answer or a new connection", func() bool {
			return w.count("run_accepted", run) > 0 || w.count("register", "") > sessions
		})
	}
	return run
}

// TestDrops: the link is lost at every kind of moment; each event arrives once,
// in order (rows 3, 6 and 9).
func TestDrops(t *testing.T) {
	t.Parallel()
	rules := []devserver.Rule{
		rule("connect", 2, devserver.Drop), rule("register", 2, devserver.Drop), rule("register", 3, devserver.DropAfter),
		rule("capabilities", 2, devserver.Drop), rule("run_accepted", 1, devserver.Drop),
	}
	for n := range 12 {
		do := []string{devserver.Drop, devserver.DropAfter, devserver.Mute}[n%3]
		rules = append(rules, rule("run_event", 3+9*n, do))
	}
	w := settle(t, devserver.ConnectorConfig{Rules: rules})
	w.agent("many", many(40))
	w.start()
	for _, run := range []string{w.insist("many"), w.insist("many"), w.insist("happy")} {
		if _, end := w.over(run); end["status"] != "succeeded" {
			t.Errorf("%s: the completion is %v", run, end)
		}
	}
	if s := w.conn.State(); s.Sessions < 8 {
		t.Errorf("there were %d sessions only: the rules did nothing", s.Sessions)
	}
}

// TestResendBeforeWork: after a reconnect the events of the past come before the
// answer to new work (row 6).
func TestResendBeforeWork(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("run_event", 0, devserver.Drop)}})
	w.start()
	run := w.create("happy")
	for w.conn.State().ActiveRuns > 0 || w.conn.State().WaitingRuns == 0 {
		time.Sleep(time.Millisecond) // the server cannot see it
	}
	w.server.Misbehave(rule("connect", 0, devserver.Drop), rule("post", 0, "http-503"))
	w.server.Quit(0)
	w.until("nobody", func() bool { return !w.server.Registered() })
	w.server.Pend([]byte(`{"type":"create_run","id":"pended","run_id":"second","agent_id":"happy","goal":"g"}`))
	w.server.Misbehave()
	w.got("run_accepted", "pended")
	frames := w.server.Frames()
	last := slices.IndexFunc(frames, func(f devserver.ConnectorFrame) bool { return f.ReplyTo == "pended" })
	before := slices.IndexFunc(frames, func(f devserver.ConnectorFrame) bool {
		return f.RunID == run && strings.Contains(string(f.Raw), `"completion"`)
	})
	if before < 0 || before > last {
		t.Errorf("new work came before the events of the past: %s", w.seen())
	}
	w.over(run)
	w.over("second")
}

// TestNoAck: events that are not acknowledged in time are sent again on a new
// connection (row 9).
func TestNoAck(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("run_event", 0, devserver.Mute)}})
	w.cfg.Times.EventAck = 200 * time.Millisecond
	w.start()
	run := w.create("happy")
	w.until("a second session", func() bool { return w.count("register", "") >= 2 })
	w.server.Misbehave()
	w.over(run)
}

// TestNoHeartbeatAck: two heartbeats without an answer, and the connection is
// made anew (row 5).
func TestNoHeartbeatAck(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("heartbeat", 0, devserver.Mute)}})
	w.cfg.Times.Heartbeat, w.cfg.Times.HeartbeatAnswer = 20*time.Millisecond, 20*time.Millisecond
	w.start()
	w.until("a second session", func() bool { return w.count("register", "") >= 2 })
	frames := w.server.Frames()
	n := 0
	for _, f := range frames {
		if f.Session == 1 && f.Type == "heartbeat" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d heartbeats were sent in the first session, want 2", n)
	}
}

// TestNoRegisterAck: a server that does not answer register is tried again
// (row 3).
func TestNoRegisterAck(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("register", 1, devserver.Mute)}})
	w.cfg.Times.Register = 50 * time.Millisecond
	w.start()
	w.over(w.create("happy"))
	if !slices.ContainsFunc(w.reported(), func(s string) bool { return strings.Contains(s, errNoRegister.Error()) }) {
		t.Errorf("the operator was told %q", w.reported())
	}
}

// TestRefused: a server that does not want the connector is not tried again; the
// operator is told (row 16).
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, do := range []string{"http-401", "http-403", "close-1008"} {
		w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("connect", 0, do)}})
		w.start()
		if err := w.returned(); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: the connector ended with %v", do, err)
		}
		if len(w.reported()) == 0 {
			t.Errorf("%s: nobody was told", do)
		}
	}
}

// TestRefusedRunsOn: a refusal stops no run: it goes to its end, and its events
// are there for the next connector (remote.md rule 1).
func TestRefusedRunsOn(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("slow", `[{"kind":"delay","milliseconds":700},`+result+`]`, func(a *Agent) {
		a.Harness = strings.Replace(a.Harness, "--delay-ms 0 ", "", 1)
	})
	w.start()
	run := w.create("slow")
	w.got("run_accepted", run)
	w.server.Quit(1008)
	if err := w.returned(); !errors.Is(err, ErrRefused) {
		t.Errorf("the connector ended with %v", err)
	}
	w.start()
	if _, end := w.over(run); end["status"] != "succeeded" {
		t.Errorf("the completion is %v", end)
	}
}

// TestCloseCodes: after 1000 the connection is made anew; after 1009 batches are
// halved as well (row 16).
func TestCloseCodes(t *testing.T) {
	t.Parallel()
	w := ready(t)
	run := w.create("happy")
	w.over(run)
	size := func() int {
		w.conn.mu.Lock()
		defer w.conn.mu.Unlock()
		return w.conn.batch
	}
	before := size()
	for i, status := range []int{1000, 1009} {
		w.until("a session", w.server.Registered)
		w.server.Quit(status)
		w.until("a new session", func() bool { return w.count("capabilities", "") >= i+2 })
		if got, want := size(), before>>i; got != want {
			t.Errorf("after %d a batch has %d bytes, want %d", status, got, want)
		}
	}
	w.over(w.create("happy"))
}

// TestFrameLimit: no frame is above the limit that the server sets (row 4).
func TestFrameLimit(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Settings: map[string]any{"max_frame_bytes": 1000}})
	big := strings.Repeat("x", 60_000)
	w.agent("big", `[{"kind":"event","event_type":"item.delta","item_id":"i","payload":{"kind":"message","delta":"`+big+`"}},`+result+`]`)
	w.start()
	run := w.create("big")
	w.over(run)
	cut := false
	for _, f := range w.server.Frames() {
		if len(f.Raw) > minFrame { // the least that is taken
			t.Errorf("a frame has %d bytes", len(f.Raw))
		}
		cut = cut || strings.Contains(string(f.Raw), "truncated_from_bytes")
	}
	if !cut {
		t.Error("nothing was cut")
	}
}

// TestLargeAsk: a request that is above the limit of the server is given up, a
// question by that denied; it does not end one session after the other (rows 4,
// 12 and 16).
func TestLargeAsk(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Settings: map[string]any{"max_frame_bytes": minFrame}})
	big := strings.Repeat("x", minFrame)
	w.agent("asks", `[{"kind":"event","event_type":"interaction.handoff","payload":{"to_agent_id":"happy","bundle":{"objective":"`+big+`"}}},`+
		strings.Replace(asking(1), "rm -rf /tmp/build", big, 1)[1:])
	w.start()
	events, end := w.over(w.create("asks"))
	if end["status"] != "succeeded" || !warned(events, "handoff_failed") || !warned(events, "approval_denied") {
		t.Errorf("the completion is %v, the events are %s", end, kinds(events))
	}
	for _, f := range w.server.Frames() {
		if len(f.Raw) > minFrame {
			t.Errorf("%s has %d bytes", f.Type, len(f.Raw))
		}
	}
	if n := w.count("register", ""); n != 1 {
		t.Errorf("there were %d sessions, want 1", n)
	}
}

// TestFallback: after three failed upgrades everything goes by HTTPS, with the
// same frames; a WebSocket is taken again as soon as there is one (row 17).
func TestFallback(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("connect", 0, "http-503"), rule("post", 3, "http-502"), rule("poll", 2, "http-502")}})
	w.agent("many", many(200))
	w.agent("waits", waits)
	w.cfg.Times.Socket = 300 * time.Millisecond
	w.start()
	w.over(w.create("many"))
	stays := w.create("waits")
	w.got("run_accepted", stays)
	for _, f := range w.server.Frames() {
		if f.Transport != "https" {
			t.Fatalf("a frame came by %s: %s", f.Transport, f.Raw)
		}
	}
	if s := w.conn.State(); s.Transport != transportPoll || !s.Connected {
		t.Errorf("the state is %+v", s)
	}
	w.server.Misbehave()
	w.until("a session by WebSocket", func() bool { return w.server.Transport() == "websocket" })
	w.over(w.create("happy"))
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, stays)
	w.over(stays)
	// Only one transport delivers at a time: its sessions follow one another.
	session := 0
	for _, f := range w.server.Frames() {
		if f.Session < session {
			t.Errorf("a frame of session %d came after one of %d", f.Session, session)
		}
		session = max(session, f.Session)
	}
}

// TestPostAnswerLost: a POST whose answer is lost is sent again in the same
// session and with the same cursor, so that none of its frames comes twice; a
// poll whose answer is lost brings its frames once as well (row 17).
func TestPostAnswerLost(t *testing.T) {
	t.Parallel()
	rules := []devserver.Rule{rule("connect", 0, "http-503")}
	for _, nth := range []int{1, 4, 7} {
		rules = append(rules, rule("post", nth, devserver.DropAfter), rule("poll", nth, devserver.DropAfter))
	}
	w := settle(t, devserver.ConnectorConfig{Rules: rules})
	w.agent("many", many(100))
	w.start()
	for range 2 {
		run := w.create("many")
		events, _ := w.over(run)
		// Frames has those that came twice as well.
		if n := w.count("run_event", run); n != len(events) {
			t.Errorf("%s: %d events came in %d frames", run, len(events), n)
		}
		if n := w.count("run_accepted", run); n != 1 {
			t.Errorf("%s: it was accepted %d times", run, n)
		}
	}
	if n := w.count("register", ""); n != 1 {
		t.Errorf("there were %d sessions, want 1: %q", n, w.reported())
	}
	if n := w.server.Called("post"); n < 7 {
		t.Errorf("there were %d posts only: the rules did nothing", n)
	}
}

// TestSwitches: a run goes on while the transport changes again and again; each
// event arrives once, in order (rows 9 and 17).
func TestSwitches(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("many", strings.Replace(many(150), `"steps":[`, `"steps":[{"kind":"delay","milliseconds":8},`, 1), func(a *Agent) {
		a.Harness = strings.Replace(a.Harness, "--delay-ms 0 ", "", 1)
	})
	w.cfg.Times.Socket = 50 * time.Millisecond
	w.start()
	run := w.create("many")
	w.got("run_accepted", run)
	for i := range 4 {
		want := []string{"https", "websocket"}[i%2]
		sessions := w.count("register", "")
		if want == "https" {
			w.server.Misbehave(rule("connect", 0, "http-503"))
			w.server.Quit(0)
		} else {
			w.server.Misbehave()
		}
		w.until("a session by "+want, func() bool {
			return w.count("register", "") > sessions && w.server.Transport() == want
		})
	}
	events, end := w.over(run)
	if end["status"] != "succeeded" || len(events) < 150 {
		t.Errorf("%d events, the completion is %v", len(events), end)
	}
}

// TestBatchTooLarge: a post that is too large is halved and sent again (row 16).
func TestBatchTooLarge(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("connect", 0, "http-503"), rule("post", 3, fmt.Sprint("http-", http.StatusRequestEntityTooLarge))}})
	w.agent("many", many(50))
	w.start()
	w.over(w.create("many"))
	w.conn.mu.Lock()
	defer w.conn.mu.Unlock()
	if w.conn.batch != maxFrame/2 {
		t.Errorf("a batch has %d bytes, want %d", w.conn.batch, maxFrame/2)
	}
}

// TestNewestWins: of two connectors with one id the newer one has the session
// (row 3).
func TestNewestWins(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.cfg.Link.Backoff.Steps = []time.Duration{24 * time.Hour} // it stays away
	w.start()
	// What it says after its registration would be lost with it.
	w.until("the first", func() bool { return w.count("capabilities", "") == 1 })
	cfg := w.cfg
	cfg.Dir, cfg.Agents = t.TempDir(), slices.Clone(w.cfg.Agents)
	cfg.Agents[0].AgentID = "newer"
	second, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- second.Run(ctx) }()
	w.until("the second", func() bool { return w.count("capabilities", "") >= 2 })
	if _, end := w.over(w.create("newer")); end["status"] != "succeeded" {
		t.Errorf("the completion is %v", end)
	}
	stop()
	awaittest.Came(t, "the end of the second", ended)
}
