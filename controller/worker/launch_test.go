//go:build unix

package worker

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"prp/controller/awaittest"
	"prp/protocol"
)

// spares waits for the runs that are ready for the next commands.
func (p *peer) spares() []*run {
	p.t.Helper()
	var list []*run
	p.until("the spares", func() bool {
		p.worker.runs.mu.Lock()
		defer p.worker.runs.mu.Unlock()
		list = slices.Clone(p.worker.runs.spares)
		return len(list) == maxSpares
	})
	return list
}

// TestSpare: issue point 3. The next commands find their runners ready, the one
// that has waited longest first; one whose runner was killed meanwhile is passed
// over; none is left when the worker ends.
func TestSpare(t *testing.T) {
	p := ready(t)
	runs := func(what string) {
		t.Helper()
		if r := p.do(ToolRun, `{"argv":["sh","-c","echo $A; pwd"],"env":{"A":"`+what+`"}}`); r.Stdout != what+"\n"+p.config.Root+"\n" {
			t.Errorf("%s: %s", what, r.Raw)
		}
	}
	runs("without a spare")
	first := p.spares()
	runs("with a spare")
	awaittest.Came(t, "the first spare", first[0].over) // it was the one
	second := p.spares()
	if slices.Contains(second, first[0]) || !slices.Contains(second, first[1]) {
		t.Fatal("the spares are not those that were not used, and a new one")
	}
	for _, r := range second {
		r.client.Kill()
	}
	runs("after a kill")
	var pids []string
	for _, r := range p.spares() {
		pids = append(pids, strconv.Itoa(r.client.PID()))
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("the spare %s does not live", pid)
		}
	}
	p.end()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("the spare %s lives without its worker", pid)
		}
	}
	p.worker.runs.fill()
	p.worker.runs.fillFirst()
	if len(p.worker.runs.spares) > 0 {
		t.Error("a worker that has ended makes a spare")
	}
}

// TestTerminalNames: a member of the terminal in other letters is not known (prp.md
// section 1), and takes nothing away from the one that is.
func TestTerminalNames(t *testing.T) {
	t.Parallel()
	// A runner that says one thing, as the flags have its ids.
	const runner = `while [ $# -gt 1 ]; do case $1 in --run-id) run=$2;; --session-id) session=$2;; --runner-id) id=$2;; esac; shift; done
printf '{"schema":"paperclip.runner.stream.v1","message":{"kind":"event","event":{"schema":"paperclip.prp.event.v1","sourceEventId":"event_%s_001","sourceSeq":1,"sourceInstanceId":"%s","sourceKind":"runner","runId":"%s","normalizedSessionId":"%s","eventType":"run.terminal","schemaVersion":1,"priority":0,"emittedAt":"2026-01-02T03:04:05.000Z","payload":%s}}}\n' "$run" "$id" "$run" "$session" "$0"
cat > /dev/null`
	const payload = `{"schema":"paperclip.prp.terminal.v1","turnTerminalState":"failed","runTerminalState":"failed","RunTerminalState":"succeeded",` +
		`"reconciliation":{"authority":"runner","reason":"run_timed_out","Reason":"run_cancelled","processExit":{"exitCode":3,"ExitCode":4,"success":false,"signal":null}},` +
		`"Reconciliation":{"reason":"successful_process_and_result"}}`
	l := &launcher{runner: []string{"sh", "-c", runner, payload}, env: os.Environ(), dir: t.TempDir()}
	r, err := l.prepare()
	if err != nil {
		t.Fatal(err)
	}
	awaittest.Came(t, "the run", r.over)
	end := r.last
	if end == nil || end.RunTerminalState != protocol.RunFailed || end.Reconciliation.Reason != protocol.ReasonRunTimedOut || *end.Reconciliation.ProcessExit.ExitCode != 3 {
		t.Errorf("the end is %+v", end)
	}
	r.client.Close()
	awaittest.Came(t, "the runner", r.gone)
}

// TestSpareForTheNext: where a command takes the last spare, the next one starts
// with it, not after it.
func TestSpareForTheNext(t *testing.T) {
	t.Parallel()
	p := ready(t)
	l := p.worker.runs
	spec := runSpec{turn: encodeTurn([]string{"true"}, p.config.Root, nil, nil)}
	for range 3 { // without a spare, then each with that of the one before
		r, err := l.start(spec, func(*protocol.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		if len(l.spares) == 0 || len(l.spares) > maxSpares || slices.Contains(l.spares, r) {
			t.Errorf("there are %d spares", len(l.spares))
		}
		l.mu.Unlock()
		if end := r.terminal(); end == nil || end.Reconciliation.Reason != protocol.ReasonSuccess {
			t.Errorf("the end is %+v", end)
		}
	}
}

// TestTimeoutWithSpare: row 7. The time of a command counts from its start, not from
// when its runner was ready, and its output comes with the timeout.
func TestTimeoutWithSpare(t *testing.T) {
	t.Parallel()
	p := ready(t)
	p.do(ToolRun, `{"argv":["true"]}`)
	p.spares()
	r := p.do(ToolRun, `{"argv":["sh","-c","echo $$ > pid; echo said; exec sleep 300"]}`, `,"timeout_ms":3000`)
	if r.Status != StatusTimeout || r.Stdout != "said\n" || r.DurationMS < 3000 || alive(strings.TrimSpace(p.read("pid"))) {
		t.Errorf("the result is %s", r.Raw)
	}
}
