//go:build unix

package connector

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/controller/devserver"
)

// order is the place of a frame among all; -1 where it did not come.
func (w *world) order(is func(devserver.ConnectorFrame) bool) int {
	return slices.IndexFunc(w.server.Frames(), is)
}

// TestCancel: run_cancelled comes after the completion, and after the whole tree
// is gone, also a descendant that has left the session and ignores SIGTERM (row 11).
func TestCancel(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("tree", `[{"kind":"spawn_worker","escape":"setsid","ignore_sigterm":true},{"kind":"ignore_sigterm"},`+
		`{"kind":"event","event_type":"item.started","item_id":"i","payload":{"kind":"command"}},{"kind":"hang"}]`)
	w.start()
	run := w.create("tree")
	w.until("the item", func() bool {
		events, _, _ := w.server.Delivered(run)
		return slices.ContainsFunc(events, func(f devserver.ConnectorFrame) bool { return strings.Contains(string(f.Raw), `"tool_call"`) })
	})
	began := time.Now()
	w.frame(`{"type":"cancel_run","id":"c1","run_id":%q}`, run)
	w.frame(`{"type":"cancel_run","id":"c2","run_id":%q}`, run)
	got := w.got("run_cancelled", "c1")
	if got["status"] != "cancelled" || got["run_id"] != run {
		t.Errorf("run_cancelled is %v", got)
	}
	t.Logf("cancelled after %s", time.Since(began))
	w.got("run_cancelled", "c2")
	events, end := w.over(run)
	if end["status"] != "cancelled" || end["reason"] != "run_cancelled" || end["error"] != nil {
		t.Errorf("the completion is %v", end)
	}
	completion := w.order(func(f devserver.ConnectorFrame) bool { return strings.Contains(string(f.Raw), `"completion"`) })
	if answer := w.order(func(f devserver.ConnectorFrame) bool { return f.Type == "run_cancelled" }); answer < completion {
		t.Errorf("run_cancelled is frame %d, the completion %d", answer, completion)
	}
	pid := regexp.MustCompile(`workerPid\\*":(\d+)`).FindStringSubmatch(string(marshal(events)))
	if pid == nil {
		t.Fatal("the worker's pid is not told")
	}
	n, _ := strconv.Atoi(pid[1])
	if err := syscall.Kill(n, 0); err == nil {
		t.Errorf("the worker %d lives", n)
	}
	// A run that is over is answered with its real end.
	done := w.create("happy")
	w.over(done)
	w.frame(`{"type":"cancel_run","id":"late","run_id":%q}`, done)
	if got := w.got("run_cancelled", "late"); got["status"] != "succeeded" {
		t.Errorf("a run that had succeeded is %v", got)
	}
}

// TestCancelForced: a runner that does not obey is killed (row 11).
func TestCancelForced(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits)
	w.cfg.Times.Force = 50 * time.Millisecond
	w.cfg.Runner = append(w.cfg.Runner, "--cancel-grace-ms", "600000")
	w.start()
	run := w.create("waits")
	w.until("the run", func() bool { events, _, _ := w.server.Delivered(run); return len(events) > 8 })
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, run)
	w.got("run_cancelled", "c")
	if _, end := w.over(run); end["status"] == "succeeded" {
		t.Errorf("the completion is %v", end)
	}
}

// TestCancelDefault: with its own times a cancel is over within the 15 s of the
// seed: the runner's graces are shorter than the moment of force (row 11).
func TestCancelDefault(t *testing.T) {
	var times Times
	times.fill()
	const cancelGrace, shutdownGrace = 2 * time.Second, 5 * time.Second // of prp-runner
	if times.Force >= 15*time.Second || cancelGrace+shutdownGrace >= times.Force {
		t.Errorf("force comes after %s", times.Force)
	}
}

// TestCancelCooperative: a harness that heeds the cancel ends by itself, within
// the 15 s of the seed and long before force (row 11).
func TestCancelCooperative(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("heeds", `[{"kind":"ignore_sigterm"},{"kind":"await_command","command_type":"run.cancel"},{"kind":"exit","code":7}]`)
	w.cfg.Runner = append(w.cfg.Runner, "--cancel-grace-ms", "600000")
	w.cfg.Times.Force = 10 * time.Minute
	w.start()
	run := w.create("heeds")
	w.until("the run", func() bool { events, _, _ := w.server.Delivered(run); return len(events) > 8 })
	began := time.Now()
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, run)
	if got := w.got("run_cancelled", "c"); got["status"] != "cancelled" {
		t.Errorf("run_cancelled is %v", got)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	// It was neither terminated nor killed.
	if _, end := w.over(run); end["status"] != "cancelled" || end["exit_code"] != 7.0 || end["signal"] != nil {
		t.Errorf("the completion is %v", end)
	}
}

// TestCancelledLost: run_cancelled is told again where it was lost with the
// link, and not where the server has it (row 11).
func TestCancelledLost(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("run_cancelled", 1, devserver.Drop)}})
	w.agent("waits", waits)
	w.cfg.Times.Heartbeat = 20 * time.Millisecond
	w.start()
	run := w.create("waits")
	w.got("run_accepted", run)
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, run)
	w.got("run_cancelled", "c")
	w.toldOnce("run_cancelled", run)
}

// toldOnce checks that a frame of which the server has taken one does not come
// again on a further connection.
func (w *world) toldOnce(kind, run string) {
	w.t.Helper()
	beats := func(more int) {
		n := w.count("heartbeat", "")
		w.until("heartbeats", func() bool { return w.count("heartbeat", "") >= n+more })
	}
	beats(5) // of the last but one the answer was read, and it was sent after it
	if n := w.count(kind, run); n != 1 {
		w.t.Fatalf("%s came %d times, want 1", kind, n)
	}
	w.server.Quit(0)
	n := w.count("capabilities", "")
	w.until("a new session", func() bool { return w.count("capabilities", "") > n })
	beats(5)
	if n := w.count(kind, run); n != 1 {
		w.t.Errorf("%s came %d times after a reconnect, want 1", kind, n)
	}
}

// TestCancelQueued: a run that waits is cancelled without having begun (row 11).
func TestCancelQueued(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits, func(a *Agent) { a.MaxConcurrentRuns = 1 })
	w.start()
	w.create("waits")
	queued := w.create("waits")
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, queued)
	w.got("run_cancelled", "c")
	events, end := w.over(queued)
	if len(events) != 1 || end["status"] != "cancelled" || end["cause"] != reasonCancelled {
		t.Errorf("the events are %s, the completion %v", kinds(events), end)
	}
}

// TestCancelOffline: a cancel whose link is lost is executed, and told on the
// next connection; so is one that waits in register_ack (row 11).
func TestCancelOffline(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits)
	w.start()
	first, second := w.create("waits"), w.create("waits")
	for _, run := range []string{first, second} {
		w.until("the run", func() bool { events, _, _ := w.server.Delivered(run); return len(events) > 8 })
	}
	w.server.Misbehave(rule("connect", 0, devserver.Drop), rule("post", 0, "http-503"), rule("run_event", 0, devserver.Drop), rule("run_cancelled", 0, devserver.Drop))
	w.frame(`{"type":"cancel_run","id":"c1","run_id":%q}`, first)
	w.until("nobody", func() bool { return !w.server.Registered() })
	for w.conn.State().ActiveRuns > 1 {
		time.Sleep(time.Millisecond) // the server cannot see it
	}
	w.server.Pend(fmt.Appendf(nil, `{"type":"cancel_run","id":"c2","run_id":%q}`, second))
	w.server.Misbehave()
	for run, id := range map[string]string{first: "c1", second: "c2"} {
		if got := w.got("run_cancelled", id); got["run_id"] != run || got["status"] != "cancelled" {
			t.Errorf("%s: %v", id, got)
		}
		w.over(run)
	}
}

// TestQuota: error 4006 of the server ends the run, and the operator is told
// (row 15).
func TestQuota(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits)
	w.start()
	run := w.create("waits")
	w.got("run_accepted", run)
	w.frame(`{"type":"error","code":4006,"message":"no money","run_id":%q}`, run)
	_, end := w.over(run)
	if e, _ := end["error"].(map[string]any); end["status"] != "failed" || e["code"] != 4006.0 || !strings.Contains(fmt.Sprint(e["message"]), "no money") {
		t.Errorf("the completion is %v", end)
	}
	if !slices.ContainsFunc(w.reported(), func(s string) bool { return strings.Contains(s, "no money") }) {
		t.Errorf("the operator was told %q", w.reported())
	}
}

// TestStopAll: every run ends without a server, new work is refused, the
// heartbeat tells it, also after a restart, until it is taken back (row 19).
func TestStopAll(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits, func(a *Agent) { a.MaxConcurrentRuns = 1 })
	w.cfg.Times.Heartbeat = 20 * time.Millisecond
	w.start()
	first, queued := w.create("waits"), w.create("waits")
	w.got("run_accepted", queued)
	w.server.Misbehave(rule("connect", 0, devserver.Drop), rule("post", 0, "http-503"))
	w.server.Quit(0)
	w.until("nobody", func() bool { return !w.server.Registered() })
	if err := Stop(w.cfg.Dir, true); err != nil {
		t.Fatal(err)
	}
	for s := w.conn.State(); s.ActiveRuns+s.QueuedRuns > 0 || s.Mode != ModeStopped; s = w.conn.State() {
		if w.ctx.Err() != nil {
			t.Fatalf("the state is %+v", s)
		}
		time.Sleep(time.Millisecond)
	}
	w.server.Misbehave()
	for _, run := range []string{first, queued} {
		if _, end := w.over(run); end["status"] != "cancelled" || end["cause"] != reasonStopAll {
			t.Errorf("%s: the completion is %v", run, end)
		}
	}
	stopped := func() bool {
		frames := w.server.Frames()
		return frames[len(frames)-1].Type == "heartbeat" && strings.Contains(string(frames[len(frames)-1].Raw), `"mode":"stopped"`)
	}
	w.until("a heartbeat that tells it", stopped)
	w.end()
	w.start()
	if s := w.conn.State(); s.Mode != ModeStopped {
		t.Errorf("it is %s at its start", s.Mode)
	}
	if !slices.Contains(w.reported(), "stopped before its start: new work is refused until 'prp connect --resume'") {
		t.Errorf("it says %q at its start", w.reported())
	}
	w.until("a heartbeat that tells it", stopped)
	w.frame(`{"type":"create_run","id":"n","run_id":"new","agent_id":"happy","goal":"g"}`)
	if got := w.got("error", "n"); got["code"] != 4005.0 || !strings.Contains(fmt.Sprint(got["message"]), "it is stopped until 'prp connect --resume'") {
		t.Errorf("new work is answered with %v", got)
	}
	if err := Stop(w.cfg.Dir, false); err != nil {
		t.Fatal(err)
	}
	w.until("a heartbeat that serves", func() bool {
		frames := w.server.Frames()
		return strings.Contains(string(frames[len(frames)-1].Raw), `"mode":"serving"`)
	})
	w.over(w.create("happy"))
}

// TestStopAllBetween: row 19. What waits on disk while no connector runs is ended
// by a stop as well: the next start tells so, and does not run it.
func TestStopAllBetween(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits, func(a *Agent) { a.MaxConcurrentRuns = 1 })
	w.start()
	w.got("run_accepted", w.create("waits"))
	queued := w.create("waits")
	w.got("run_accepted", queued)
	w.end()
	if err := Stop(w.cfg.Dir, true); err != nil {
		t.Fatal(err)
	}
	w.start()
	if _, end := w.over(queued); end["status"] != "cancelled" || end["cause"] != reasonStopAll {
		t.Errorf("the completion is %v", end)
	}
	if s := w.conn.State(); s.QueuedRuns != 0 {
		t.Errorf("%d runs wait", s.QueuedRuns)
	}
}

// TestDrain: new work is refused, what runs ends, its events are delivered, and
// the connector ends.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("slow", `[{"kind":"await_interrupt"}]`)
	w.start()
	run := w.create("slow")
	w.until("the run", func() bool { events, _, _ := w.server.Delivered(run); return len(events) > 8 })
	w.conn.Drain()
	for w.conn.State().Mode != ModeDraining {
		time.Sleep(time.Millisecond)
	}
	w.frame(`{"type":"create_run","id":"n","run_id":"new","agent_id":"happy","goal":"g"}`)
	if got := w.got("error", "n"); got["code"] != 4005.0 || !strings.Contains(fmt.Sprint(got["message"]), "draining") {
		t.Errorf("new work is answered with %v", got)
	}
	if w.conn.State().ActiveRuns != 1 {
		t.Error("the run was ended")
	}
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, run)
	if err := w.returned(); err != nil {
		t.Errorf("the connector ended with %v", err)
	}
	// All of it had been delivered before.
	if _, over, faults := w.server.Delivered(run); !over || faults != nil {
		t.Errorf("over %v, faults %q", over, faults)
	}
	w.got("run_cancelled", "c")
}
