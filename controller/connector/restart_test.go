//go:build unix

package connector

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/controller/devserver"
)

// child starts the connector in a process of its own.
func (w *world) child() *exec.Cmd {
	w.t.Helper()
	raw, err := json.Marshal(w.place)
	if err != nil {
		w.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), role+"="+string(raw))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

// kill ends it without a chance to clean up.
func (w *world) kill(cmd *exec.Cmd) {
	w.t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	w.until("nobody", func() bool { return !w.server.Registered() })
}

// dropTerminal waits until the runner of the one run that was going has written
// its end, and removes it.
func (w *world) dropTerminal() {
	w.t.Helper()
	for {
		files, err := filepath.Glob(filepath.Join(w.place.Dir, runsDir, "*", terminalFile))
		if err != nil || len(files) > 1 || w.ctx.Err() != nil {
			w.t.Fatalf("the terminals are %q, %v", files, err)
		}
		if len(files) == 1 {
			if err := os.Remove(files[0]); err != nil {
				w.t.Fatal(err)
			}
			return
		}
		time.Sleep(5 * time.Millisecond) // nobody tells
	}
}

// TestKilled: a connector that was killed: a run that was going is told as it
// truly ended, one that waited is executed, one that was over is not told again
// (rows 3 and 7, remote.md rules 1 and 4).
func TestKilled(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", `[{"kind":"event","event_type":"item.started","item_id":"i","payload":{"kind":"command"}},{"kind":"await_interrupt"}]`,
		func(a *Agent) { a.MaxConcurrentRuns = 1 })
	w.agent("later", "happy-path", func(a *Agent) { a.MaxConcurrentRuns = 1 })
	child := w.child()
	done := w.create("happy")
	w.over(done)
	going := w.create("waits")
	w.until("the run's item", func() bool {
		events, _, _ := w.server.Delivered(going)
		return len(events) > 9
	})
	queued := w.create("waits")
	if got := w.got("run_accepted", queued); got["status"] != "queued" {
		t.Fatalf("the second run is %v", got)
	}
	w.kill(child)
	w.start()
	events, end := w.over(going)
	// The runner saw the end of its stdin and ended the run: that is the truth.
	if end["status"] != "cancelled" || end["reason"] != "controller_closed" {
		t.Errorf("the completion is %v", end)
	}
	if strings.Count(kinds(events), "tool_call") != 1 {
		t.Errorf("the events are %s", kinds(events))
	}
	w.frame(`{"type":"create_run","id":"again","run_id":%q,"agent_id":"happy","goal":"the goal"}`, done)
	if got := w.got("run_accepted", "again"); got["status"] != "succeeded" {
		t.Errorf("the run that was over is %v", got)
	}
	w.until("the run that waited", func() bool { events, _, _ := w.server.Delivered(queued); return len(events) > 9 })
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, queued)
	w.over(queued)
}

// TestKilledInRemoval: what is left of the folder of a run that was over and
// delivered is no run that goes on.
func TestKilledInRemoval(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("run_event", 0, devserver.Mute)}})
	w.start()
	run := w.create("happy")
	w.over(run)
	w.until("the end of it here", func() bool { return w.conn.State().ActiveRuns == 0 })
	w.end()
	spools, err := filepath.Glob(filepath.Join(w.place.Dir, runsDir, "*", eventsFile))
	if err != nil || len(spools) != 1 {
		t.Fatalf("the spools are %q, %v", spools, err)
	}
	if err := os.Remove(spools[0]); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.frame(`{"type":"create_run","id":"again","run_id":%q,"agent_id":"happy","goal":"the goal"}`, run)
	if got := w.got("run_accepted", "again"); got["status"] != "succeeded" {
		t.Errorf("the run that was over is %v", got)
	}
	if _, err := os.Stat(filepath.Dir(spools[0])); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}

// TestFolderGone: a run whose folder somebody has removed is unknown, and is not
// run again (remote.md rule 4).
func TestFolderGone(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits, func(a *Agent) { a.MaxConcurrentRuns = 1 })
	child := w.child()
	w.create("waits")
	queued := w.create("waits")
	w.got("run_accepted", queued)
	w.kill(child)
	w.until("no folder", func() bool { // the runner, which ends now, may still write into one
		return os.RemoveAll(filepath.Join(w.place.Dir, runsDir)) == nil
	})
	w.start()
	w.frame(`{"type":"create_run","id":"again","run_id":%q,"agent_id":"waits","goal":"the goal"}`, queued)
	if got := w.got("run_accepted", "again"); got["status"] != "unknown" {
		t.Errorf("the run is %v", got)
	}
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, queued)
	if got := w.got("run_cancelled", "c"); got["status"] != "unknown" {
		t.Errorf("the answer is %v", got)
	}
}

// TestUnknown: a run whose runner has told no end is told as unknown, and is not run
// again (remote.md rule 4).
func TestUnknown(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits)
	child := w.child()
	run := w.create("waits")
	w.until("the run", func() bool { events, _, _ := w.server.Delivered(run); return len(events) > 8 })
	w.kill(child)
	w.dropTerminal()
	w.cfg.Times.Ending = 100 * time.Millisecond
	w.start()
	events, end := w.over(run)
	if e, _ := end["error"].(map[string]any); end["status"] != "unknown" || e["reason"] != reasonUnknown {
		t.Errorf("the completion is %v", end)
	}
	if n := strings.Count(kinds(events), "completion"); n != 1 {
		t.Errorf("there are %d completions", n)
	}
	w.frame(`{"type":"create_run","id":"again","run_id":%q,"agent_id":"waits","goal":"the goal"}`, run)
	if got := w.got("run_accepted", "again"); got["status"] != "unknown" {
		t.Errorf("the run is %v", got)
	}
}

// TestCancelWhileFollowed: a cancel of a run whose connector has died is answered
// with its true end (rows 7 and 11).
func TestCancelWhileFollowed(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits)
	child := w.child()
	run := w.create("waits")
	w.until("the run", func() bool { events, _, _ := w.server.Delivered(run); return len(events) > 8 })
	w.kill(child)
	w.dropTerminal()
	w.cfg.Times.Ending = time.Second
	w.server.Pend(fmt.Appendf(nil, `{"type":"cancel_run","id":"c","run_id":%q}`, run))
	w.start()
	if got := w.got("run_cancelled", "c"); got["status"] != "unknown" {
		t.Errorf("the answer is %v", got)
	}
	w.over(run)
}

// TestEndsWithConnector: a connector that is ended ends its runs; what was not
// delivered is delivered by the next one.
func TestEndsWithConnector(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits)
	w.cfg.MaxConcurrentRuns = 1
	w.start()
	run, queued := w.create("waits"), w.create("happy")
	w.until("the run", func() bool { events, _, _ := w.server.Delivered(run); return len(events) > 8 })
	if got := w.got("run_accepted", queued); got["status"] != "queued" {
		t.Fatalf("the second run is %v", got)
	}
	w.end()
	w.start()
	if _, end := w.over(run); end["status"] != "cancelled" {
		t.Errorf("the completion is %v", end)
	}
	// The one that waited was not begun by a connector that ends.
	if _, end := w.over(queued); end["status"] != "succeeded" {
		t.Errorf("the completion of the run that waited is %v", end)
	}
	// What the server has is not kept.
	for {
		left, err := os.ReadDir(filepath.Join(w.place.Dir, runsDir))
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		if w.ctx.Err() != nil {
			t.Fatalf("the folder of a run stays: %v", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestServerBegunAnew: a server that has forgotten everything gets what was not
// acknowledged, from the number on that the connector tells (row 3).
func TestServerBegunAnew(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("run_event", 5, devserver.Drop), rule("connect", 2, devserver.Drop)}})
	w.start()
	run := w.create("happy")
	w.until("the first events", func() bool { return w.count("run_event", run) >= 4 })
	w.over(run)
	for _, f := range w.server.Frames() {
		if f.Type == "register" && f.Session == 2 {
			if resume := object(t, f.Raw)["resume"].(map[string]any); resume[run] == nil {
				t.Errorf("register does not tell the cursor: %s", f.Raw)
			}
		}
	}
}

// TestAgentGone: a run that waited for an agent that the configuration has no
// more is told as failed.
func TestAgentGone(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("gone", waits, func(a *Agent) { a.MaxConcurrentRuns = 1 })
	w.start()
	first, queued := w.create("gone"), w.create("gone")
	w.got("run_accepted", queued)
	w.until("the run", func() bool { events, _, _ := w.server.Delivered(first); return len(events) > 8 })
	w.end()
	w.cfg.Agents = w.cfg.Agents[:1]
	w.start()
	_, end := w.over(queued)
	if e, _ := end["error"].(map[string]any); end["status"] != "failed" || e["code"] != 4003.0 {
		t.Errorf("the completion is %v", end)
	}
	w.over(first)
}
