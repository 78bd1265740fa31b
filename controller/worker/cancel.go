package worker

import (
	"slices"

	"prp/controller/bridge"
	"prp/protocol"
)

// Modes of a cancel (row 10).
const (
	cancelGraceful = "graceful"
	cancelForce    = "force"
)

// cancelArgs are the arguments of task.cancel.
type cancelArgs struct {
	TaskID    string `json:"task_id"`
	CommandID string `json:"command_id,omitempty"`
	Mode      string `json:"mode,omitempty"`
}

// Outcomes of a cancel.
const (
	outcomeCancelled = "cancelled"
	outcomeFinished  = "already_finished"
	outcomeNotFound  = "not_found"
)

// cancelResult is the result of task.cancel.
type cancelResult struct {
	// CommandID and Outcome are those of the command that was named, else the
	// Outcome is that of the whole task: cancelled where one command was.
	CommandID string            `json:"command_id,omitempty"`
	Outcome   string            `json:"outcome"`
	Commands  []cancelledResult `json:"commands"`
	// Omitted counts commands that ended before and are not in the list, since
	// it would not fit into a frame.
	Omitted int `json:"omitted,omitempty"`
}

type cancelledResult struct {
	CommandID string `json:"command_id"`
	Outcome   string `json:"outcome"`
}

// cancelling is a cancel that waits for the end of what it cancels.
type cancelling struct {
	x       *execution
	args    cancelArgs
	waiting map[string]bool // command ids
}

func makeCancel(_ *Worker, x *execution) (subject, *Error) {
	_, e := decodeCancel(&x.command)
	return subject{}, e
}

func decodeCancel(c *Command) (cancelArgs, *Error) {
	args := cancelArgs{Mode: cancelGraceful}
	if e := decodeArgs(c, &args); e != nil {
		return args, e
	}
	switch {
	case args.TaskID == "":
		return args, badField("args.task_id", "expected a task, got none")
	case args.Mode != cancelGraceful && args.Mode != cancelForce:
		return args, badField("args.mode", "expected %q or %q, got %q", cancelGraceful, cancelForce, args.Mode)
	}
	return args, nil
}

// named tells whether a cancel means a command.
func (a cancelArgs) named(task, id string) bool {
	return a.TaskID == task && (a.CommandID == "" || a.CommandID == id)
}

// cancel ends the commands and background processes of a task; the reply comes
// when they are gone.
func (w *Worker) cancel(x *execution) error {
	args, _ := decodeCancel(&x.command) // was checked
	k := &cancelling{x: x, args: args, waiting: map[string]bool{}}
	w.active[x.command.CommandID] = x // a second one with its id is no new one
	w.cancels = append(w.cancels, k)
	var queued []*execution
	w.queue = slices.DeleteFunc(w.queue, func(q *execution) bool {
		if !args.named(q.command.TaskID, q.command.CommandID) {
			return false
		}
		queued = append(queued, q)
		return true
	})
	for _, q := range queued {
		delete(w.active, q.command.CommandID)
		o := outcome{status: StatusCancelled, err: fault(CodeCancelled, "the command was cancelled before it began")}
		if err := w.answer(q, o); err != nil {
			return err
		}
	}
	for id, r := range w.active {
		if r.running && args.named(r.command.TaskID, id) {
			k.waiting[id] = true
			r.cancel(args.Mode == cancelForce)
		}
	}
	for _, p := range w.processes {
		if p.running() && args.named(p.task, p.command) {
			k.waiting[p.command] = true
			p.end(args.Mode == cancelForce)
		}
	}
	return w.reply(k)
}

// cancel tells an execution to end; force does so even where it was told before.
func (x *execution) cancel(force bool) {
	x.stop(errCancelled)
	if force && !x.forced {
		x.forced = true
		close(x.force)
	}
}

// ended tells the cancels that a command or its process has ended. A process may
// end before its command has its answer: then this is called again after that,
// since the answer goes before the reply to a cancel (row 10).
func (w *Worker) ended(id string) error {
	if w.active[id] != nil {
		return nil
	}
	for _, k := range slices.Clone(w.cancels) {
		delete(k.waiting, id)
		if err := w.reply(k); err != nil {
			return err
		}
	}
	return nil
}

// reply answers a cancel that waits for nothing any more.
func (w *Worker) reply(k *cancelling) error {
	if len(k.waiting) > 0 {
		return nil
	}
	w.cancels = slices.DeleteFunc(w.cancels, func(other *cancelling) bool { return other == k })
	delete(w.active, k.x.command.CommandID)
	result := cancelResult{CommandID: k.args.CommandID, Outcome: outcomeNotFound, Commands: []cancelledResult{}}
	w.store.Each(func(m bridge.Remembered) {
		if !m.Done || m.Tool == ToolCancel || !k.args.named(m.Task, m.ID) {
			return
		}
		one := cancelledResult{CommandID: m.ID, Outcome: outcomeFinished}
		if m.Status == string(StatusCancelled) || w.wasEnded(m.ID) {
			one.Outcome = outcomeCancelled
		}
		if result.Outcome != outcomeCancelled {
			result.Outcome = one.Outcome
		}
		result.Commands = append(result.Commands, one)
	})
	result.Commands, result.Omitted = fitting(result.Commands)
	return w.answer(k.x, succeeded(result))
}

const (
	// cancelRoom bounds the list of a reply, in bytes; entryRoom is what an
	// entry takes beside its id, of which each byte may take escapedByte.
	cancelRoom  = 512 << 10
	entryRoom   = 64
	escapedByte = 6
)

// fitting leaves out what does not fit into a frame: of a task that has had tens
// of thousands of commands the oldest that had ended before.
func fitting(list []cancelledResult) (kept []cancelledResult, omitted int) {
	keep, room := make([]bool, len(list)), cancelRoom
	for _, outcome := range []string{outcomeCancelled, outcomeFinished} {
		for i := len(list) - 1; i >= 0 && room > 0; i-- {
			if list[i].Outcome == outcome {
				room -= escapedByte*len(list[i].CommandID) + entryRoom
				keep[i] = true
			}
		}
	}
	kept = []cancelledResult{}
	for i, one := range list {
		if keep[i] {
			kept = append(kept, one)
		}
	}
	return kept, len(list) - len(kept)
}

// wasEnded tells whether a background process was ended before it ended itself.
func (w *Worker) wasEnded(command string) bool {
	p := w.processOf(command)
	if p == nil {
		return false
	}
	reason := p.snapshot().Reason
	return reason == protocol.ReasonRunCancelled || reason == protocol.ReasonRunnerShutdown
}

// processOf is the process that a command has started, nil where there is none.
func (w *Worker) processOf(command string) *background {
	for _, p := range w.processes {
		if p.command == command {
			return p
		}
	}
	return nil
}
