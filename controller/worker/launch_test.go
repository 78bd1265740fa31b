//go:build unix

package worker

import (
	"strconv"
	"strings"
	"testing"
)

// spare waits for a run that is ready for the next command.
func (p *peer) spare() *run {
	p.t.Helper()
	var r *run
	p.until("a spare", func() bool {
		p.worker.runs.mu.Lock()
		defer p.worker.runs.mu.Unlock()
		r = p.worker.runs.spare
		return r != nil
	})
	return r
}

// TestSpare: issue point 3. The next command finds its runner ready; one whose
// runner was killed meanwhile gets another; none is left when the worker ends.
func TestSpare(t *testing.T) {
	p := ready(t)
	runs := func(what string) {
		t.Helper()
		if r := p.do(ToolRun, `{"argv":["sh","-c","echo $A; pwd"],"env":{"A":"`+what+`"}}`); r.Stdout != what+"\n"+p.config.Root+"\n" {
			t.Errorf("%s: %s", what, r.Raw)
		}
	}
	runs("without a spare")
	first := p.spare()
	runs("with a spare")
	<-first.over // it was the one
	second := p.spare()
	if first == second {
		t.Fatal("a run is given twice")
	}
	second.client.Kill()
	runs("after a kill")
	third := p.spare()
	pid := strconv.Itoa(third.client.PID())
	if !alive(pid) {
		t.Errorf("the spare %s does not live", pid)
	}
	p.end()
	if alive(pid) {
		t.Errorf("the spare %s lives without its worker", pid)
	}
	p.worker.runs.fill()
	if p.worker.runs.spare != nil {
		t.Error("a worker that has ended makes a spare")
	}
}

// TestTimeoutWithSpare: row 7. The time of a command counts from its start, not from
// when its runner was ready, and its output comes with the timeout.
func TestTimeoutWithSpare(t *testing.T) {
	t.Parallel()
	p := ready(t)
	p.do(ToolRun, `{"argv":["true"]}`)
	p.spare()
	r := p.do(ToolRun, `{"argv":["sh","-c","echo $$ > pid; echo said; exec sleep 300"]}`, `,"timeout_ms":3000`)
	if r.Status != StatusTimeout || r.Stdout != "said\n" || r.DurationMS < 3000 || alive(strings.TrimSpace(p.read("pid"))) {
		t.Errorf("the result is %s", r.Raw)
	}
}
