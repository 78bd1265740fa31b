package worker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"prp/protocol"
)

const recordFile = "process.json"

// processStatus is what process.status tells of a process (row 9).
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

// processRecord is what is kept of a process on disk.
type processRecord struct {
	processStatus
	// Owners watch over a process that outlives the worker, and end it when
	// they end: its keeper and its runner. It runs while one of them lives.
	Owners []identity `json:"owners,omitempty"`
}

// owned tells whether one of the owners lives.
func (r processRecord) owned() bool { return slices.ContainsFunc(r.Owners, identity.alive) }

// save writes the record; the lock is held. A reader never sees half of it. A
// process whose record cannot be written is not known after a restart.
func (p *background) save() {
	path := filepath.Join(p.dir, recordFile)
	b, err := json.Marshal(p.record)
	if err == nil && os.WriteFile(path+".new", b, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// load reads the record; the lock is held.
func (p *background) load() error {
	b, err := os.ReadFile(filepath.Join(p.dir, recordFile))
	if err != nil {
		return err
	}
	var r processRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	p.record = r
	for name, size := range map[string]*int64{protocol.LogStdout: &p.record.StdoutBytes, protocol.LogStderr: &p.record.StderrBytes} {
		if info, err := os.Stat(filepath.Join(p.dir, name)); err == nil && info.Size() > *size {
			*size = info.Size() // the record is of the start, or of the end
		}
	}
	return nil
}

// snapshot is the status now. That of a process that outlives the worker stands
// in its record.
func (p *background) snapshot() processStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept && p.record.State == stateRunning {
		p.refresh()
	}
	return p.record.processStatus
}

// refresh reads the record of a process that is kept; the lock is held.
func (p *background) refresh() {
	// Asked before the record is read: what has ended has written its end.
	lives := p.record.owned()
	if p.load() == nil && p.record.State == stateRunning && !lives {
		p.record.State = stateUnknown // nobody was left to write it
		p.save()
	}
}

// loadProcesses finds the processes of a worker before this one. They have
// ended with it, but for those that are kept; how is not known where it was
// killed.
func (w *Worker) loadProcesses() error {
	top := filepath.Join(w.cfg.Dir, processesDir)
	entries, err := os.ReadDir(top)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := &background{id: e.Name(), dir: filepath.Join(top, e.Name()), endedAt: time.Now()}
		if p.load() != nil {
			if err := os.RemoveAll(p.dir); err != nil { // it had not begun
				return err
			}
			continue
		}
		p.task, p.command, p.kept = p.record.TaskID, p.record.CommandID, len(p.record.Owners) > 0
		switch {
		case p.kept && p.record.owned():
			p.endedAt = time.Time{}
		case p.kept:
			p.snapshot()
		case p.record.State == stateRunning:
			p.record.State = stateUnknown
			p.save()
		}
		w.processes[p.id] = p
	}
	return nil
}
