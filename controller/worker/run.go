package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-shellwords"

	"prp/controller"
	"prp/controller/bridge"
	"prp/protocol"
)

const (
	// cancelGrace is how long a command has after a graceful cancel, and
	// forceGrace after a forced one or after its time is up, before SIGKILL.
	cancelGrace = 3 * time.Second
	forceGrace  = time.Second
	// retainRun bounds what is kept of the stream of a run, in bytes: the
	// output is kept elsewhere.
	retainRun = 1 << 20
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
	env  []string
	// turn is the payload of turn.start: argv and stdin.
	turn json.RawMessage
	// limit bounds the run; 0 is no limit.
	limit time.Duration
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
		spec.limit = x.command.Timeout
		x.do = func(ctx context.Context, x *execution) outcome { return w.runForeground(ctx, x, spec) }
	}
	return subject{argv: spec.argv, paths: []string{spec.dir}}, nil
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
	s.turn = encodeTurn(s.argv, args.Stdin)
	if len(s.turn) > maxTurn {
		return s, badField("args.stdin", "expected argv and stdin of at most %d bytes as JSON, got %d", maxTurn, len(s.turn))
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
	for name, value := range args.Env {
		if !envName.MatchString(name) || strings.ContainsAny(value, "\n\r\x00") {
			return s, badField("args.env", "expected names of letters, digits and _, and values of one line, got %q", name)
		}
		s.env = append(s.env, name+"="+value)
	}
	slices.Sort(s.env)
	return s, nil
}

// encodeTurn makes the payload that has a command harness run a program.
func encodeTurn(argv []string, stdin *string) json.RawMessage {
	b := append([]byte(`{"turnId":`), protocol.AppendString(nil, turnID)...)
	b = protocol.AppendString(append(b, `,"text":`...), argv[0])
	for i, word := range argv {
		b = append(b, [...]string{`,"argv":[`, `,`}[min(i, 1)]...)
		b = protocol.AppendString(b, word)
	}
	b = append(b, ']')
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

// launcher starts runs.
type launcher struct {
	// runner and harness are command lines, env the environment of the runner
	// and commandEnv what is added to it for the command.
	runner          []string
	harness         string
	env, commandEnv []string
	// temp is a folder for a file with the environment.
	temp string
	mask *bridge.Masker
	// jobs counts runners that have not ended yet; nil counts none.
	jobs *sync.WaitGroup
}

func (w *Worker) launcher() launcher {
	return launcher{
		runner: w.cfg.Runner, harness: w.cfg.Harness, env: w.cfg.Env, commandEnv: w.cfg.CommandEnv,
		temp: filepath.Join(w.cfg.Dir, tempDir), mask: w.mask, jobs: &w.jobs,
	}
}

// run is a command under its runner.
type run struct {
	client *controller.Client
	env    string // a file, removed once it was read
	// over is closed when the run is: its terminal was read, so nothing of the
	// command lives, or its runner has died. Gone is closed when the runner
	// has ended as well, which is not waited for before the answer.
	over, gone chan struct{}
	last       *protocol.Terminal // set before over is closed
}

// launch starts a command under a runner of its own. Seen is called with each
// event, by one goroutine, until the run is over.
func (l launcher) launch(spec runSpec, seen func(*protocol.Event)) (*run, error) {
	r := &run{over: make(chan struct{}), gone: make(chan struct{})}
	argv := append(slices.Clone(l.runner),
		"--clock", "system", "--cwd", spec.dir, "--harness", l.harness,
		"--cancel-grace-ms", milliseconds(cancelGrace), "--shutdown-grace-ms", milliseconds(forceGrace),
		"--run-timeout-ms", milliseconds(spec.limit))
	// Values never stand in arguments, and those of a command never in the
	// runner's own environment.
	if env := append(slices.Clone(l.commandEnv), spec.env...); len(env) > 0 {
		var err error
		if r.env, err = writeEnv(l.temp, env); err != nil {
			return nil, err
		}
		argv = append(argv, "--env-file", r.env)
	}
	decoder := protocol.NewDecoder()
	ended := make(chan *protocol.Terminal, 1)
	client, err := controller.Start(context.Background(), controller.Config{
		Argv: argv, Env: l.env, MaxRetainedBytes: retainRun,
		Tap: func(line []byte) {
			m, err := decoder.Stream(line)
			if err != nil || m.Event == nil {
				return // the client sees it as well
			}
			seen(m.Event)
			if m.Event.EventType == protocol.EventRunTerminal {
				t := new(protocol.Terminal)
				if json.Unmarshal(m.Event.Payload, t) == nil {
					ended <- t // the first is the only one
				}
			}
		},
	})
	if err != nil {
		r.removeEnv()
		return nil, err
	}
	r.client = client
	if l.jobs != nil {
		l.jobs.Go(func() { r.follow(spec, ended) })
	} else {
		go r.follow(spec, ended)
	}
	return r, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func writeEnv(dir string, env []string) (string, error) {
	f, err := os.CreateTemp(dir, envPrefix)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(strings.Join(env, "\n") + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func (r *run) removeEnv() {
	if r.env != "" {
		os.Remove(r.env)
	}
}

// follow sets the run going and closes the client when it has ended.
func (r *run) follow(spec runSpec, ended <-chan *protocol.Terminal) {
	defer close(r.gone)
	defer r.removeEnv()
	defer r.client.Close()
	ctx, stop := context.WithTimeout(context.Background(), 2*orderWait)
	defer stop()
	going := make(chan error, 1)
	go func() { going <- r.setGoing(ctx, spec) }()
	for {
		select {
		case err := <-going:
			going = nil
			if err != nil {
				// The run cannot go on; its terminal says why.
				go r.client.Close()
			}
			continue
		case r.last = <-ended:
		case <-r.client.Done():
			select { // the client may be done before its last line is seen here
			case r.last = <-ended:
			default:
			}
		}
		close(r.over)
		return
	}
}

// setGoing sends the three commands of a run without waiting in between, then
// waits for their receipts.
func (r *run) setGoing(ctx context.Context, spec runSpec) error {
	var receipts []func(context.Context) (protocol.Receipt, error)
	for _, c := range []controller.Command{
		{Type: protocol.RunPrepare}, {Type: protocol.SessionOpen}, {Type: protocol.TurnStart, Payload: spec.turn},
	} {
		wait, err := r.client.Submit(ctx, c)
		if err != nil {
			return err
		}
		receipts = append(receipts, wait)
	}
	for i, wait := range receipts {
		_, err := wait(ctx)
		if i == 0 {
			r.removeEnv() // it was read, or never will be
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// terminal waits for the end of the run, when nothing of the command lives any
// more; nil where its runner died without one.
func (r *run) terminal() *protocol.Terminal {
	<-r.over
	return r.last
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

func (w *Worker) runForeground(ctx context.Context, x *execution, spec runSpec) outcome {
	seen := newWatched(w.mask)
	r, err := w.launcher().launch(spec, func(e *protocol.Event) { seen.apply(e) })
	if err != nil {
		return failed(fault(CodeNotStarted, "the runner could not be started: %s", err))
	}
	go r.obey(ctx, x)
	return seen.ended(r.terminal(), spec.limit.String())
}
