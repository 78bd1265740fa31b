package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"prp/controller"
)

const (
	// keptEvery is how often it is looked whether a kept process has ended.
	keptEvery = 200 * time.Millisecond
	// maxAnswer bounds what a keeper answers, in bytes.
	maxAnswer = 1 << 20
)

// Signals that a keeper heeds: a graceful cancel and a forced one.
const (
	signalGraceful = syscall.SIGTERM
	signalForce    = syscall.SIGINT
)

// canKeep tells whether a process can outlive the worker here: what outlives it
// has to be found again by its number and its start.
func (w *Worker) canKeep() bool {
	return len(w.cfg.Keeper) > 0 && identify(os.Getpid()).Start != ""
}

// runKept has a keeper start a command, and answers once it runs.
func (w *Worker) runKept(ctx context.Context, x *execution, spec runSpec) outcome {
	p, err := w.newBackground(x)
	if err != nil {
		return failed(fault(CodeInternal, "the output cannot be kept: %s", err))
	}
	order, err := json.Marshal(keepOrder{
		Dir: p.dir, Status: p.record.processStatus, Turn: spec.turn, Cwd: spec.dir,
		Runner: w.cfg.Runner, Harness: w.cfg.Harness, Env: w.cfg.Env, Secrets: w.secrets(),
	})
	if err != nil {
		return failed(fault(CodeInternal, "%s", err)) // cannot be: only text
	}
	keeper, err := controller.Detach(w.cfg.Keeper, w.cfg.Env, order)
	if err != nil {
		p.remove()
		return failed(fault(CodeNotStarted, "the keeper could not be started: %s", err))
	}
	defer keeper.Answer.Close()
	answers := make(chan keepAnswer, 1)
	go func() { answers <- readAnswer(keeper.Answer) }()
	late := time.NewTimer(x.command.Timeout)
	defer late.Stop()
	var answer keepAnswer
	why := error(nil)
	select {
	case answer = <-answers:
	case <-late.C:
		why = errTimeout
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	if why != nil { // it may have begun: the answer comes when it is gone
		identify(keeper.PID).signal(signalForce)
		<-keeper.Done
		p.remove()
		if errors.Is(why, errTimeout) {
			return tooLate(x)
		}
		return outcome{status: StatusCancelled, err: fault(CodeCancelled, "the command was cancelled")}
	}
	p.mu.Lock()
	err = p.load()
	p.mu.Unlock()
	if answer.Started && err == nil {
		p.kept = true
		w.call(func() {
			w.processes[p.id] = p
			p.obey(ctx, x)
		})
		s := p.snapshot()
		return succeeded(ranResult{ProcessID: p.id, PID: s.PID, StartedAt: s.StartTime})
	}
	<-keeper.Done
	p.remove()
	return outcome{status: answer.Status, err: answer.Error, result: answer.Result}
}

// readAnswer reads what a keeper says of the start.
func readAnswer(r io.Reader) keepAnswer {
	line, _ := bufio.NewReader(io.LimitReader(r, maxAnswer)).ReadBytes('\n')
	var a keepAnswer
	if json.Unmarshal(line, &a) != nil || !a.Started && a.Error == nil {
		return keepAnswer{Status: StatusError, Error: fault(CodeOutcomeUnknown, "the keeper ended without an answer")}
	}
	return a
}

// anyKept tells whether a process that is kept runs.
func (w *Worker) anyKept() bool {
	for _, p := range w.processes {
		if p.kept && p.running() {
			return true
		}
	}
	return false
}

// lookAtKept takes note of processes that have ended.
func (w *Worker) lookAtKept() error {
	for _, p := range w.processes {
		if !p.kept || !p.running() {
			continue
		}
		p.mu.Lock()
		lives := p.record.owned()
		p.mu.Unlock()
		if lives {
			continue
		}
		p.snapshot()
		p.endedAt = time.Now()
		if err := w.ended(p.command); err != nil {
			return err
		}
	}
	return nil
}
