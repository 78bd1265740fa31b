package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"prp/controller"
	"prp/protocol"
	"prp/protocol/journal"
)

const (
	turnID = "turn_1"
	// retainRun bounds what is kept of the stream of a run for its driver, in
	// bytes.
	retainRun = 16 << 20
	// orderWait bounds how long a runner may take to answer a command.
	orderWait = 10 * time.Second
)

// launch runs the harness under a runner, from its start to the end of
// everything that it started.
func (w *worker) launch(ctx context.Context, r *prepared) (f facts) {
	f.seen = newWatched()
	tracePath := strings.Join([]string{tracesDir, w.session, "rt_" + fileName(w.cfg.TaskRunID) + ".jsonl"}, "/")
	sink, err := w.openSink(filepath.Join(w.cfg.Dir, filepath.FromSlash(tracePath)), f.seen)
	if err != nil {
		f.fault = w.mask.Load().String(fmt.Sprintf("journal: %s", err))
		return f
	}
	v := newVeil(w.mask.Load(), sink.take)
	// The end of ctx is no end of the client: the run is told to end, and its
	// terminal is waited for.
	cfg := controller.Config{
		Argv: w.runnerArgv(r), Env: w.environment(r), SessionID: w.session, MaxRetainedBytes: retainRun, Tap: v.add,
	}
	if id := w.cfg.TaskRunID; utf8.ValidString(id) && utf8.RuneCountInString(id) <= protocol.MaxRunIDLen {
		cfg.RunID = id // else one is made up
	}
	client, err := controller.Start(context.WithoutCancel(ctx), cfg)
	if err != nil {
		sink.close()
		f.fault = w.mask.Load().String(fmt.Sprintf("the runner could not be started: %s", err))
		return f
	}
	f.ran = true
	unhook := context.AfterFunc(ctx, func() { w.end(ctx, client) })
	asked := ""
	trace, err := client.Drive(context.WithoutCancel(ctx), controller.Scenario{
		TurnID: turnID, Text: r.b.Run.Input, Extra: w.turn(r),
		Answer: func(_ context.Context, q protocol.Request) (json.RawMessage, error) {
			asked = q.Prompt
			return nil, errors.New("nobody is there to answer")
		},
	})
	unhook()
	client.Close() // its error is in the trace
	v.close()
	if sink.close() {
		f.trace = tracePath
	}
	f.terminal = trace.Terminal
	mask := w.mask.Load().String
	switch {
	case errors.Is(err, controller.ErrNotSent):
		f.fault = mask(fmt.Sprintf("The task could not be given to the harness: %s", err))
	case asked != "":
		f.fault = mask(fmt.Sprintf("The harness asked %q, and a task run has nobody who answers.", asked))
	case f.terminal == nil:
		f.fault = mask(fmt.Sprintf("The runner ended without saying how the run ended: %s %s", err, strings.TrimSpace(trace.Stderr)))
	}
	return f
}

// end ends a run for the reason that ctx has.
func (w *worker) end(ctx context.Context, client *controller.Client) {
	order, stop := context.WithTimeout(context.WithoutCancel(ctx), orderWait)
	defer stop()
	command := client.Shutdown
	if errors.Is(context.Cause(ctx), errCancelled) {
		command = client.Cancel
	}
	// Rejected is a run that is ending.
	err := command(order)
	if rejected := new(controller.RejectedError); err != nil && !errors.As(err, &rejected) {
		client.Close()
	}
}

// runnerArgv is the command line of the runner. It has names of variables, never
// a value.
func (w *worker) runnerArgv(r *prepared) []string {
	argv := append(slices.Clone(w.cfg.Runner), "--clock", "system", "--cwd", r.space, "--harness", quote(r.harness))
	for _, v := range w.environment(r) {
		if name, _, _ := strings.Cut(v, "="); name != "PATH" {
			argv = append(argv, "--env-allow", name)
		}
	}
	return argv
}

// quote makes a command line of words, for a reader of shell words.
func quote(words []string) string {
	out := make([]string, 0, len(words))
	for _, word := range words {
		out = append(out, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(out, " ")
}

// environment is that of the runner and of the harness: the later one of two
// values counts, so that no secret variable takes the private folders away.
func (w *worker) environment(r *prepared) []string {
	var env []string
	at := map[string]int{}
	for _, v := range slices.Concat(w.cfg.Env, r.env, []string{"HOME=" + r.home, "TMPDIR=" + r.temp}) {
		name, _, _ := strings.Cut(v, "=")
		if i, ok := at[name]; ok {
			env[i] = v
			continue
		}
		at[name] = len(env)
		env = append(env, v)
	}
	return env
}

// turn are the members of turn.start beside the text: instructions are never in
// arguments.
func (w *worker) turn(r *prepared) map[string]any {
	extra := map[string]any{}
	var parts []string
	for _, part := range []string{r.b.SpaceAgentInstructions, r.b.AgentInstructions} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) > 0 {
		extra["instructions"] = strings.Join(parts, "\n\n")
	}
	if r.b.LLM != nil {
		extra["llm"] = r.b.LLM
	}
	if len(r.plugins) > 0 {
		extra["plugins"] = r.plugins
	}
	return extra
}

// sink is where the masked lines of a run go: first to the journal, then to the
// report and to the stream (remote.md rule 1). It is for one goroutine.
type sink struct {
	w    *worker
	j    *journal.Journal
	seen *watched
	err  error
}

func (w *worker) openSink(path string, seen *watched) (*sink, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	j, err := journal.Open(path)
	return &sink{w: w, j: j, seen: seen}, err
}

func (s *sink) take(line []byte, e *protocol.Event) {
	if s.err == nil {
		if s.err = s.j.Append(line); s.err != nil {
			s.w.say("the journal cannot be written: %s", s.err)
		}
	}
	if e == nil {
		return
	}
	if text := s.seen.apply(e); text != "" {
		// What the server does not take is counted by the sender.
		_ = s.w.text.SendDelta(context.Background(), s.w.cfg.TaskRunID, text)
	}
}

// close ends the journal; false is one that is not whole.
func (s *sink) close() bool {
	return errors.Join(s.err, s.j.Sync(), s.j.Close()) == nil
}

// flush waits for the last text, for its time; what is left is given up.
func (w *worker) flush(ctx context.Context) {
	if errors.Is(context.Cause(ctx), errTaken) {
		return // nobody takes it any more
	}
	signal, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	unhook := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errSignalled) {
			end()
		}
	})
	defer unhook()
	within, cancel := bounded(signal, w.cfg.Times.Flush, w.cfg.Times.FlushSignalled)
	defer cancel()
	if err := w.text.Flush(within, w.cfg.TaskRunID); err != nil {
		w.say("%s", err)
	}
	w.text.Stop()
	if n := w.text.Dropped(); n > 0 {
		w.say("%d bytes of text did not reach the server; the journal has them", n)
	}
}
