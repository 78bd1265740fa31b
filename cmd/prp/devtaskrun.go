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
	host, err := devserver.Listen(o.dir, o.addr)
	if err != nil {
		return fail(s, "devserver", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	workers := &workers{s: s, ctx: ctx, args: append([]string{"taskrun", "--url", "http://" + host.Address()}, args...)}
	defer workers.wait()
	server := devserver.NewTaskRuns(devserver.TaskRunsConfig{Token: host.Token(), Rules: rules, Submitted: func(id, token string) {
		if o.submit.noDispatch {
			fmt.Fprintf(s.out, "%s=%s prp %s --task-run-id %s\n", runTokenEnv, token, quoteWords(workers.args), id)
			return
		}
		fmt.Fprintf(s.out, "%s: a worker is started\n", id)
		workers.start(id, token)
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

// start starts a worker; it is told to end by SIGTERM when the server ends.
func (w *workers) start(id, token string) {
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
			return
		}
		fmt.Fprintf(w.s.out, "%s: the worker is done\n", id)
	})
}

func (w *workers) wait() { w.live.Wait() }

// submitTask submits a task and shows its text and its end. The first Ctrl-C
// asks for a cancel, the second ends the watching.
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	answer, err := devserver.PostTo(ctx, o.dir, devserver.SubmitPath, body, o.wait)
	if err != nil {
		return fail(s, "devserver", err)
	}
	defer answer.Close()
	ctx, stop = signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	return o.watch(ctx, s, answer)
}

// cancelWait bounds a call that asks for a cancel.
const cancelWait = 10 * time.Second

// watch shows what happens to a run until it has ended.
func (o *devserverOptions) watch(ctx context.Context, s *streams, answer io.Reader) int {
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, maxAnswer)
	id, streamed := "", false
	for lines.Scan() {
		var p devserver.Progress
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return fail(s, "devserver", err)
		}
		if p.ID != "" {
			id = p.ID
			unhook := context.AfterFunc(ctx, func() { o.cancelRun(s, id) })
			defer unhook()
		}
		if o.json {
			fmt.Fprintf(s.out, "%s\n", lines.Bytes())
		} else {
			fmt.Fprint(s.out, printable(p.Delta))
			streamed = streamed || p.Delta != ""
			if p.Status != "" {
				fmt.Fprintf(s.err, "%s: %s\n", id, p.Status)
			}
		}
		if p.End != nil {
			return o.showEnd(s, p.End, streamed)
		}
	}
	err := lines.Err()
	if err == nil {
		err = errors.New("the server has ended before the run")
	}
	return fail(s, "devserver", err)
}

// cancelRun asks for the end of a run; another Ctrl-C then ends this program.
func (o *devserverOptions) cancelRun(s *streams, id string) {
	signal.Reset(os.Interrupt)
	ctx, stop := context.WithTimeout(context.Background(), cancelWait)
	defer stop()
	body, err := json.Marshal(map[string]string{"id": id})
	if err == nil {
		var answer io.ReadCloser
		if answer, err = devserver.PostTo(ctx, o.dir, devserver.CancelPath, body, 0); err == nil {
			answer.Close()
		}
	}
	if err != nil {
		fmt.Fprintf(s.err, "prp devserver: cancel: %s\n", err)
	}
}

func (o *devserverOptions) showEnd(s *streams, end *workerclient.PatchTaskRunRequest, streamed bool) int {
	if !o.json {
		if end.Output != nil && !streamed {
			fmt.Fprint(s.out, printable(*end.Output))
		}
		fmt.Fprintln(s.out)
		if end.ErrorMessage != nil {
			fmt.Fprintf(s.err, "%s\n", controller.OneLine(*end.ErrorMessage))
		}
	}
	switch end.Status {
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
