package runner

import (
	"errors"
	"syscall"
	"time"

	"prp/protocol"
	"prp/runner/lifecycle"
	"prp/runner/process"
)

// Bounds of what waits to be written to stdout, in bytes.
const (
	// outLimit is where harness messages are no longer taken. One batch may
	// still come on top of it.
	outLimit = 256 << 10
	// maxReceipts is where commands are no longer taken: a controller that
	// writes without reading has to read first.
	maxReceipts = 2 << 20
)

// run is the one loop: it waits for the next input, steps, performs, and hands
// what is ready to the writer, until Finish was ordered and all is written.
func (l *loop) run() {
	for {
		l.flush()
		if l.done && len(l.out) == 0 && !l.busy {
			break
		}
		l.wait()
	}
	l.output.close()
}

// wait takes one input from wherever there is one. A gated source is a nil
// channel.
func (l *loop) wait() {
	commands, batches := l.input.commands, l.harness.batches
	if len(l.out) >= maxReceipts {
		commands = nil
	}
	if len(l.out) >= outLimit {
		batches = nil
	}
	select {
	case c := <-commands:
		l.command(c)
	case b := <-batches:
		l.batch(b)
	case b := <-l.harness.errors:
		l.errorBatch(b)
	case in := <-l.facts:
		l.step(in)
	case err := <-l.output.written:
		l.written(err)
	case e := <-l.harness.exited:
		l.harness.exited = nil
		l.step(lifecycle.LeaderExited{Exit: exitFact(e)})
	case c := <-l.harness.gone:
		l.harness.gone = nil
		l.gone(c)
	case sig := <-l.signals:
		l.step(lifecycle.RunnerSignalled{Signal: signalName(sig)})
	case <-l.hangup:
		l.hangup = nil
		// Once the terminal is made, only a write can tell whether it was
		// delivered: a reader may go as soon as it has it.
		if !l.done {
			l.breakOutput("the reader of stdout is gone")
		}
	case c := <-l.crashed:
		panic(c)
	case <-l.timers.fired():
		for _, in := range l.timers.due(time.Now()) {
			l.step(in)
		}
	}
}

// gone takes the end of the tree; an exit that was seen comes before it.
func (l *loop) gone(c process.Containment) {
	select {
	case e := <-l.harness.exited:
		l.harness.exited = nil
		l.step(lifecycle.LeaderExited{Exit: exitFact(e)})
	default:
	}
	l.step(lifecycle.TreeGone{Containment: containment(c)})
}

// step gives one input to the core and performs what it orders; the answers to
// effects are steps of their own and come first. The core takes the wall clock
// from the time that it is given (lifecycle sees to it that no event goes back),
// timers the monotonic one.
func (l *loop) step(in lifecycle.Input) {
	l.stepAt(time.Now(), in)
}

func (l *loop) stepAt(at time.Time, in lifecycle.Input) {
	l.performAll(l.state.Step(at, in))
	for len(l.pending) > 0 {
		in := l.pending[0]
		l.pending = l.pending[1:]
		l.performAll(l.state.Step(at, in))
	}
}

func (l *loop) performAll(effects []lifecycle.Effect) {
	for i := range effects {
		l.perform(&effects[i])
	}
}

// answer queues the answer to an effect.
func (l *loop) answer(in lifecycle.Input) { l.pending = append(l.pending, in) }

func (l *loop) command(c commandInput) {
	switch {
	case c.settled:
		l.settle = false
		l.step(lifecycle.Settled{})
	case c.closed:
		l.input.ended = true
		l.step(lifecycle.ControllerClosed{})
		if l.settle {
			l.settle = false
			l.step(lifecycle.Settled{})
		}
	case c.fault != nil:
		l.step(lifecycle.CommandInvalid{Fault: c.fault})
	default:
		l.step(lifecycle.CommandReceived{Command: c.command})
	}
}

// batch steps through what one read of the harness's stdout brought.
func (l *loop) batch(b *harnessBatch) {
	at := time.Now()
	for i := range b.items {
		it := &b.items[i]
		if it.fault != nil {
			l.stepAt(at, lifecycle.HarnessBroke{Fault: *it.fault, Torn: it.torn, Cut: it.cut})
			continue
		}
		b.said = lifecycle.HarnessSaid{Message: &it.message, Bytes: it.bytes}
		l.stepAt(at, &b.said)
	}
	if b.ended {
		l.harness.batches = nil
		l.step(lifecycle.HarnessOutputEnded{})
		return
	}
	l.harness.free <- b
}

// errorBatch adds what one read of the harness's stderr brought to the tail.
func (l *loop) errorBatch(b *errorBatch) {
	for _, line := range b.lines.Lines {
		l.tail.Add("stderr: ", l.mask.Mask(b.text(line)))
	}
	if b.ended {
		l.harness.errors = nil
		l.step(lifecycle.HarnessErrorsEnded{})
		return
	}
	l.harness.freeErrors <- b
}

// flush hands what is ready to the writer.
func (l *loop) flush() {
	if l.busy || len(l.out) == 0 {
		return
	}
	if l.direct && !l.broken && l.writeNow() {
		return
	}
	l.busy = true
	l.out = l.output.write(l.out)
}

// writeNow writes from the loop what stdout takes without blocking: most of the
// time all of it, which saves the way through the writer. It reports whether
// nothing is left.
func (l *loop) writeNow() bool {
	n, err := process.WriteNow(l.stdout, l.out)
	switch {
	case errors.Is(err, process.ErrNotNow):
		l.direct = false
	case err != nil:
		l.breakOutput(err.Error())
	}
	// What is left is short against what has gone: the pipe was filled.
	l.out = l.out[:copy(l.out, l.out[n:])]
	return len(l.out) == 0
}

// written takes the writer's answer.
func (l *loop) written(err error) {
	l.busy = false
	if err != nil {
		l.breakOutput(err.Error())
	}
}

// breakOutput notes that nobody reads stdout any more.
func (l *loop) breakOutput(detail string) {
	if l.broken {
		return
	}
	l.broken = true
	l.step(lifecycle.OutputBroken{Detail: detail})
}

func exitFact(e process.Exit) protocol.ExitFact {
	if e.Signaled {
		sig := e.Signal
		return protocol.ExitFact{Signal: &sig}
	}
	code := e.Code
	return protocol.ExitFact{ExitCode: &code, Success: code == 0}
}

func containment(c process.Containment) protocol.Containment {
	out := protocol.Containment{Means: c.Means, Swept: c.Swept}
	for _, v := range c.Survivors {
		out.Survivors = append(out.Survivors, protocol.Survivor{PID: v.PID, Name: v.Name, State: v.State})
	}
	return out
}

func signalName(sig interface{ String() string }) string {
	switch sig {
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGQUIT:
		return "SIGQUIT"
	}
	return sig.String()
}
