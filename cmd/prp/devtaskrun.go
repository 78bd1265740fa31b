package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"prp/controller"
	"prp/controller/bridge"
	"prp/controller/devserver"
	"prp/controller/workerclient"
	"prp/controller/workerclient/coretask"
)

// submitOptions are the flags of prp devserver that belong to task runs.
type submitOptions struct {
	noDispatch             bool
	instructions           string
	secretEnv              list
	networkTier, filesTier string
}

// echo is what works on a run where nothing else is said: the text of the task
// comes back.
var echo = []string{"--command", "cat", "--allow-unsandboxed"}

// serveTaskRuns serves task runs, and starts a worker for each one.
func (o *devserverOptions) serveTaskRuns(s *streams, args []string) int {
	rules, err := o.rules(devserver.ParseTaskRunRule)
	if err != nil {
		return fail(s, "devserver", err)
	}
	if len(args) == 0 {
		args = echo
	}
	release, err := o.alone()
	if err != nil {
		return fail(s, "devserver", err)
	}
	defer release()
	host, err := devserver.Listen(o.dir, o.addr)
	if err != nil {
		return fail(s, "devserver", err)
	}
	ctx, stop := untilTold()
	defer stop()
	workers := &workers{s: s, ctx: ctx, args: append([]string{"taskrun", "--url", "http://" + host.Address()}, args...)}
	defer workers.wait()
	var server *devserver.TaskRuns
	server = devserver.NewTaskRuns(devserver.TaskRunsConfig{Token: host.Token(), Rules: rules, Submitted: func(id, token string) {
		if o.submit.noDispatch {
			fmt.Fprintf(s.out, "%s=%s prp %s --task-run-id %s\n", runTokenEnv, token, quoteWords(workers.args), id)
			return
		}
		fmt.Fprintf(s.out, "%s: a worker is started\n", id)
		workers.start(id, token, func(why string) { server.Fail(id, why) })
	}})
	where := ""
	if !o.usual {
		where = " --dir " + quoteWords([]string{filepath.Dir(o.dir)})
	}
	fmt.Fprintf(s.out, "prp devserver submit%s 'Say hello.'\n", where)
	sayServing(s)
	if err := host.ServeHandler(ctx, server, server.Close); err != nil {
		return fail(s, "devserver", err)
	}
	return exitOK
}

// workers are the processes that a server has started.
type workers struct {
	s    *streams
	ctx  context.Context
	args []string
	live sync.WaitGroup
}

// start starts a worker; it is told to end by SIGTERM when the server ends. Gone is
// called where it has ended by itself: a run that it has not ended has no other.
func (w *workers) start(id, token string, gone func(why string)) {
	w.live.Go(func() {
		self, err := os.Executable()
		if err == nil {
			cmd := exec.CommandContext(w.ctx, self, append(w.args, "--task-run-id", id)...)
			cmd.Env = append(os.Environ(), runTokenEnv+"="+token)
			cmd.Stdout, cmd.Stderr = w.s.out, w.s.err
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			err = cmd.Run()
		}
		if w.ctx.Err() != nil {
			return // it was told to end
		}
		if err != nil {
			fmt.Fprintf(w.s.err, "prp devserver: the worker of %s: %s\n", id, err)
			gone(fmt.Sprintf("The worker ended (%s) before it told the end of the run; the terminal of the server says more", err))
			return
		}
		fmt.Fprintf(w.s.out, "%s: the worker is done\n", id)
		gone("The worker ended before it told the end of the run; the terminal of the server says more")
	})
}

func (w *workers) wait() { w.live.Wait() }

// submitTask submits a task and shows its text and its end. The first Ctrl-C
// asks for a cancel, the second and every other signal ends the watching.
func (o *devserverOptions) submitTask(s *streams, text string) int {
	task := devserver.Submission{Input: text, Instructions: o.submit.instructions, Secrets: map[string]string{}}
	for _, name := range o.submit.secretEnv {
		value, ok := os.LookupEnv(name)
		if !ok {
			return fail(s, "devserver", misuse("--secret-env: expected the variable %q to have a value", name))
		}
		task.Secrets[name] = value
	}
	if o.submit.networkTier != "" || o.submit.filesTier != "" {
		task.Sandbox = &workerclient.TaskRunSandbox{NetworkTier: o.submit.networkTier, FilesystemTier: o.submit.filesTier}
	}
	body, err := json.Marshal(task)
	if err != nil {
		return fail(s, "devserver", err)
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	w := &watching{o: o, s: s, end: end, run: make(chan string, 1)}
	defer w.heedSignals()()
	answer, err := devserver.PostTo(ctx, o.dir, devserver.SubmitPath, body, o.wait, o.sayWaiting(s))
	if err != nil {
		return fail(s, "devserver", unwatched(ctx, err))
	}
	defer answer.Close()
	if err := w.watch(ctx, answer); err != nil {
		return fail(s, "devserver", err)
	}
	return w.showEnd()
}

// cancelWait bounds a call that asks for a cancel.
const cancelWait = 10 * time.Second

// watching is a task that was submitted.
type watching struct {
	o   *devserverOptions
	s   *streams
	end func()      // of the watching
	run chan string // its id, once it is known

	last     *workerclient.PatchTaskRunRequest // the end of the run
	streamed bool                              // there was text
	open     bool                              // its last line has no end yet
}

// heedSignals heeds the signals that ask for the end until stop is called. A run
// that is not there yet cannot be cancelled.
func (w *watching) heedSignals() (stop func()) {
	signals := make(chan os.Signal, 8) // more than a person can mean
	signal.Notify(signals, endSignals...)
	go func() {
		var p presses
		for sig := range signals {
			if p.again(sig, time.Now()) {
				continue
			}
			select {
			case id := <-w.run: // there is one at the first time only
				if sig == os.Interrupt {
					go w.cancel(id)
					continue
				}
			default:
			}
			w.end()
		}
	}()
	return func() { signal.Stop(signals) }
}

// cancel asks for the end of the run.
func (w *watching) cancel(id string) {
	ctx, stop := context.WithTimeout(context.Background(), cancelWait)
	defer stop()
	body, err := json.Marshal(map[string]string{"id": id})
	if err == nil {
		var answer io.ReadCloser
		if answer, err = devserver.PostTo(ctx, w.o.dir, devserver.CancelPath, body, 0, nil); err == nil {
			answer.Close()
			fmt.Fprintln(w.s.err, "a cancel is asked for; Ctrl-C again ends the watching")
		}
	}
	if err != nil {
		fmt.Fprintf(w.s.err, "prp devserver: cancel: %s\n", err)
	}
}

// watch shows what happens to the run until it has ended. An answer that ends before
// is an error.
func (w *watching) watch(ctx context.Context, answer io.Reader) error {
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, maxAnswer)
	id := ""
	for w.last == nil && lines.Scan() {
		var p devserver.Progress
		if err := bridge.Decode(lines.Bytes(), &p); err != nil {
			return err
		}
		if p.ID != "" && id == "" {
			id = p.ID
			w.run <- id
		}
		if w.o.json {
			fmt.Fprintf(w.s.out, "%s\n", lines.Bytes())
		} else {
			w.show(id, p)
		}
		w.last = p.End
	}
	err := lines.Err()
	if err == nil && w.last == nil {
		err = errors.New("the server has ended before the run")
	}
	return unwatched(ctx, err)
}

// show shows one step for a person, text on stdout and the rest on stderr.
func (w *watching) show(id string, p devserver.Progress) {
	if p.Delta != "" {
		w.print(p.Delta)
		w.streamed = true
	}
	if p.Status != "" {
		w.endLine()
		fmt.Fprintf(w.s.err, "%s: %s\n", id, p.Status)
	}
}

func (w *watching) print(text string) {
	fmt.Fprint(w.s.out, printable(text))
	w.open = !strings.HasSuffix(text, "\n")
}

// endLine begins a new line, where text has left one open: what follows on
// stderr would stand right behind it on a terminal.
func (w *watching) endLine() {
	if w.open {
		fmt.Fprintln(w.s.out)
		w.open = false
	}
}

// showEnd shows how the run has ended and gives the status for it.
func (w *watching) showEnd() int {
	if !w.o.json {
		if w.last.Output != nil && !w.streamed && *w.last.Output != "" {
			w.print(*w.last.Output)
		}
		w.endLine()
		if w.last.ErrorMessage != nil {
			fmt.Fprintf(w.s.err, "%s\n", controller.OneLine(*w.last.ErrorMessage))
		}
	}
	switch w.last.Status {
	case coretask.StatusSucceeded:
		return exitOK
	case coretask.StatusCanceled:
		return exitCancelled
	}
	return exitFailed
}

// printable is text that moves no cursor: lines stay, control characters do not.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
