//go:build unix

package taskrun

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prp/controller/awaittest"
	"prp/controller/devserver"
)

// failure is a case of what can go wrong, and exactly what is reported of it.
type failure struct {
	rules []devserver.Rule
	// make changes the offer or the worker before the start.
	make func(b *bench)
	// act does something to a run that is under way; its context is that of the
	// worker, whose end is SIGTERM.
	act     func(b *bench, signal context.CancelFunc)
	outcome Outcome
	// status is what the server has at the end, text a part of the error message.
	status, text string
	// claims and ends count the calls.
	claims, ends int
	// started tells that a runner was started.
	started bool
}

// signalRun sends SIGTERM to a run that is under way.
func signalRun(b *bench, signal context.CancelFunc) {
	b.running()
	signal()
}

// waitForSignal makes the wait before another try longer than the test: only a
// signal ends it.
func waitForSignal(b *bench) {
	b.cfg.Times.FetchFirst, b.cfg.Times.FetchMost, b.cfg.Times.FetchAll = 2*hang, 2*hang, 4*hang
}

// signalClaimed sends SIGTERM once the server has the claim.
func signalClaimed(b *bench, signal context.CancelFunc) {
	b.await(func(st devserver.TaskRunState) bool { return st.Count(devserver.OnClaim) > 0 })
	signal()
}

// failures are the rows of the worker's order, the table Decided and the issue.
var failures = map[string]failure{
	"lost claim": {
		rules: []devserver.Rule{rule(devserver.OnClaim, 1, "409")}, outcome: NotOurs, status: "SCHEDULED", claims: 1,
	},
	"lost claim reply": { // row 6
		rules: []devserver.Rule{rule(devserver.OnClaim, 1, devserver.DropAfter)}, outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 1, started: true,
	},
	"claim that did not arrive": {
		rules: []devserver.Rule{rule(devserver.OnClaim, 1, devserver.Drop)}, outcome: Reported, status: "SUCCEEDED", claims: 2, ends: 1, started: true,
	},
	"claim that did not arrive, and another worker's did": {
		rules: []devserver.Rule{rule(devserver.OnClaim, 1, devserver.Drop)}, outcome: NotOurs, status: "RUNNING", claims: 1,
		make: func(b *bench) {
			b.onRetry = func() { b.server.SetStatus(b.id, "RUNNING") }
		},
	},
	"pending": {
		make: func(b *bench) { b.offer.Bundle.Run.Status = "PENDING" }, outcome: NotOurs, status: "PENDING",
	},
	"an answer without a status": {
		make: func(b *bench) { b.elsewhere(`{}`) }, outcome: Unreported, status: "SCHEDULED",
	},
	"an answer that is null": {
		make: func(b *bench) { b.elsewhere(`null`) }, outcome: Unreported, status: "SCHEDULED",
	},
	"running already": {
		make: func(b *bench) { b.offer.Bundle.Run.Status = "RUNNING" }, outcome: NotOurs, status: "RUNNING",
	},
	"over already": {
		make: func(b *bench) { b.offer.Bundle.Run.Status = "FAILED" }, outcome: NotOurs, status: "FAILED",
	},
	"cancel before the start": {
		make:    func(b *bench) { b.offer.Bundle.Run.CancelRequested = true },
		outcome: Reported, status: "CANCELED", ends: 1,
	},
	"plugin error": {
		make:    func(b *bench) { b.offer.Bundle.PluginError = "the plugin tools is suspended" },
		outcome: Reported, status: "FAILED", text: "the plugin tools is suspended", ends: 1,
	},
	"cancel and plugin error": {
		make:    func(b *bench) { b.offer.Bundle.PluginError, b.offer.Bundle.Run.CancelRequested = "x", true },
		outcome: Reported, status: "CANCELED", ends: 1,
	},
	"secrets refused": {
		rules: []devserver.Rule{rule(devserver.OnSecrets, 1, "403")}, outcome: Reported, status: "FAILED", text: "secrets: fetch the secrets: the server answered with status 403", claims: 1, ends: 1,
	},
	"secrets without an answer": {
		rules: []devserver.Rule{rule(devserver.OnSecrets, 0, devserver.Drop)}, outcome: Reported, status: "FAILED", text: "secrets: ", claims: 1, ends: 1,
	},
	"secrets of an impossible name": {
		make:    func(b *bench) { b.offer.Secrets = map[string]string{"A=B": "the-value-of-it"} },
		outcome: Reported, status: "FAILED", text: `"A=B"`, claims: 1, ends: 1,
	},
	"plugin hash wrong": { // row 9
		make:    func(b *bench) { b.plugin("tool", "sha256:"+strings.Repeat("0", 64)) },
		outcome: Reported, status: "FAILED", text: "expected the digest", claims: 1, ends: 1,
	},
	"plugin pin wrong": {
		make: func(b *bench) { b.plugin("tool", "md5:1") }, outcome: Reported, status: "FAILED", text: "plugins: ", claims: 1, ends: 1,
	},
	"plugin with an escaping path": {
		make: func(b *bench) { b.plugin("../escaped", "") }, outcome: Reported, status: "FAILED", text: "../escaped", claims: 1, ends: 1,
	},
	"plugin refused": {
		rules: []devserver.Rule{rule(devserver.OnPlugin, 0, "404")}, make: func(b *bench) { b.plugin("tool", "") },
		outcome: Reported, status: "FAILED", text: "status 404", claims: 1, ends: 1,
	},
	"plugin late by a lost answer": {
		rules: []devserver.Rule{rule(devserver.OnPlugin, 1, devserver.Drop)}, make: func(b *bench) { b.plugin("tool", "") },
		outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 1, started: true,
	},
	"workspace hash wrong": { // row 11
		make: func(b *bench) { b.base(true) }, outcome: Reported, status: "FAILED", text: "workspace: restore the workspace", claims: 1, ends: 1,
	},
	"workspace refused": {
		rules: []devserver.Rule{rule(devserver.OnBase, 0, "500")}, make: func(b *bench) { b.store() },
		outcome: Reported, status: "FAILED", text: "status 500", claims: 1, ends: 1,
	},
	"workspace feature off": {
		rules: []devserver.Rule{rule(devserver.OnBase, 0, "503")}, make: func(b *bench) { b.store() },
		outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 1, started: true,
	},
	"no place for a checkpoint": {
		make:    func(b *bench) { b.base(false); b.cfg.Store = nil },
		outcome: Reported, status: "FAILED", text: "expected a place for checkpoints", claims: 1, ends: 1,
	},
	"seed refused": {
		rules: []devserver.Rule{rule(devserver.OnSeed, 0, "400")}, make: func(b *bench) { b.store() },
		outcome: Reported, status: "FAILED", text: "report the first checkpoint", claims: 1, ends: 1,
	},
	"restore report refused": {
		rules: []devserver.Rule{rule(devserver.OnRestore, 0, "500")}, make: func(b *bench) { b.base(false) },
		outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 1, started: true,
	},
	"text refused": { // row 3
		rules: []devserver.Rule{rule(devserver.OnStream, 0, "400")}, outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 1, started: true,
	},
	"text to a slow server": { // row 2
		rules: []devserver.Rule{rule(devserver.OnStream, 0, devserver.Late)}, make: func(b *bench) {
			b.script(message(strings.Repeat("x", 600)), message(strings.Repeat("y", 600)), message(strings.Repeat("z", 600)), result("Done."))
		},
		outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 1, started: true,
	},
	"text after the end at the server": { // wire: 409 stops the stream
		rules: []devserver.Rule{rule(devserver.OnStream, 1, "409")}, outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 1, started: true,
	},
	"terminal PATCH lost three times": { // row 5
		rules: []devserver.Rule{
			rule(devserver.OnEnd, 1, devserver.Drop), rule(devserver.OnEnd, 2, devserver.DropAfter), rule(devserver.OnEnd, 3, "503"),
		},
		outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 4, started: true,
	},
	"terminal PATCH told to wait": {
		rules: []devserver.Rule{rule(devserver.OnEnd, 1, "429")}, outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 2, started: true,
	},
	"terminal PATCH refused": {
		rules: []devserver.Rule{rule(devserver.OnEnd, 0, "400")}, outcome: Unreported, status: "RUNNING", claims: 1, ends: 1, started: true,
	},
	"SIGTERM": {
		make: (*bench).shell, act: signalRun,
		outcome: Reported, status: "FAILED", text: "SIGTERM", claims: 1, ends: 1, started: true,
	},
	"cancel": {
		make: (*bench).shell,
		act: func(b *bench, _ context.CancelFunc) {
			b.running()
			b.server.RequestCancel(b.id)
		},
		outcome: Reported, status: "CANCELED", claims: 1, ends: 1, started: true,
	},
	"cancel and SIGTERM together": {
		make: func(b *bench) {
			b.shell()
			b.cfg.Times.Poll = time.Hour // so that only the signal tells
		},
		act: func(b *bench, signal context.CancelFunc) {
			b.running()
			b.server.RequestCancel(b.id)
			signal()
		},
		outcome: Reported, status: "CANCELED", claims: 1, ends: 1, started: true,
	},
	"SIGTERM before the claim": {
		rules: []devserver.Rule{rule(devserver.OnFetch, 0, "503")},
		act: func(b *bench, signal context.CancelFunc) {
			b.await(func(st devserver.TaskRunState) bool { return st.Count(devserver.OnFetch) > 0 })
			signal()
		},
		outcome: Unreported, status: "SCHEDULED",
	},
	"SIGTERM after a lost claim reply": { // row 6: a run that is ours is not left as running
		rules: []devserver.Rule{rule(devserver.OnClaim, 1, devserver.DropAfter), rule(devserver.OnFetch, 2, "503")},
		make:  waitForSignal, act: signalClaimed,
		outcome: Reported, status: "FAILED", text: "SIGTERM", claims: 1, ends: 1,
	},
	"SIGTERM after a claim that did not arrive": {
		rules: []devserver.Rule{rule(devserver.OnClaim, 1, devserver.Drop)},
		make:  waitForSignal, act: signalClaimed,
		outcome: Unreported, status: "SCHEDULED", claims: 1,
	},
	"SIGTERM after a claim of which nothing is known": {
		rules: []devserver.Rule{rule(devserver.OnClaim, 1, devserver.DropAfter), rule(devserver.OnFetch, 2, "404")},
		make:  waitForSignal, act: signalClaimed,
		outcome: Unreported, status: "RUNNING", claims: 1,
	},
	"cancel during the terminal report": {
		rules: []devserver.Rule{rule(devserver.OnEnd, 1, "503")},
		make: func(b *bench) {
			b.onRetry = func() { b.server.RequestCancel(b.id) }
		},
		outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 2, started: true,
	},
	"another end at the server": { // row 7
		make: (*bench).shell,
		act: func(b *bench, _ context.CancelFunc) {
			b.running()
			b.server.SetStatus(b.id, "CANCELED")
		},
		outcome: NotOurs, status: "CANCELED", claims: 1, started: true,
	},
	"token revoked": { // row 8
		make: (*bench).shell,
		act: func(b *bench, _ context.CancelFunc) {
			b.running()
			b.server.SetToken(b.id, "another")
			at := b.state().Count(devserver.OnFetch)
			b.await(func(st devserver.TaskRunState) bool { return st.Count(devserver.OnFetch) > at+1 })
			b.goOn()
		},
		outcome: Unreported, status: "RUNNING", claims: 1, ends: 1, started: true,
	},
	"polls that say nothing": {
		rules: []devserver.Rule{
			rule(devserver.OnFetch, 2, "404"), rule(devserver.OnFetch, 3, "503"), rule(devserver.OnFetch, 4, devserver.Drop), rule(devserver.OnFetch, 5, "403"),
		},
		make: (*bench).shell,
		act: func(b *bench, _ context.CancelFunc) {
			b.await(func(st devserver.TaskRunState) bool { return st.Count(devserver.OnFetch) > 6 })
			b.goOn()
		},
		outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 1, started: true,
	},
	"unknown run": {
		rules: []devserver.Rule{rule(devserver.OnFetch, 0, "404")}, outcome: Unreported, status: "SCHEDULED",
	},
	"token refused": {
		rules: []devserver.Rule{rule(devserver.OnFetch, 0, "401")}, outcome: Unreported, status: "SCHEDULED",
	},
	"server away at first": {
		rules: []devserver.Rule{
			rule(devserver.OnFetch, 1, "503"), rule(devserver.OnFetch, 2, devserver.Drop), rule(devserver.OnFetch, 3, devserver.DropAfter),
		},
		outcome: Reported, status: "SUCCEEDED", claims: 1, ends: 1, started: true,
	},
	"server away for too long": {
		rules: []devserver.Rule{rule(devserver.OnFetch, 0, "503")}, make: func(b *bench) { b.cfg.Times.FetchAll = 50 * time.Millisecond },
		outcome: Unreported, status: "SCHEDULED",
	},
	"a question": {
		make: func(b *bench) {
			b.script(`{"kind":"request","request":{"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":"r","type":"input","status":"pending","prompt":"Which one?"}},{"kind":"await_resolution","request_id":"r"}`, result("x"))
		},
		outcome: Reported, status: "FAILED", text: "Which one?", claims: 1, ends: 1, started: true,
	},
	"harness that fails": {
		make:    func(b *bench) { b.script(message("half"), `{"kind":"exit","code":7}`) },
		outcome: Reported, status: "FAILED", text: "exit 7", claims: 1, ends: 1, started: true,
	},
	"harness that is killed": {
		make:    func(b *bench) { b.cfg.Harness = []string{"sh", "-c", "kill -9 $$"} },
		outcome: Reported, status: "FAILED", text: "It was ended by signal 9.", claims: 1, ends: 1, started: true,
	},
	"harness without a result": {
		make:    func(b *bench) { b.script(message("half"), `{"kind":"exit","code":0}`) },
		outcome: Reported, status: "FAILED", text: "no valid result", claims: 1, ends: 1, started: true,
	},
	"task that is too long for a line": {
		make:    func(b *bench) { b.offer.Bundle.Run.Input = strings.Repeat("x", 1<<20) },
		outcome: Reported, status: "FAILED", text: "expected a command of at most", claims: 1, ends: 1, started: true,
	},
	"no harness": {
		make:    func(b *bench) { b.cfg.Harness = []string{"no-such-program"} },
		outcome: Reported, status: "FAILED", claims: 1, ends: 1, started: true,
	},
	"no runner": {
		make:    func(b *bench) { b.cfg.Runner = []string{"/no/such/runner"} },
		outcome: Reported, status: "FAILED", text: "the runner could not be started", claims: 1, ends: 1,
	},
	"runner that dies": {
		make:    func(b *bench) { b.cfg.Runner = []string{"sh", "-c", "echo the last words >&2; exit 3"} },
		outcome: Reported, status: "FAILED", text: "the last words", claims: 1, ends: 1,
	},
}

// TestFailures: each failure of each step has exactly the report that the page
// names, or none (workerclient.md; issue points 2 and 4). A failure is tried over
// one link, the next one over the next, and with -short over another; -links
// tries each over each.
func TestFailures(t *testing.T) {
	all := links(t)
	for i, name := range slices.Sorted(maps.Keys(failures)) {
		over := all[i%len(all)]
		if testing.Short() {
			over = all[(i+1)%len(all)]
		}
		for _, l := range all {
			if *everyLink || l.String() == over.String() {
				t.Run(name+", "+l.String(), func(t *testing.T) {
					t.Parallel()
					failures[name].try(t, newBenchOver(t, l, failures[name].rules...))
				})
			}
		}
	}
}

func (f failure) try(t *testing.T, b *bench) {
	t.Helper()
	if f.make != nil {
		f.make(b)
	}
	b.offered()
	ctx, signal := context.WithCancel(b.ctx)
	defer signal()
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		if f.act != nil {
			f.act(b, signal)
		}
	}()
	outcome, err := b.workUntil(ctx)
	awaittest.Came(t, "what was done", acted)
	st := b.state()
	if outcome != f.outcome || (err != nil) != (f.outcome == Unreported) || st.Status != f.status {
		t.Errorf("outcome %d, %v; status %s; told %q", outcome, err, st.Status, b.told)
	}
	if st.Count(devserver.OnClaim) != f.claims || st.Count(devserver.OnEnd) != f.ends {
		t.Errorf("%d claims and %d ends", st.Count(devserver.OnClaim), st.Count(devserver.OnEnd))
	}
	f.checkReport(t, b, st)
	if b.read("child") != "" {
		b.gone()
	}
	left, err := os.ReadDir(filepath.Join(b.cfg.Dir, reportsDir))
	if keeps := f.outcome == Unreported && f.ends > 0; err != nil || (len(left) > 0) != keeps {
		t.Errorf("reports on disk: %v, %v", left, err)
	}
}

// checkReport looks at the members of the report.
func (f failure) checkReport(t *testing.T, b *bench, st devserver.TaskRunState) {
	t.Helper()
	if traces, _ := filepath.Glob(filepath.Join(b.cfg.Dir, tracesDir, "*", "*")); f.started && len(traces) != 1 || !f.started && len(traces) > 0 && st.End != nil && st.Count(devserver.OnClaim) == 0 {
		t.Errorf("the traces are %q", traces)
	}
	if st.End == nil {
		return
	}
	failed := st.Status == "FAILED"
	if (st.End.ErrorMessage != nil) != failed || failed && !strings.Contains(*st.End.ErrorMessage, f.text) {
		t.Errorf("the error message is %s, want %q", text(st.End.ErrorMessage), f.text)
	}
	if st.Status == "SUCCEEDED" && st.End.Output == nil {
		t.Error("a run that succeeded has no output")
	}
	if st.End.EndedAt == nil || st.End.EndedAt.Location() != time.UTC {
		t.Errorf("it ended at %v", st.End.EndedAt)
	}
	if i := slices.IndexFunc(st.Calls, func(c devserver.Call) bool { return c.Kind == devserver.OnEnd }); i >= 0 {
		for _, c := range st.Calls[i:] {
			if c.Kind == devserver.OnStream {
				t.Error("text came after the terminal report")
			}
		}
	}
}
