//go:build unix

package connector

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prp/controller"
	"prp/controller/bridge"
	"prp/controller/devserver"
	"prp/protocol"
)

// result is the step of a script that reports work as done.
const result = `{"kind":"result","payload":{"schema":"paperclip.run_result.v1","reportedWorkDisposition":"done","summary":"done",` +
	`"completionClaim":{"contractRevision":"1","objectiveSatisfied":true,"criteria":[],"remainingWork":[]},` +
	`"evidence":[],"verification":[],"attentionRequests":[],"artifacts":[]}}`

// waits is a script that waits for an interrupt that does not come.
const waits = `[{"kind":"await_interrupt"}]`

// TestRegister: the first frame, its members, and the order of what follows it
// (rows 3 and 6).
func TestRegister(t *testing.T) {
	t.Parallel()
	w := ready(t)
	run := w.create("happy")
	w.over(run)
	frames := w.server.Frames()
	first := object(t, frames[0].Raw)
	if frames[0].Type != "register" || first["connector_id"] != connectorID || first["version"] != "0.1.0" || first["host"] != "TEST-1" ||
		fmt.Sprint(first["adapters"]) != "[fake]" || first["protocol_version"] != 1.0 || first["instance_id"] == "" || first["resume"] == nil || first["id"] == "" {
		t.Errorf("register is %s", frames[0].Raw)
	}
	if frames[1].Type != "capabilities" {
		t.Errorf("after register comes %s", frames[1].Raw)
	}
	agents := object(t, frames[1].Raw)["agents"].([]any)
	agent := agents[0].(map[string]any)
	if len(agents) != 1 || agent["agent_id"] != "happy" || agent["runtime"] != "fake" || agent["model"] != "none" ||
		fmt.Sprint(agent["tools"]) != "[terminal file]" || fmt.Sprint(agent["supports"]) != "[streaming cancellation]" {
		t.Errorf("the capabilities are %s", frames[1].Raw)
	}
	if agent["harness"] != nil || agent["env_allow"] != nil {
		t.Errorf("the server is told what is not its business: %s", frames[1].Raw)
	}
	w.mu.Lock()
	extensions := w.extensions
	w.mu.Unlock()
	if !strings.Contains(extensions, "permessage-deflate") || !strings.Contains(extensions, "client_no_context_takeover") {
		t.Errorf("the connector offers the extensions %q", extensions)
	}
	accepted := w.got("run_accepted", run)
	if accepted["reply_to"] != "create_1" || accepted["status"] != "running" {
		t.Errorf("run_accepted is %v", accepted)
	}
}

// TestRun: each event of the runner is one run_event, in order (rows 9 and 10).
func TestRun(t *testing.T) {
	t.Parallel()
	w := ready(t)
	events, end := w.over(w.create("happy"))
	if len(events) != 19 || !strings.Contains(kinds(events), "tool_call progress tool_result tool_call tool_result") {
		t.Errorf("the events are %s", kinds(events))
	}
	if end["status"] != "succeeded" || end["exit_code"] != 0.0 || !strings.HasPrefix(end["summary"].(string), "The greeting") {
		t.Errorf("the completion is %v", end)
	}
}

// TestRepeated: the same run_id again is the same answer and no second process;
// with other content it is an error (row 7).
func TestRepeated(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits)
	w.start()
	run := w.create("waits")
	w.got("run_accepted", "create_1")
	again := `{"type":"create_run","id":%q,"run_id":"run_1","agent_id":"waits","goal":%q}`
	w.frame(again, "again", "the goal")
	if got := w.got("run_accepted", "again"); got["status"] != "running" {
		t.Errorf("the second answer is %v", got)
	}
	w.frame(again, "other", "another goal")
	if got := w.got("error", "other"); got["code"] != 4001.0 || got["retryable"] != false {
		t.Errorf("a run_id that was used is answered with %v", got)
	}
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, run)
	events, _ := w.over(run)
	w.frame(again, "after", "the goal")
	if got := w.got("run_accepted", "after"); got["status"] != "cancelled" {
		t.Errorf("after the end the answer is %v", got)
	}
	w.end() // and over a restart
	w.start()
	w.frame(again, "restarted", "the goal")
	if got := w.got("run_accepted", "restarted"); got["status"] != "cancelled" {
		t.Errorf("after a restart the answer is %v", got)
	}
	if n := strings.Count(kinds(events), "completion"); n != 1 {
		t.Errorf("there are %d completions", n)
	}
}

// TestRefusals: what cannot be done, by code (rows 7 and 8).
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits, func(a *Agent) { a.MaxConcurrentRuns = 1 })
	w.cfg.MaxQueue = 1
	w.start()
	create := func(id, more string) string {
		return fmt.Sprintf(`{"type":"create_run","id":%q,"run_id":%q,"goal":"g",%s}`, id, "run_of_"+id, more)
	}
	for _, c := range []struct {
		id, frame string
		code      float64
	}{
		{"agent", create("agent", `"agent_id":"nobody"`), 4003},
		{"tool", create("tool", `"agent_id":"waits","constraints":{"tools":["terminal","browser"]}`), 4007},
		{"none", create("none", `"agent_id":"waits","constraints":{"tools":[]}`), 4001},
		{"form", create("form", `"agent_id":7`), 4001},
		// Both together fit into a frame, and not into a command.
		{"size", create("size", `"agent_id":"waits","context_bundle":{"objective":"`+strings.Repeat("<", 100_000)+`"},"handoff":{"bundle":"`+strings.Repeat(">", 100_000)+`"}`), 4001},
		{"names", create("names", `"agent_id":"waits","context_bundle":{"artifacts":[`+strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("a", 5200)+`",`, 100), ",")+`]}`), 4001},
		{"type", `{"type":"restart","id":"type"}`, 4002},
		{"run", `{"type":"cancel_run","id":"run","run_id":"nothing"}`, 4004},
	} {
		w.frame("%s", c.frame)
		if got := w.got("error", c.id); got["code"] != c.code || got["retryable"] != false || got["message"] == "" {
			t.Errorf("%s: answered with %v, want %v", c.id, got, c.code)
		}
	}
	w.frame("%s", create("first", `"agent_id":"waits"`))
	if got := w.got("run_accepted", "first"); got["status"] != "running" {
		t.Errorf("the first run is %v", got)
	}
	w.frame("%s", create("second", `"agent_id":"waits"`))
	if got := w.got("run_accepted", "second"); got["status"] != "queued" {
		t.Errorf("the second run is %v", got)
	}
	w.frame("%s", create("third", `"agent_id":"waits"`))
	if got := w.got("error", "third"); got["code"] != 4005.0 || got["retryable"] != true || got["retry_after_s"] != 60.0 {
		t.Errorf("the third run is answered with %v", got)
	}
	// The queue moves on when there is room.
	w.frame(`{"type":"cancel_run","id":"c","run_id":"run_of_first"}`)
	w.over("run_of_first")
	w.until("the second run", func() bool { events, _, _ := w.server.Delivered("run_of_second"); return len(events) > 0 })
}

// TestTurn: context_bundle and constraints reach the harness in turn.start; the
// tools are those that are asked for, or all that are offered (row 8).
func TestTurn(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	file := filepath.Join(t.TempDir(), "commands")
	script := filepath.Join(t.TempDir(), "harness")
	text := `#!/bin/sh
echo '{"schema":"paperclip.harness.message.v1","messageSeq":1,"type":"ready","payload":{"version":"1"}}'
while read -r line; do
	printf '%s\n' "$line" >> ` + file + `
	case "$line" in *turn.start*) exit 0;; esac
done
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	w.agent("asks", "happy-path", func(a *Agent) { a.Harness, a.GoalTo, a.MaxTurns = script, "stdin", 60 })
	w.start()
	turn := func(more string) map[string]any {
		events, _ := w.over(w.create("asks", more))
		if strings.Contains(more, "max_tokens") != warned(events, "max_tokens_not_checked") {
			t.Errorf("with %q the events are %s", more, kinds(events))
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		return object(t, []byte(lines[len(lines)-1]))["payload"].(map[string]any)
	}
	got := turn(`,"context_bundle":{"objective":"o","memory_keys":["k"]},"constraints":{"max_tokens":5,"tools":["file"]}`)
	k := got["constraints"].(map[string]any)
	bundle := got["context_bundle"].(map[string]any)
	if got["text"] != "the goal" || got["stdin"] != "the goal" || got["max_turns"] != 60.0 || k["max_tokens"] != 5.0 ||
		fmt.Sprint(k["tools"]) != "[file]" || bundle["objective"] != "o" || fmt.Sprint(bundle["memory_keys"]) != "[k]" {
		t.Errorf("the turn is %v", got)
	}
	got = turn("")
	if k := got["constraints"].(map[string]any); fmt.Sprint(k["tools"]) != "[terminal file]" || got["context_bundle"] != nil {
		t.Errorf("without constraints the turn is %v", got)
	}
}

// TestTimeout: timeout_seconds ends the run, as failed (row 8).
func TestTimeout(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits)
	w.start()
	events, end := w.over(w.create("waits", `,"constraints":{"timeout_seconds":0.5}`))
	var e endError
	if err := json.Unmarshal(events[len(events)-1].Payload["error"], &e); err != nil {
		t.Fatal(err)
	}
	if end["status"] != "failed" || e.Reason != "run_timed_out" {
		t.Errorf("the completion is %v", end)
	}
}

// TestTokens: max_tokens ends the run where the harness reports usage (row 8).
func TestTokens(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("uses", `[{"kind":"event","event_type":"usage.reported","payload":{"usage":{"totalTokens":11}}},{"kind":"await_interrupt"}]`)
	w.start()
	_, end := w.over(w.create("uses", `,"constraints":{"max_tokens":10}`))
	if e, _ := end["error"].(map[string]any); end["status"] != "failed" || e["code"] != 4006.0 || end["cause"] != reasonTokens {
		t.Errorf("the completion is %v", end)
	}
	if u, _ := end["usage"].(map[string]any); u["totalTokens"] != 11.0 {
		t.Errorf("the usage is %v", end["usage"])
	}
}

// TestHarnessFails: what a broken harness is for the server (row 10).
func TestHarnessFails(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("missing", "happy-path", func(a *Agent) { a.Harness = "/nowhere/harness" })
	w.agent("breaks", `[{"kind":"raw","text":"not json\n"},{"kind":"hang"}]`)
	w.agent("fails", "error")
	w.start()
	for agent, reason := range map[string]string{
		"missing": "harness_start_failed", "breaks": "harness_protocol_violation", "fails": "harness_process_failed",
	} {
		events, end := w.over(w.create(agent))
		if end["status"] != "failed" || end["reason"] != reason {
			t.Errorf("%s: the completion is %v", agent, end)
		}
		if agent != "missing" && !strings.Contains(kinds(events), "error") {
			t.Errorf("%s: no error is told: %s", agent, kinds(events))
		}
	}
}

// TestHeartbeat: every interval, answered or not; what is not known is left out
// (row 5), and what the server sets is clamped (row 4).
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Settings: map[string]any{"heartbeat_interval_s": 0.001, "max_concurrent_runs": 1, "other": true}})
	w.agent("waits", waits)
	w.cfg.Times.MinHeartbeat = 30 * time.Millisecond
	w.cfg.Figures = func() (*float64, *float64) { n := 12.5; return nil, &n }
	w.start()
	w.create("waits")
	w.create("waits")
	w.until("a heartbeat with both runs", func() bool {
		return slices.ContainsFunc(w.server.Frames(), func(f devserver.ConnectorFrame) bool {
			if f.Type != "heartbeat" {
				return false
			}
			m := object(t, f.Raw)
			k := m["metrics"].(map[string]any)
			_, cpu := k["cpu_pct"]
			if m["connector_id"] != connectorID || m["mode"] != "serving" || cpu || k["memory_mb"] != 12.5 {
				t.Errorf("a heartbeat is %s", f.Raw)
			}
			// The server's bound of one run holds.
			return k["active_runs"] == 1.0 && k["queued_runs"] == 1.0
		})
	})
}

// TestNotGoing: a run that could not be set going has failed, and says why; one
// that was refused, has lost its runner or was ended has its own reason.
func TestNotGoing(t *testing.T) {
	t.Parallel()
	c := filled(t, 1, 0)
	for _, k := range []struct {
		err  error
		told bool
	}{
		{fmt.Errorf("wait for the answer: %w", context.DeadlineExceeded), true},
		{fmt.Errorf("%w: too long", controller.ErrNotSent), true},
		{controller.ErrRunnerGone, false},
		{controller.ErrClosed, false},
		{&controller.RejectedError{}, false},
	} {
		r := c.newRun(&createRun{RunID: "run_0", AgentID: "a"}, &c.cfg.Agents[0], c.spools[0])
		r.notGoing(k.err)
		if got := r.tr.cause; (got != nil) != k.told || k.told && (got.status != StatusFailed || got.reason != reasonNotGoing) {
			t.Errorf("%v: the cause is %+v", k.err, got)
		}
		r.stop(nil)
	}
}

// TestUndelivered: where the server has not acknowledged the events of so many
// runs, no more are begun: each holds files open.
func TestUndelivered(t *testing.T) {
	t.Parallel()
	c := filled(t, 0, 0)
	defer func() { c.spools = nil }() // they have no files
	asked := func() *createRun { return &createRun{RunID: "new", AgentID: c.cfg.Agents[0].AgentID} }
	for range maxSpools - 1 {
		c.spools = append(c.spools, &spool{})
	}
	if _, e := c.judge(asked()); e != nil {
		t.Errorf("with %d runs: %v", len(c.spools), e)
	}
	c.spools = append(c.spools, &spool{})
	if _, e := c.judge(asked()); e == nil || e.Code != CodeBusy || !e.Retryable || e.RetryAfterS != 60 {
		t.Errorf("with %d runs: %+v", len(c.spools), e)
	}
}

// TestAgentsApart: a run that fills one agent does not hold up another.
func TestAgentsApart(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits, func(a *Agent) { a.MaxConcurrentRuns = 1 })
	w.start()
	w.create("waits")
	queued := w.create("waits")
	_, end := w.over(w.create("happy"))
	if end["status"] != "succeeded" {
		t.Errorf("the completion is %v", end)
	}
	if got := w.got("run_accepted", queued); got["status"] != "queued" {
		t.Errorf("the second run is %v", got)
	}
}

// TestLater: what the events of a run ask for is done in their order: a question
// that was withdrawn is not asked after that.
func TestLater(t *testing.T) {
	t.Parallel()
	c := &Connector{calls: make(chan func()), over: make(chan struct{})}
	r := &run{c: c}
	var done []int
	const all = 1000
	go func() {
		defer close(c.over)
		for len(done) < all {
			(<-c.calls)()
		}
	}()
	for i := range all {
		r.mu.Lock()
		r.later(func() { done = append(done, i) })
		r.mu.Unlock()
	}
	select {
	case <-c.over:
	case <-time.After(hang):
		t.Fatal("not all is done")
	}
	if !slices.IsSorted(done) {
		t.Errorf("it was done in another order: %v", done)
	}
}

// TestTold: an event of the runner counts as told when its own run_event is on
// disk, and not by what is told before that: else it would be lost without a word
// where the connector is killed in between (remote.md rule 4).
func TestTold(t *testing.T) {
	t.Parallel()
	c := filled(t, 1, 0)
	r := c.newRun(&createRun{RunID: "run_0", AgentID: "a"}, &c.cfg.Agents[0], c.spools[0])
	defer r.stop(nil)
	r.tr = newTranslation(bridge.NewMasker([]string{"sesame-open"}))
	const all = maxItems + 1 // the last one makes the first one be told as well
	for n := range all {
		r.take(said(int64(n+1), protocol.EventItemDelta, fmt.Sprint("item_", n), `{"kind":"assistant_message","delta":"a ses"}`))
	}
	text, err := os.ReadFile(filepath.Join(r.dir, eventsFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != all+1 || !strings.Contains(lines[all-1], `"text_rest"`) {
		t.Fatalf("there are %d events, want %d", len(lines), all+1)
	}
	for i, want := range map[int]int{all - 2: all - 1, all - 1: all - 1, all: all} {
		if key := fmt.Sprintf(`"key":"%d"`, want); !strings.Contains(lines[i], key) {
			t.Errorf("event %d is %s, want %s", i+1, lines[i], key)
		}
	}
}
