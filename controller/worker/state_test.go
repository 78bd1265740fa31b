//go:build unix

package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/controller/bridge"
	"prp/controller/devserver"
)

// TestStoredBehindUnknown: remote.md rule 3. A result that was stored and not
// queued is sent at the next start, also where a command that came before it
// had begun and gets its answer then.
func TestStoredBehindUnknown(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	begin(t, p, `{"command_id":"first","task_id":"task","tool":"command.run","args":{"argv":["true"]}}`)
	store, err := bridge.OpenStore(filepath.Join(p.config.Dir, commandsFile), bridge.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(Result{CommandID: "second", Tool: ToolPing, StartedAt: "2026-01-02T03:04:05.000Z", FinishedAt: "2026-01-02T03:04:05.000Z", Status: StatusSuccess, Artifacts: []any{}, Result: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Finish(bridge.Remembered{ID: "second", Tool: ToolPing, Digest: "d", Status: string(StatusSuccess), Seq: 1}, body); err != nil {
		t.Fatal(err)
	}
	store.Close()
	p.start()
	p.refused("the first", p.result("first"), CodeOutcomeUnknown)
	if r := p.result("second"); r.Status != StatusSuccess {
		t.Errorf("the second: %s", r.Raw)
	}
}

// TestCancelWhileStarting: row 10. A cancel that comes while a background
// process begins is answered when it is gone.
func TestCancelWhileStarting(t *testing.T) {
	for _, keep := range []string{"", `,"keep":true`} {
		t.Run("keep"+keep, func(t *testing.T) {
			t.Parallel()
			p := ready(t)
			if keep != "" && !p.worker.canKeep() {
				t.Skip("a process cannot outlive the worker here")
			}
			for i := range 3 {
				pid := fmt.Sprintf("pid%d", i)
				id := p.send(ToolRun, fmt.Sprintf(`{"argv":["sh","-c","echo $$ > %s; exec sleep 300"],"background":true%s}`, pid, keep))
				p.until("its turn", func() bool { return p.read(pid) != "" || p.results(id) > 0 })
				reply := p.result(p.send(ToolCancel, fmt.Sprintf(`{"task_id":"task","command_id":%q}`, id)))
				if pid := strings.TrimSpace(p.read(pid)); alive(pid) || reply.Fields["outcome"] != outcomeCancelled {
					t.Errorf("process %s lives: %t; the reply is %s", pid, alive(pid), reply.Raw)
				}
			}
		})
	}
}

// TestCancelBeforeKnown is the same with the loop stopped until the process has
// begun: the start is not yet known to it when the cancel comes.
func TestCancelBeforeKnown(t *testing.T) {
	t.Parallel()
	p := ready(t)
	id := p.send(ToolRun, `{"argv":["sh","-c","echo $$ > pid; exec sleep 300"],"background":true}`)
	done := false
	p.until("its turn", func() bool {
		looked := make(chan struct{})
		p.worker.call(func() {
			defer close(looked)
			x := p.worker.active[id]
			if done || x == nil || !x.running {
				return
			}
			for p.read("pid") == "" && p.ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			in, err := decodeFrame([]byte(`{"command_id":"stop","task_id":"task","tool":"task.cancel","args":{"task_id":"task","command_id":"` + id + `"}}`))
			if err == nil {
				err = p.worker.take(p.ctx, in)
			}
			if err != nil {
				t.Error(err)
			}
			done = true
		})
		<-looked
		return done || p.results(id) > 0
	})
	if !done {
		t.Skip("it had begun before it was looked at")
	}
	reply := p.result("stop")
	if pid := strings.TrimSpace(p.read("pid")); alive(pid) || reply.Fields["outcome"] != outcomeCancelled {
		t.Errorf("process %s lives: %t; the reply is %s", pid, alive(pid), reply.Raw)
	}
}

// TestResultBeforeReply: row 10. A process in the background that ends before its
// command has its answer does not bring the reply to a cancel before that answer.
func TestResultBeforeReply(t *testing.T) {
	t.Parallel()
	p := ready(t)
	w := p.worker
	stop, err := decodeFrame([]byte(`{"command_id":"stop","task_id":"task","tool":"task.cancel","args":{"task_id":"task"}}`))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	w.call(func() {
		defer close(done)
		x := &execution{
			command: Command{CommandID: "c", TaskID: "task", Tool: ToolRun}, begun: time.Now(),
			running: true, stop: func(error) {}, force: make(chan struct{}),
		}
		w.active["c"] = x
		w.running++
		err = errors.Join(w.take(p.ctx, stop), w.ended("c"))
		w.finished(p.ctx, x, succeeded(ranResult{ProcessID: "proc_1"}))
	})
	if <-done; err != nil {
		t.Fatal(err)
	}
	reply := p.result("stop")
	if list, _ := reply.Fields["commands"].([]any); len(list) != 1 || reply.Fields["outcome"] != outcomeFinished {
		t.Errorf("the reply is %s", reply.Raw)
	}
	first, err := p.server.Result(p.ctx, "c")
	last, err2 := p.server.Result(p.ctx, "stop")
	if errors.Join(err, err2) != nil || first.Seq >= last.Seq {
		t.Errorf("the result has number %d, the reply %d; %v", first.Seq, last.Seq, errors.Join(err, err2))
	}
}
