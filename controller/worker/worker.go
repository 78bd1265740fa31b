package worker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"prp/controller/bridge"
	"prp/controller/files"
	"prp/protocol"
	"prp/protocol/journal"
)

// Worker is a local worker.
type Worker struct {
	cfg      Config
	instance string
	link     *bridge.Link
	outbox   *bridge.Outbox
	store    *bridge.Store
	space    *files.Space
	mask     *bridge.Masker
	token    atomic.Pointer[string] // the one that was used last
	policy   Policy
	uses     approvals
	usesLog  *journal.Journal

	commands chan inbound // from the connection
	calls    chan func()  // for the loop, from executions
	ignored  atomic.Int64
	began    time.Time

	// What follows belongs to the loop.
	active    map[string]*execution // running and queued, by command id
	queue     []*execution
	running   int
	cancels   []*cancelling
	broken    error // why the state cannot be written, after which all ends
	processes map[string]*background
	jobs      sync.WaitGroup

	runs *launcher
}

// execution is a command on its way.
type execution struct {
	command Command
	begun   time.Time // of the execution, with its monotonic clock
	// keys are the files that it writes: those of two that run never meet.
	keys []string
	// do executes it.
	do func(ctx context.Context, x *execution) outcome
	// effect tells that it is recorded before it begins.
	effect bool
	// background tells that it starts a process in the background.
	background bool

	running bool
	stop    context.CancelCauseFunc
	// force is closed by a forced cancel.
	force  chan struct{}
	forced bool
}

// errCancelled is the cause of an execution that task.cancel ends.
var errCancelled = errors.New("the task was cancelled")

// New opens the worker's state. What a worker before it left unfinished is
// brought in order: patches are undone, and commands that had begun are
// answered with OUTCOME_UNKNOWN once there is a connection.
func New(cfg Config) (*Worker, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	w := &Worker{
		cfg: cfg, instance: randomID(), mask: bridge.NewMasker(cfg.Secrets), began: time.Now(),
		commands: make(chan inbound), calls: make(chan func()),
		active: map[string]*execution{}, processes: map[string]*background{},
	}
	w.runs = &launcher{runner: cfg.Runner, harness: cfg.Harness, env: cfg.Env, jobs: &w.jobs, most: maxSpares}
	if len(cfg.Roots) > 0 {
		w.runs.dir = cfg.Roots[0]
	}
	if err := w.open(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *Worker) open() (err error) {
	in := func(name string) string { return filepath.Join(w.cfg.Dir, name) }
	if w.link, err = bridge.NewLink(w.linkConfig()); err != nil {
		return err
	}
	if w.space, err = files.Open(files.Config{Roots: w.cfg.Roots, Dir: in(filesDir), Closed: w.cfg.Dir}); err != nil {
		return err
	}
	if w.policy, err = w.cfg.Policy.resolved(w.space.Locate); err != nil {
		return err
	}
	if w.outbox, err = bridge.OpenOutbox(in(outboxFile), bridge.OutboxConfig{}); err != nil {
		return err
	}
	if w.store, err = bridge.OpenStore(in(commandsFile), bridge.StoreConfig{}); err != nil {
		return err
	}
	if err = w.openApprovals(in(approvalsFile)); err != nil {
		return err
	}
	if err = w.loadProcesses(); err != nil {
		return err
	}
	return w.recover()
}

// maxApproval bounds a line of the approvals, in bytes.
const maxApproval = 64 << 10

func (w *Worker) openApprovals(path string) (err error) {
	w.uses.used = map[string]string{}
	if w.usesLog, err = journal.Open(path); err != nil {
		return err
	}
	return journal.Read(path, maxApproval, func(_ int64, line []byte) error {
		var use [2]string
		err := json.Unmarshal(line, &use)
		w.uses.used[use[0]] = use[1]
		return err
	})
}

// keepApproval records the use of an approval; the lock of the approvals is held.
func (w *Worker) keepApproval(id, use string) error {
	line, err := json.Marshal([2]string{id, use})
	if err != nil {
		return err
	}
	return errors.Join(w.usesLog.Append(append(line, '\n')), w.usesLog.Sync())
}

func (w *Worker) close() {
	if w.space != nil {
		w.space.Close()
	}
	if w.outbox != nil {
		w.outbox.Close()
	}
	if w.store != nil {
		w.store.Close()
	}
	if w.usesLog != nil {
		w.usesLog.Close()
	}
}

// recover finishes what the last worker did not.
func (w *Worker) recover() error {
	undone, err := w.space.Recover()
	if err != nil {
		return err
	}
	if undone > 0 {
		w.cfg.Report(fmt.Sprintf("undid %d changes that were not finished", undone))
	}
	var faults error
	queued := w.outbox.Last() // before anything is queued here
	w.store.Each(func(m bridge.Remembered) {
		switch {
		case !m.Done:
			x := &execution{command: Command{CommandID: m.ID, TaskID: m.Task, Tool: m.Tool, digest: m.Digest}, begun: time.Now()}
			e := fault(CodeOutcomeUnknown, "the worker ended while the command was being executed; it was not run again")
			if p := w.processOf(m.ID); p != nil && p.running() {
				e.Details["process_id"] = p.id // it was kept, and its start not yet told
			}
			faults = errors.Join(faults, w.answer(x, failed(e)))
		case m.Seq > queued:
			// It was stored, and the worker ended before it was queued.
			result, ok, err := w.store.Result(m.ID)
			if ok {
				_, err = w.put(m.ID, false, result)
			}
			faults = errors.Join(faults, err)
		}
	})
	return faults
}

func randomID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails (package crypto/rand)
	return hex.EncodeToString(b[:])
}

// Run connects and serves until ctx ends. Then running commands and background
// processes are ended; their results are sent at the next start. It blocks
// until nothing is left and returns the cause of ctx, or why the state on disk
// cannot be written.
func (w *Worker) Run(ctx context.Context) error {
	defer w.close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var linked sync.WaitGroup
	linked.Go(func() { _ = w.link.Run(ctx, w.serve) })
	tick := time.NewTicker(max(w.cfg.KeepProcess/60, time.Millisecond))
	defer tick.Stop()
	look := time.NewTicker(keptEvery)
	defer look.Stop()
	for {
		var kept <-chan time.Time // nobody is woken where nothing is kept
		if w.anyKept() {
			kept = look.C
		}
		select {
		case <-kept:
			if err := w.lookAtKept(); err != nil {
				stop(err)
			}
		case in := <-w.commands:
			if err := w.take(ctx, in); err != nil {
				stop(err)
			}
		case call := <-w.calls:
			if call(); w.broken != nil {
				stop(w.broken)
			}
		case <-tick.C:
			w.dropProcesses()
		case <-ctx.Done():
			linked.Wait()
			w.drain()
			return context.Cause(ctx)
		}
	}
}

// drain ends what runs and keeps its results.
func (w *Worker) drain() {
	for _, p := range w.processes {
		if !p.kept {
			p.end(true)
		}
	}
	w.runs.close()
	w.queue = nil // not begun, so the server may send them again
	done := make(chan struct{})
	go func() {
		w.jobs.Wait()
		close(done)
	}()
	for {
		select {
		case call := <-w.calls:
			call()
		case <-done:
			return
		}
	}
}

// fail has the worker end, since without its state nothing can be promised: an
// id would be given to two commands, or a number to two results. What is not on
// disk is answered after the next start.
func (w *Worker) fail(err error) {
	w.cfg.Report("the state cannot be written: " + err.Error())
	w.broken = errors.Join(w.broken, err)
}

// call has f run by the loop.
func (w *Worker) call(f func()) { w.calls <- f }

// Capabilities is what this worker can do.
func (w *Worker) Capabilities() Capabilities {
	c := Capabilities{WorkerID: w.cfg.ID, Machine: w.cfg.Machine, OS: runtime.GOOS, Version: w.cfg.Version}
	for _, tool := range Tools() {
		if w.offers(tool) {
			c.Capabilities = append(c.Capabilities, tool)
		}
	}
	return c
}

// offers tells whether a tool can be used here at all.
func (w *Worker) offers(tool string) bool {
	switch tool {
	case ToolRead, ToolWrite, ToolSearch, ToolPatch:
		return len(w.cfg.Roots) > 0
	case ToolRun:
		return len(w.cfg.Roots) > 0 && len(w.cfg.Runner) > 0
	}
	return slices.Contains(Tools(), tool)
}

// State is the link's state.
func (w *Worker) State() bridge.LinkState { return w.link.State() }

// put queues a frame of a command.
func (w *Worker) put(id string, soft bool, body []byte) (int64, error) {
	return w.outbox.Put(id, soft, func(seq int64) []byte { return withSeq(body, seq) })
}

// answer stores the result of a command and queues it (remote.md rule 3).
func (w *Worker) answer(x *execution, o outcome) error {
	body := w.envelope(x, o)
	m := bridge.Remembered{
		ID: x.command.CommandID, Task: x.command.TaskID, Tool: x.command.Tool, Digest: x.command.digest,
		Status: string(o.status), Seq: w.outbox.Last() + 1,
	}
	if err := w.store.Finish(m, body); err != nil {
		return err
	}
	_, err := w.put(m.ID, false, body)
	return err
}

// refuse queues an answer that is not stored: the same command may come again.
func (w *Worker) refuse(c Command, e *Error) error {
	x := &execution{command: c, begun: time.Now()}
	_, err := w.put(c.CommandID, false, w.envelope(x, failed(e)))
	return err
}

func (w *Worker) envelope(x *execution, o outcome) []byte {
	finished := time.Now()
	took := finished.Sub(x.begun) // monotonic
	stamp := func(t time.Time) string { return t.UTC().Format(protocol.TimeLayout) }
	c := x.command
	return o.encode(Result{
		CommandID: c.CommandID, TaskID: c.TaskID, Tool: c.Tool,
		StartedAt: stamp(finished.Add(-took)), FinishedAt: stamp(finished), DurationMS: took.Milliseconds(),
	}, w.mask)
}

// fromFiles turns an error of package files into ours.
func fromFiles(err error) *Error {
	var e *files.Error
	var mine *Error
	switch {
	case errors.As(err, &mine):
		return mine
	case errors.As(err, &e):
		out := fault(Code(e.Code), "%s", e.Message)
		out.Details = e.Details
		if wrapped := err.Error(); wrapped != e.Error() { // an undo that failed as well
			out.Details["cause"] = wrapped
		}
		return out
	case errors.Is(err, fs.ErrPermission):
		return fault(Code(files.PermissionDenied), "%s", err)
	}
	return fault(CodeInternal, "%s", err)
}
