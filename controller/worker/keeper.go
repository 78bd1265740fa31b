package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"prp/controller/bridge"
)

// maxOrder bounds what a keeper reads, in bytes: a frame, which JSON may make
// six times as long, and what the worker adds.
const maxOrder = 16 << 20

// keepOrder is what a worker tells its keeper, on its stdin: it has secrets.
type keepOrder struct {
	// Dir is the folder of the process, Status what is known of it.
	Dir    string        `json:"dir"`
	Status processStatus `json:"status"`

	// Turn is the payload of turn.start, Cwd the working folder.
	Turn json.RawMessage `json:"turn"`
	Cwd  string          `json:"cwd"`

	Runner  []string `json:"runner"`
	Harness string   `json:"harness"`
	Env     []string `json:"env"`
	Secrets []string `json:"secrets"`
}

// keepAnswer is what a keeper says once: that the process runs, or how its
// start has ended.
type keepAnswer struct {
	Started bool      `json:"started"`
	Status  Status    `json:"status,omitempty"`
	Error   *Error    `json:"error,omitempty"`
	Result  ranResult `json:"result"`
}

// Keep is the work of a process that watches over a command for a worker that
// may end before it: it takes its order from in, starts the command under a
// runner, says on out how that went, closes out, and keeps output and state in
// the folder of the process until the command has ended. It blocks until then.
//
// Of the signals that the caller hands on, SIGTERM ends the command gracefully
// and SIGINT at once; others change nothing. Where the worker is gone before it
// was told of the start, the command is ended. Where the keeper itself is
// killed, the runner ends the command.
func Keep(in io.Reader, out io.WriteCloser, signals <-chan os.Signal) error {
	defer out.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxOrder+1))
	if err != nil {
		return err
	}
	var o keepOrder
	if len(text) > maxOrder || json.Unmarshal(text, &o) != nil || o.Dir == "" || len(o.Turn) == 0 || len(o.Runner) == 0 {
		return errors.New("expected the order of a worker on stdin")
	}
	p := &background{id: o.Status.ProcessID, dir: o.Dir}
	p.record = processRecord{processStatus: o.Status, Owners: []identity{identify(os.Getpid())}}
	p.save()
	l := &launcher{runner: o.Runner, harness: o.Harness, env: o.Env, dir: o.Cwd}
	r, seen, begun, err := p.start(l, bridge.NewMasker(o.Secrets), runSpec{turn: o.Turn})
	if err != nil {
		return say(out, keepAnswer{Status: StatusError, Error: fault(CodeNotStarted, "the runner could not be started: %s", err)})
	}
	defer func() { <-r.gone }()
	p.mu.Lock()
	p.record.Owners = append(p.record.Owners, identify(r.client.PID()))
	p.save()
	p.mu.Unlock()
	if !r.watch(begun, signals, func() error { return say(out, keepAnswer{Started: true}) }) {
		o := seen.ended(r.terminal())
		ran, _ := o.result.(ranResult)
		return say(out, keepAnswer{Status: o.status, Error: o.err, Result: ran})
	}
	p.exited(r.terminal())
	return nil
}

// say writes the one answer.
func say(out io.WriteCloser, a keepAnswer) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if _, err := out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("the worker is gone: %w", err)
	}
	return out.Close()
}

// watch waits for the end of a run, obeys signals, and tells its start. It
// reports whether the command has run.
func (r *run) watch(begun <-chan struct{}, signals <-chan os.Signal, tell func() error) (ran bool) {
	for {
		select {
		case <-begun:
			begun, ran = nil, true
			if tell() != nil {
				go r.cancel(true)
			}
		case s := <-signals:
			if s == signalGraceful || s == signalForce {
				go r.cancel(s == signalForce)
			}
		case <-r.over:
			if begun == nil {
				return true
			}
			select {
			case <-begun: // a short one
				ran = true
				_ = tell() // nothing is left to be ended
			default:
			}
			return ran
		}
	}
}
