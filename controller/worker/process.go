package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"prp/controller/bridge"
	"prp/protocol"
)

const (
	// maxProcesses is how many background processes run at once, and
	// maxOutput what is kept of each of their streams, in bytes.
	maxProcesses = 32
	maxOutput    = 64 << 20
)

// States of a background process (row 9).
const (
	stateRunning = "running"
	stateExited  = "exited"
	stateUnknown = "unknown"
)

// background is a background process. The loop owns it, but for what the lock
// guards.
type background struct {
	id, task, command string
	dir               string
	client            *run // nil where there is none, or it has ended
	kept              bool // it outlives the worker
	endedAt           time.Time

	mu     sync.Mutex
	record processRecord
	files  map[string]*output
}

// running tells that the process has not ended, as far as the loop knows.
func (p *background) running() bool { return p.client != nil || p.kept && p.endedAt.IsZero() }

// streams are the two that a process has.
func streams() []string { return []string{protocol.LogStdout, protocol.LogStderr} }

// output is a stream of a process on disk.
type output struct {
	mask *bridge.Stream
	file *os.File
	size int64
}

// add keeps masked text; it returns how much came and whether all was kept.
func (o *output) add(b []byte) (int64, bool) {
	room := max(maxOutput-o.size, 0)
	n, err := o.file.Write(b[:min(int64(len(b)), room)])
	o.size += int64(n)
	return int64(len(b)), err == nil && n == len(b)
}

// start starts a process that writes to p. Begun is closed once it runs.
func (p *background) start(l *launcher, mask *bridge.Masker, spec runSpec) (r *run, seen *watched, begun <-chan struct{}, err error) {
	if err := p.openFiles(mask); err != nil {
		return nil, nil, nil, err
	}
	running := make(chan struct{})
	seen = newWatched(mask)
	r, err = l.start(spec, func(e *protocol.Event) {
		started := seen.started
		stream, delta := seen.apply(e)
		if delta != "" {
			p.output(stream, delta)
		}
		if seen.started && !started {
			p.started(seen.pid, seen.startedAt)
			close(running)
		}
	})
	return r, seen, running, err
}

// runBackground starts a command and answers once it runs.
func (w *Worker) runBackground(ctx context.Context, x *execution, spec runSpec) outcome {
	p, err := w.newBackground(x)
	if err != nil {
		return failed(fault(CodeInternal, "the output cannot be kept: %s", err))
	}
	r, seen, begun, err := p.start(w.runs, w.mask, spec)
	if err != nil {
		p.remove()
		return failed(fault(CodeNotStarted, "the runner could not be started: %s", err))
	}
	late := time.NewTimer(x.command.Timeout)
	defer late.Stop()
	var why error
	select {
	case <-begun:
	case <-r.over:
	case <-late.C:
		why = errTimeout
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	if why != nil {
		r.cancel(true)
		<-r.over // it may have begun: the answer comes when it is gone
	}
	if why != nil || !isClosed(begun) {
		o := seen.ended(r.terminal())
		p.remove()
		if errors.Is(why, errTimeout) {
			return tooLate(x)
		}
		return o
	}
	w.call(func() {
		w.keep(p, r)
		p.obey(ctx, x)
	})
	s := p.snapshot()
	return succeeded(ranResult{ProcessID: p.id, PID: s.PID, StartedAt: s.StartTime})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// tooLate is a command whose time is up.
func tooLate(x *execution) outcome {
	return outcome{status: StatusTimeout, err: expired("%s did not end within %s", x.command.Tool, x.command.Timeout)}
}

// newBackground makes the folder of a process.
func (w *Worker) newBackground(x *execution) (*background, error) {
	p := &background{id: "proc_" + randomID(), task: x.command.TaskID, command: x.command.CommandID}
	p.dir = filepath.Join(w.cfg.Dir, processesDir, p.id)
	p.record.processStatus = processStatus{ProcessID: p.id, CommandID: p.command, TaskID: p.task, State: stateRunning}
	return p, os.Mkdir(p.dir, 0o700)
}

func (p *background) openFiles(mask *bridge.Masker) error {
	p.files = map[string]*output{}
	for _, stream := range streams() {
		f, err := os.OpenFile(filepath.Join(p.dir, stream), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		p.files[stream] = &output{mask: mask.Stream(), file: f}
	}
	return nil
}

func (p *background) remove() {
	for _, o := range p.files {
		o.file.Close()
	}
	_ = os.RemoveAll(p.dir) // what stays is found at the next start
}

// output keeps a piece of output.
func (p *background) output(stream, delta string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.files[stream]; o != nil {
		p.count(stream, o, o.mask.Add([]byte(delta)))
	}
}

func (p *background) count(stream string, o *output, b []byte) {
	n, whole := o.add(b)
	at := &p.record.StdoutBytes
	if stream == protocol.LogStderr {
		at = &p.record.StderrBytes
	}
	*at += n
	p.record.Truncated = p.record.Truncated || !whole
}

func (p *background) started(pid int64, at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record.PID, p.record.StartTime = pid, at
	p.save()
}

// keep remembers a process that runs, and takes note of its end.
func (w *Worker) keep(p *background, r *run) {
	p.client = r
	w.processes[p.id] = p
	w.jobs.Go(func() {
		t := r.terminal()
		p.exited(t)
		w.call(func() {
			p.client, p.endedAt = nil, time.Now()
			if err := w.ended(p.command); err != nil {
				w.fail(err)
			}
		})
	})
}

// obey ends a process whose command was cancelled while it began to run: the
// cancel that waits for the command then waits for the process.
func (p *background) obey(ctx context.Context, x *execution) {
	if errors.Is(context.Cause(ctx), errCancelled) {
		p.end(x.forced)
	}
}

func (p *background) exited(t *protocol.Terminal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for stream, o := range p.files {
		p.count(stream, o, o.mask.End())
		o.file.Close()
	}
	p.record.State = stateUnknown
	if t != nil && t.Reconciliation.ProcessExit != nil {
		p.record.State, p.record.Reason = stateExited, t.Reconciliation.Reason
		p.record.ExitCode, p.record.Signal = t.Reconciliation.ProcessExit.ExitCode, t.Reconciliation.ProcessExit.Signal
	}
	p.save()
}

// end ends a process that runs; it does not wait.
func (p *background) end(force bool) {
	switch {
	case p.client != nil:
		go p.client.cancel(force)
	case p.kept:
		p.mu.Lock()
		keeper := p.record.Owners[0] // a runner without its keeper ends by itself
		p.mu.Unlock()
		s := signalGraceful
		if force {
			s = signalForce
		}
		keeper.signal(s)
	}
}

// processCount counts the processes in the background, and those that start.
func (w *Worker) processCount() (n int) {
	for _, p := range w.processes {
		if p.running() {
			n++
		}
	}
	for _, x := range w.active {
		if x.background {
			n++
		}
	}
	return n
}

// dropProcesses forgets those that have ended long ago.
func (w *Worker) dropProcesses() {
	for id, p := range w.processes {
		if !p.running() && time.Since(p.endedAt) >= w.cfg.KeepProcess {
			_ = os.RemoveAll(p.dir)
			delete(w.processes, id)
		}
	}
}
