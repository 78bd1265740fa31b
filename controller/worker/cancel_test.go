//go:build unix

package worker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"prp/controller/awaittest"
)

// TestCancel: row 10. Results first, then the reply; a second one says the same.
func TestCancel(t *testing.T) {
	for _, mode := range []string{"graceful", "force"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel() // it waits
			p := ready(t)
			var ids []string
			for i := range maxRunning + 2 { // two of them queued
				ids = append(ids, p.send(ToolRun, fmt.Sprintf(`{"argv":["sh","-c","trap '' TERM; setsid sleep 300 & echo $! > pid%d; while :; do sleep 0.1; done"]}`, i)))
			}
			other := p.send(ToolPing, "{}")
			p.result(other)
			for i := range maxRunning {
				p.until("the start", func() bool { return p.read(fmt.Sprintf("pid%d", i)) != "" })
			}
			args := fmt.Sprintf(`{"task_id":"task","mode":%q}`, mode)
			reply := p.do(ToolCancel, args)
			if reply.Status != StatusSuccess || reply.Fields["outcome"] != "cancelled" {
				t.Errorf("the reply is %s", reply.Raw)
			}
			for i := range maxRunning {
				if pid := strings.TrimSpace(p.read(fmt.Sprintf("pid%d", i))); alive(pid) {
					t.Errorf("process %s lives when the reply is here", pid)
				}
			}
			var order []string
			for _, f := range p.server.Frames() {
				if slices.Contains(ids, f.ID) {
					order = append(order, f.Status)
				}
				if f.ID == reply.CommandID {
					order = append(order, "reply")
				}
			}
			want := append(slices.Repeat([]string{"cancelled"}, len(ids)), "reply")
			if !slices.Equal(order, want) {
				t.Errorf("the order is %q", order)
			}
			again := p.do(ToolCancel, args)
			if string(again.Result.Result) != string(reply.Result.Result) {
				t.Errorf("the second reply is %s, the first %s", again.Result.Result, reply.Result.Result)
			}
			one := p.do(ToolCancel, `{"task_id":"task","command_id":"`+other+`"}`)
			if one.Fields["outcome"] != "already_finished" || one.Fields["command_id"] != other {
				t.Errorf("a finished command: %s", one.Raw)
			}
			none := p.do(ToolCancel, `{"task_id":"another"}`)
			if none.Fields["outcome"] != "not_found" {
				t.Errorf("an unknown task: %s", none.Raw)
			}
		})
	}
}

// TestCancelOne: row 10. Of two commands of a task the one that is named is
// cancelled; a second cancel meanwhile, which forces, hastens the first, and
// both get the same answer.
func TestCancelOne(t *testing.T) {
	t.Parallel()
	p := ready(t)
	stubborn := `{"argv":["sh","-c","trap '' TERM; echo > ready; while :; do sleep 0.05; done"]}`
	one := p.send(ToolRun, stubborn)
	other := p.send(ToolRun, `{"argv":["sh","-c","while [ ! -e go ]; do sleep 0.01; done"]}`)
	p.until("the trap", func() bool { return p.read("ready") != "" })
	args := fmt.Sprintf(`{"task_id":"task","command_id":%q,"mode":%%q}`, one)
	first := p.send(ToolCancel, fmt.Sprintf(args, "graceful"))
	second := p.send(ToolCancel, fmt.Sprintf(args, "force"))
	a, b := p.result(first), p.result(second)
	if a.Fields["outcome"] != "cancelled" || a.Fields["command_id"] != one || string(a.Result.Result) != string(b.Result.Result) {
		t.Errorf("the answers are %s and %s", a.Raw, b.Raw)
	}
	if r := p.result(one); r.Status != StatusCancelled || r.Error.Code != CodeCancelled {
		t.Errorf("the cancelled: %s", r.Raw)
	}
	if p.results(other) != 0 {
		t.Error("the other one has ended as well")
	}
	p.write("go", "")
	if r := p.result(other); r.Status != StatusSuccess {
		t.Errorf("the other: %s", r.Raw)
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
		awaittest.Came(t, "the loop", looked)
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
