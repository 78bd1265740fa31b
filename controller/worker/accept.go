package worker

import (
	"context"
	"slices"
	"strings"
	"time"

	"prp/controller/bridge"
)

// take handles one command of the server. The error is one of the state on
// disk, after which nothing may be executed any more.
func (w *Worker) take(ctx context.Context, in inbound) error {
	c := *in.command
	if in.bad != nil {
		return w.refuse(c, in.bad)
	}
	if x := w.active[c.CommandID]; x != nil {
		if x.command.digest != c.digest {
			return w.refuse(c, reused())
		}
		return nil // its one result will come
	}
	known, verdict := w.store.Lookup(c.CommandID, c.digest)
	switch verdict {
	case bridge.Other:
		return w.refuse(c, reused())
	case bridge.Same:
		return w.repeat(c, known)
	}
	x := &execution{command: c, begun: time.Now(), force: make(chan struct{})}
	if e := w.prepare(x); e != nil {
		if e.Code == CodeBusy {
			return w.refuse(c, e)
		}
		return w.answer(x, failed(e))
	}
	if x.do == nil { // task.cancel
		return w.cancel(x)
	}
	if w.immediate(c.Tool) {
		return w.answer(x, x.do(ctx, x))
	}
	if len(w.queue) >= maxQueued {
		e := fault(CodeBusy, "%d commands wait already", maxQueued)
		e.Details["queued"], e.Details["running"] = len(w.queue), w.running
		return w.refuse(c, e)
	}
	w.active[c.CommandID] = x
	w.queue = append(w.queue, x)
	return w.schedule(ctx)
}

// reused is a command id with other content.
func reused() *Error {
	e := badField("command_id", "expected an id that was not used, or the same content as before")
	e.Details["reason"] = "reused"
	return e
}

// repeat gives the stored answer once more.
func (w *Worker) repeat(c Command, known bridge.Remembered) error {
	result, ok, err := w.store.Result(c.CommandID)
	if err != nil {
		return err
	}
	if !ok {
		e := fault(CodeOutcomeUnknown, "the command has ended with %q; its result is no longer kept", known.Status)
		e.Details["status"] = known.Status
		return w.refuse(c, e)
	}
	_, err = w.put(c.CommandID, false, result)
	return err
}

// immediate tools do not wait for others.
func (w *Worker) immediate(tool string) bool {
	return slices.Contains([]string{ToolPing, ToolCapabilities, ToolStatus}, tool)
}

// prepare checks tool, arguments and policy, and decides what is to be done.
func (w *Worker) prepare(x *execution) *Error {
	c := &x.command
	make, known := tools[c.Tool]
	switch {
	case !known:
		offered := slices.DeleteFunc(Tools(), func(tool string) bool { return !w.offers(tool) })
		e := fault(CodeUnknownTool, "expected one of %s, got %q", strings.Join(offered, ", "), c.Tool)
		e.Details["field"] = "tool"
		return e
	case !w.offers(c.Tool):
		e := fault(CodeUnsupported, "this worker does not offer %s", c.Tool)
		e.Details["tool"] = c.Tool
		return e
	}
	touched, e := make(w, x)
	if e != nil {
		return e
	}
	touched.tool = c.Tool
	return w.uses.check(c, w.policy.class(touched), w.keepApproval)
}

// schedule starts what can be started, in the order in which it came: not more
// than so many at once, and writes to one file one after the other.
func (w *Worker) schedule(ctx context.Context) error {
	var blocked []string
	for _, x := range w.active {
		if x.running {
			blocked = append(blocked, x.keys...)
		}
	}
	for i := 0; i < len(w.queue) && w.running < maxRunning; {
		x := w.queue[i]
		if slices.ContainsFunc(x.keys, func(key string) bool { return slices.Contains(blocked, key) }) {
			blocked = append(blocked, x.keys...) // later ones wait for it
			i++
			continue
		}
		w.queue = slices.Delete(w.queue, i, i+1)
		blocked = append(blocked, x.keys...)
		if err := w.start(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

func (w *Worker) start(ctx context.Context, x *execution) error {
	if x.effect {
		m := bridge.Remembered{ID: x.command.CommandID, Task: x.command.TaskID, Tool: x.command.Tool, Digest: x.command.digest}
		if err := w.store.Begin(m); err != nil {
			return err
		}
	}
	x.running = true
	w.running++
	x.begun = time.Now()
	inner, stop := context.WithCancelCause(ctx)
	x.stop = stop
	w.jobs.Go(func() {
		o := x.do(inner, x)
		w.call(func() {
			stop(nil)
			w.finished(ctx, x, o)
		})
	})
	return nil
}

// finished takes the outcome of an execution.
func (w *Worker) finished(ctx context.Context, x *execution, o outcome) {
	w.running--
	delete(w.active, x.command.CommandID)
	err := w.answer(x, o)
	if p := w.processOf(x.command.CommandID); err == nil && (p == nil || !p.running()) {
		err = w.ended(x.command.CommandID)
	}
	if err == nil && ctx.Err() == nil {
		err = w.schedule(ctx)
	}
	if err != nil {
		w.fail(err)
	}
}
