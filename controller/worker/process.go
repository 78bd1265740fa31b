package worker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"prp/controller/bridge"
	"prp/protocol"
)

const (
	// maxProcesses is how many background processes run at once, and
	// maxOutput what is kept of each of their streams, in bytes.
	maxProcesses = 32
	maxOutput    = 64 << 20
	// maxRead bounds what one process.status reads, in bytes.
	maxRead = 256 << 10

	metaFile = "process.json"
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
	client            *run // nil once it has ended
	cancelled         bool // by task.cancel
	endedAt           time.Time

	mu     sync.Mutex
	status processStatus
	files  map[string]*output
}

// processStatus is what is known of a process; it is also kept on disk.
type processStatus struct {
	ProcessID string          `json:"process_id"`
	CommandID string          `json:"command_id"`
	TaskID    string          `json:"task_id"`
	State     string          `json:"state"`
	PID       int64           `json:"pid"`
	StartTime string          `json:"start_time"`
	ExitCode  *int            `json:"exit_code"`
	Signal    *int            `json:"signal"`
	Reason    protocol.Reason `json:"reason,omitempty"`
	// StdoutBytes and StderrBytes count what came, masked; Truncated tells
	// that not all of it is kept.
	StdoutBytes int64 `json:"stdout_bytes"`
	StderrBytes int64 `json:"stderr_bytes"`
	Truncated   bool  `json:"truncated"`
}

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

// runBackground starts a command and answers once it runs.
func (w *Worker) runBackground(ctx context.Context, x *execution, spec runSpec) outcome {
	p, err := w.newBackground(x)
	if err != nil {
		return failed(fault(CodeInternal, "the output cannot be kept: %s", err))
	}
	seen := newWatched(w.mask)
	begun := make(chan struct{})
	r, err := w.launch(spec, func(e *protocol.Event) {
		started := seen.started
		stream, delta := seen.apply(e)
		if delta != "" {
			p.output(stream, delta)
		}
		if seen.started && !started {
			p.started(seen.pid, seen.startedAt)
			close(begun)
		}
	})
	if err != nil {
		p.remove()
		return failed(fault(CodeNotStarted, "the runner could not be started: %s", err))
	}
	late := time.NewTimer(x.command.Timeout)
	defer late.Stop()
	select {
	case <-begun:
	case <-r.over:
	case <-late.C:
		r.cancel(true)
	case <-ctx.Done():
		r.cancel(true)
	}
	select {
	case <-begun:
	default:
		o := seen.ended(r.terminal(), x.command.Timeout.String())
		p.remove()
		return o
	}
	w.call(func() { w.keep(p, r) })
	s := p.snapshot()
	return succeeded(ranResult{ProcessID: p.id, PID: s.PID, StartedAt: s.StartTime})
}

func (w *Worker) newBackground(x *execution) (*background, error) {
	p := &background{id: "proc_" + randomID(), task: x.command.TaskID, command: x.command.CommandID, files: map[string]*output{}}
	p.dir = filepath.Join(w.cfg.Dir, processesDir, p.id)
	p.status = processStatus{ProcessID: p.id, CommandID: p.command, TaskID: p.task, State: stateRunning}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	for _, stream := range []string{protocol.LogStdout, protocol.LogStderr} {
		f, err := os.OpenFile(filepath.Join(p.dir, stream), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			p.remove()
			return nil, err
		}
		p.files[stream] = &output{mask: w.mask.Stream(), file: f}
	}
	return p, nil
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
	at := &p.status.StdoutBytes
	if stream == protocol.LogStderr {
		at = &p.status.StderrBytes
	}
	*at += n
	p.status.Truncated = p.status.Truncated || !whole
}

func (p *background) started(pid int64, at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.PID, p.status.StartTime = pid, at
	p.save()
}

// save writes what is known; the lock is held. A process whose record cannot
// be written is not known after a restart.
func (p *background) save() {
	if b, err := json.Marshal(p.status); err == nil {
		_ = os.WriteFile(filepath.Join(p.dir, metaFile), b, 0o600)
	}
}

func (p *background) snapshot() processStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
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
				w.cfg.Report("the state cannot be written: " + err.Error())
			}
		})
	})
}

func (p *background) exited(t *protocol.Terminal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for stream, o := range p.files {
		p.count(stream, o, o.mask.End())
		o.file.Close()
	}
	p.status.State = stateUnknown
	if t != nil && t.Reconciliation.ProcessExit != nil {
		p.status.State, p.status.Reason = stateExited, t.Reconciliation.Reason
		p.status.ExitCode, p.status.Signal = t.Reconciliation.ProcessExit.ExitCode, t.Reconciliation.ProcessExit.Signal
	}
	p.save()
}

// end ends a process that runs; it does not wait.
func (p *background) end(force bool) {
	if p.client == nil {
		return
	}
	p.cancelled = true
	go p.client.cancel(force)
}

// dropProcesses forgets those that have ended long ago.
func (w *Worker) dropProcesses() {
	for id, p := range w.processes {
		if p.client == nil && time.Since(p.endedAt) >= w.cfg.KeepProcess {
			_ = os.RemoveAll(p.dir)
			delete(w.processes, id)
		}
	}
}

// loadProcesses finds the processes of a worker before this one. They have
// ended with it; how is not known where it was killed.
func (w *Worker) loadProcesses() error {
	top := filepath.Join(w.cfg.Dir, processesDir)
	entries, err := os.ReadDir(top)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := &background{id: e.Name(), dir: filepath.Join(top, e.Name()), endedAt: time.Now()}
		b, err := os.ReadFile(filepath.Join(p.dir, metaFile))
		if err != nil || json.Unmarshal(b, &p.status) != nil {
			if err := os.RemoveAll(p.dir); err != nil { // it had not begun
				return err
			}
			continue
		}
		p.task, p.command = p.status.TaskID, p.status.CommandID
		if p.status.State == stateRunning {
			p.status.State = stateUnknown
			p.save()
		}
		for name, size := range map[string]*int64{protocol.LogStdout: &p.status.StdoutBytes, protocol.LogStderr: &p.status.StderrBytes} {
			if info, err := os.Stat(filepath.Join(p.dir, name)); err == nil && info.Size() > *size {
				*size = info.Size()
			}
		}
		w.processes[p.id] = p
	}
	return nil
}

// statusArgs are the arguments of process.status.
type statusArgs struct {
	ProcessID string `json:"process_id"`
	// Stream is stdout where it is empty. Offset is where to read from, and
	// MaxBytes how much; 0 reads nothing.
	Stream   string `json:"stream,omitempty"`
	Offset   int64  `json:"offset,omitempty"`
	MaxBytes int64  `json:"max_bytes,omitempty"`
}

// statusResult is the result of process.status.
type statusResult struct {
	processStatus
	Output *processOutput `json:"output"`
}

// processOutput is a part of the output. NextOffset is where to go on.
type processOutput struct {
	Stream     string `json:"stream"`
	Offset     int64  `json:"offset"`
	NextOffset int64  `json:"next_offset"`
	Encoding   string `json:"encoding"`
	Content    string `json:"content"`
}

func makeStatus(w *Worker, x *execution) (subject, *Error) {
	args := statusArgs{Stream: protocol.LogStdout}
	if e := decodeArgs(&x.command, &args); e != nil {
		return subject{}, e
	}
	switch {
	case !slices.Contains([]string{protocol.LogStdout, protocol.LogStderr}, args.Stream):
		return subject{}, badField("args.stream", "expected %q or %q, got %q", protocol.LogStdout, protocol.LogStderr, args.Stream)
	case args.Offset < 0 || args.MaxBytes < 0 || args.MaxBytes > maxRead:
		return subject{}, badField("args.max_bytes", "expected an offset from 0 and max_bytes from 0 to %d", maxRead)
	}
	x.do = func(context.Context, *execution) outcome {
		p := w.processes[args.ProcessID]
		if p == nil {
			e := fault(CodeProcessNotFound, "there is no process %q, or it has ended more than %s ago", args.ProcessID, w.cfg.KeepProcess)
			e.Details["field"] = "args.process_id"
			return failed(e)
		}
		result := statusResult{processStatus: p.snapshot()}
		if args.MaxBytes > 0 {
			part, err := p.read(args)
			if err != nil {
				return failed(fault(CodeInternal, "the output cannot be read: %s", err))
			}
			result.Output = part
		}
		return succeeded(result)
	}
	return subject{}, nil
}

// read reads a part of the output, cut at a character.
func (p *background) read(args statusArgs) (*processOutput, error) {
	f, err := os.Open(filepath.Join(p.dir, args.Stream))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(max(info.Size()-args.Offset, 0), args.MaxBytes))
	n, err := f.ReadAt(b, args.Offset)
	if n < len(b) {
		return nil, errors.Join(errors.New("expected more output"), err)
	}
	// The stream is valid UTF-8; only the part may begin or end inside a
	// character.
	for cut := 0; cut < utf8.UTFMax-1 && len(b) > 1 && !utf8.Valid(b); cut++ {
		b = b[:len(b)-1]
	}
	out := &processOutput{Stream: args.Stream, Offset: args.Offset, NextOffset: args.Offset + int64(len(b)), Encoding: "utf-8", Content: string(b)}
	if !utf8.Valid(b) {
		out.Encoding, out.Content = "base64", base64.StdEncoding.EncodeToString(b)
	}
	return out, nil
}
