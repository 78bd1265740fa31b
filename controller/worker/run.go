package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-shellwords"

	"prp/protocol"
)

const (
	// cancelGrace is how long a command has after a graceful cancel, and
	// forceGrace after a forced one or after its time is up, before SIGKILL.
	cancelGrace = 3 * time.Second
	forceGrace  = time.Second
	// orderWait bounds how long a runner may take to answer a command.
	orderWait = 30 * time.Second
	// maxWords bounds the words of a command.
	maxWords = 10_000
	turnID   = "turn_1"
	// maxTurn bounds the payload of turn.start, in bytes: the line around it
	// has to fit into the runner's bound.
	maxTurn = protocol.DefaultCommandLine - 4<<10
)

// runArgs are the arguments of command.run (row 8).
type runArgs struct {
	Argv       []string          `json:"argv,omitempty"`
	Command    string            `json:"command,omitempty"`
	Cwd        string            `json:"cwd,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Stdin      *string           `json:"stdin,omitempty"`
	Background bool              `json:"background,omitempty"`
	// Keep asks for a background process that outlives the worker.
	Keep bool `json:"keep,omitempty"`
}

// runSpec is a command that was checked.
type runSpec struct {
	argv []string
	dir  string
	// turn is the payload of turn.start: what is run, where, and what it sees.
	turn json.RawMessage
}

func makeRun(w *Worker, x *execution) (subject, *Error) {
	var args runArgs
	if e := decodeArgs(&x.command, &args); e != nil {
		return subject{}, e
	}
	spec, e := w.spec(args)
	if e != nil {
		return subject{}, e
	}
	if x.effect, x.background = true, args.Background; x.background && w.processCount() >= maxProcesses {
		return subject{}, fault(CodeBusy, "%d processes run in the background already", maxProcesses)
	}
	switch {
	case args.Keep:
		x.do = func(ctx context.Context, x *execution) outcome { return w.runKept(ctx, x, spec) }
	case args.Background:
		x.do = func(ctx context.Context, x *execution) outcome { return w.runBackground(ctx, x, spec) }
	default:
		x.do = func(ctx context.Context, x *execution) outcome { return w.runForeground(ctx, x, spec) }
	}
	return subject{argv: spec.argv, env: slices.Collect(maps.Keys(args.Env)), paths: []string{spec.dir}}, nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (w *Worker) spec(args runArgs) (runSpec, *Error) {
	s := runSpec{argv: args.Argv}
	switch {
	case args.Keep && !args.Background:
		return s, badField("args.keep", "expected it with background, got it without")
	case args.Keep && !w.canKeep():
		e := fault(CodeUnsupported, "a process cannot outlive the worker here")
		e.Details["field"] = "args.keep"
		return s, e
	case (len(args.Argv) > 0) == (args.Command != ""):
		return s, badField("args.argv", "expected argv or command, got both or none")
	case args.Command != "":
		words, err := split(args.Command)
		if err != nil {
			return s, badField("args.command", "%s", err)
		}
		s.argv = words
	}
	if s.argv[0] == "" || len(s.argv) > maxWords || slices.ContainsFunc(s.argv, hasNUL) {
		return s, badField("args.argv", "expected a program and at most %d words without a NUL", maxWords)
	}
	cwd := args.Cwd
	if cwd == "" {
		cwd = "."
	}
	dir, err := w.space.Folder(cwd)
	if err != nil {
		return s, fromFiles(err)
	}
	s.dir = dir
	env := slices.Clone(w.cfg.CommandEnv)
	for _, name := range slices.Sorted(maps.Keys(args.Env)) {
		if value := args.Env[name]; !envName.MatchString(name) || hasNUL(value) {
			return s, badField("args.env", "expected names of letters, digits and _, and values without a NUL, got %q", name)
		}
		env = append(env, name+"="+args.Env[name])
	}
	s.turn = encodeTurn(s.argv, s.dir, env, args.Stdin)
	if len(s.turn) > maxTurn {
		return s, badField("args.stdin", "expected argv, env and stdin of at most %d bytes as JSON, got %d", maxTurn, len(s.turn))
	}
	return s, nil
}

// encodeTurn makes the payload that has a command harness run a program. Env is
// NAME=VALUE each, or NAME for what is taken away; a later one replaces an earlier.
func encodeTurn(argv []string, dir string, env []string, stdin *string) json.RawMessage {
	b := append([]byte(`{"turnId":`), protocol.AppendString(nil, turnID)...)
	b = protocol.AppendString(append(b, `,"text":`...), argv[0])
	for i, word := range argv {
		b = append(b, [...]string{`,"argv":[`, `,`}[min(i, 1)]...)
		b = protocol.AppendString(b, word)
	}
	b = protocol.AppendString(append(b, `],"cwd":`...), dir)
	values := map[string]*string{} // nil: taken away
	for _, v := range env {
		name, value, ok := strings.Cut(v, "=")
		if values[name] = nil; ok {
			values[name] = &value
		}
	}
	before := `,"env":{`
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b = protocol.AppendString(append(b, before...), name)
		if v := values[name]; v != nil {
			b = protocol.AppendString(append(b, ':'), *v)
		} else {
			b = append(b, ":null"...)
		}
		before = ","
	}
	if len(values) > 0 {
		b = append(b, '}')
	}
	if stdin != nil {
		b = protocol.AppendString(append(b, `,"stdin":`...), *stdin)
	}
	return append(b, '}')
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

// split splits a command line into words. There is no shell: its operators are
// refused, where the parser would stop without an error.
func split(line string) ([]string, error) {
	p := shellwords.NewParser()
	words, err := p.Parse(line)
	switch {
	case err != nil:
		return nil, fmt.Errorf("expected shell words: %w", err)
	case p.Position != -1:
		return nil, fmt.Errorf("expected no operator of a shell, got one at byte %d; use argv with sh -c", p.Position)
	case len(words) == 0:
		return nil, errors.New("expected words, got none")
	}
	return words, nil
}

// cancel asks the run to end.
func (r *run) cancel(force bool) {
	ctx, stop := context.WithTimeout(context.Background(), orderWait)
	defer stop()
	// Rejected is a run that is ending.
	if force {
		_ = r.client.Shutdown(ctx)
	} else {
		_ = r.client.Cancel(ctx)
	}
}

// obey ends the run when its execution is cancelled.
func (r *run) obey(ctx context.Context, x *execution) {
	select {
	case <-ctx.Done():
	case <-r.over:
		return
	}
	if !errors.Is(context.Cause(ctx), errCancelled) {
		r.client.Close() // the worker ends
		return
	}
	// A forced cancel closes force right after it cancels.
	select {
	case <-x.force:
		r.cancel(true)
		return
	default:
		r.cancel(false)
	}
	select {
	case <-x.force:
		r.cancel(true)
	case <-r.over:
	}
}

// expire ends the run when its time is up, counted from when its execution
// began.
func (r *run) expire(x *execution) {
	late := time.NewTimer(time.Until(x.begun.Add(x.command.Timeout)))
	defer late.Stop()
	select {
	case <-late.C:
	case <-r.over:
		return
	}
	r.expired.Store(true)
	r.cancel(true)
	// A runner that does not obey is ended as well, and its command with it.
	stuck := time.NewTimer(orderWait)
	defer stuck.Stop()
	select {
	case <-stuck.C:
		r.client.Close()
	case <-r.over:
	}
}

func (w *Worker) runForeground(ctx context.Context, x *execution, spec runSpec) outcome {
	seen := newWatched(w.mask)
	r, err := w.runs.start(spec, func(e *protocol.Event) { seen.apply(e) })
	if err != nil {
		return failed(fault(CodeNotStarted, "the runner could not be started: %s", err))
	}
	go r.obey(ctx, x)
	go r.expire(x)
	t := r.terminal()
	if t != nil && r.expired.Load() {
		// What came before the time was up is the end that counts.
		switch t.Reconciliation.Reason {
		case protocol.ReasonRunnerShutdown, protocol.ReasonControllerClosed:
			return seen.timedOut(t, x)
		}
	}
	return seen.ended(t)
}
