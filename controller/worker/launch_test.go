//go:build unix

package worker

import (
	"slices"
	"strconv"
	"strings"
	"testing"

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
	<-first[0].over // it was the one
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
