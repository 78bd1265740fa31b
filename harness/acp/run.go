package acp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"prp/harness"
	"prp/harness/acp/translate"
	"prp/harness/child"
	"prp/protocol"
	"prp/protocol/jsonl"
)

const (
	// DefaultMaxLine bounds a line of the agent, in bytes: one answer of 2 MB
	// is one line for several agents.
	DefaultMaxLine = 8 << 20
	// HardMaxLine is the largest bound that can be asked for, in bytes.
	HardMaxLine = 32 << 20
)

const (
	// maxWaiting is how many messages, or lines for the agent, wait before
	// the agent is not read any more. A message is under 64 KiB.
	maxWaiting = 64
	// commandBuffer is how many commands are taken ahead.
	commandBuffer = 16
	// exitWait is how long after the end of its stdout an agent has to exit
	// before it counts as one that stays.
	exitWait = time.Second
	// flushWait is how long the last messages may wait for a runner that ends
	// the run and does not read.
	flushWait = time.Second
)

// Options says what agent is run, and how.
type Options struct {
	// Argv is the agent and its arguments.
	Argv []string
	// Env is the agent's whole environment.
	Env []string
	// MaxLine bounds a line of the agent, in bytes; 0 is [DefaultMaxLine].
	MaxLine int
	// Conversation says how the agent is talked to.
	Conversation translate.Config
	// Stdin and Stdout are the harness stream; Stderr is for notes, and is
	// the agent's stderr too.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr *os.File
}

// driver carries out what the conversation orders. One goroutine owns it.
type driver struct {
	options Options
	conn    *harness.Conn
	agent   *child.Child
	state   *translate.State

	commands <-chan protocol.HarnessCommand
	signals  chan os.Signal
	lines    chan line

	toRunner chan translate.Effect
	messages []translate.Effect // they wait for toRunner
	written  chan error         // the end of the writer to the runner

	toAgent chan []byte
	input   [][]byte // it waits for toAgent; nil closes the agent's stdin

	deadlines  [translate.Timers]time.Time // zero: off
	wake       *time.Timer
	terminated bool // the run is being ended, with little time
	lost       bool // nobody reads what is said
	finished   *translate.Exit
}

// line is a line of the agent; long is one that was over the bound.
type line struct {
	bytes []byte
	long  bool
}

// Run runs one agent under a runner and returns how the adapter is to end. It
// blocks until the agent has exited. An agent that cannot be started is noted
// on stderr, and the exit is what a shell would give.
func Run(o Options) child.Exit {
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	agent, err := child.Start(child.Options{Argv: o.Argv, Env: o.Env, Dir: o.Conversation.Cwd, Input: true, Stderr: o.Stderr})
	if err != nil {
		fmt.Fprintf(o.Stderr, "prp-harness: %v\n", err)
		status := child.StatusNotExecutable
		if e := (*child.StartError)(nil); errors.As(err, &e) {
			status = e.Status
		}
		return child.Exit{Status: status}
	}
	o.Conversation.PID = agent.PID()
	d := &driver{
		options:  o,
		conn:     harness.New(o.Stdin, o.Stdout, protocol.FamilyHarness),
		agent:    agent,
		state:    translate.New(o.Conversation),
		signals:  make(chan os.Signal, 4), // one of each that is asked for
		lines:    make(chan line),
		toRunner: make(chan translate.Effect),
		written:  make(chan error, 1),
		toAgent:  make(chan []byte),
		wake:     time.NewTimer(time.Hour),
	}
	signal.Notify(d.signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT)
	// A lost stdout is an error of a write and no sudden death.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go d.readAgent()
	go d.writeAgent()
	go d.writeRunner()
	d.commands = d.conn.Commands(commandBuffer)
	return d.run()
}

func (d *driver) run() child.Exit {
	d.perform()
	var silent <-chan time.Time // the agent closed its stdout
	lines, done := d.lines, d.agent.Done()
	for d.finished == nil {
		d.arm()
		select {
		case l, ok := <-d.open(lines):
			if !ok {
				lines, silent = nil, time.After(exitWait)
				break
			}
			d.line(l)
		case <-done:
			done = nil
		case <-silent:
			silent = nil
			d.state.OutputEnded()
		case c, ok := <-d.commands:
			d.command(c, ok)
		case s := <-d.signals:
			d.terminated = true
			d.state.Terminated(s.String())
		case err := <-d.written:
			d.written, d.messages = nil, nil
			d.lost, d.terminated = true, true
			d.state.Terminated("the runner is gone: " + err.Error())
		case d.outlet() <- d.nextMessage():
			d.messages = d.messages[1:]
		case d.inlet() <- d.nextInput():
			d.input = d.input[1:]
		case <-d.wake.C:
			d.fire()
		}
		if lines == nil && done == nil {
			e := d.agent.Exit()
			d.state.Exited(translate.Exit(e))
		}
		d.perform()
	}
	d.flush()
	return child.Exit(*d.finished)
}

// full reports that too much waits for the runner or for the agent.
func (d *driver) full() bool { return len(d.messages) > maxWaiting || len(d.input) > maxWaiting }

// open is the channel of the agent's lines, or none while too much waits. A run
// that is being ended reads on, to see the end.
func (d *driver) open(lines chan line) chan line {
	if d.full() && !d.terminated {
		return nil
	}
	return lines
}

func (d *driver) line(l line) {
	switch {
	case d.full(): // nobody reads what it would become
	case l.long:
		d.state.LongLine(d.options.MaxLine)
	default:
		d.state.Line(l.bytes)
	}
}

func (d *driver) command(c protocol.HarnessCommand, ok bool) {
	if ok {
		d.state.Command(c)
		return
	}
	d.commands = nil
	if err := d.conn.Err(); err != nil {
		fmt.Fprintf(d.options.Stderr, "prp-harness: %v\n", err)
	}
	d.state.InputEnded()
}

// perform carries out what was ordered.
func (d *driver) perform() {
	for _, fx := range d.state.Take() {
		switch fx.Kind {
		case translate.Say:
			if !d.lost {
				d.messages = append(d.messages, fx)
			}
		case translate.Write:
			d.input = append(d.input, append(fx.Data, '\n'))
		case translate.SetTimer:
			d.deadlines[fx.Timer] = time.Now().Add(fx.Delay)
		case translate.ClearTimer:
			d.deadlines[fx.Timer] = time.Time{}
		case translate.CloseStdin:
			d.input = append(d.input, nil)
		case translate.Terminate:
			d.agent.Terminate()
		case translate.Kill:
			d.agent.Kill()
		case translate.Note:
			fmt.Fprintf(d.options.Stderr, "prp-harness: %s\n", bytes.ToValidUTF8(fx.Data, []byte("\ufffd")))
		case translate.Finish:
			d.finished = &fx.Exit
		}
	}
}

// next is the timer that is due first.
func (d *driver) next() (t translate.Timer, at time.Time) {
	for i, deadline := range d.deadlines {
		if !deadline.IsZero() && (at.IsZero() || deadline.Before(at)) {
			t, at = translate.Timer(i), deadline
		}
	}
	return t, at
}

// arm sets the one timer for the deadline that is next.
func (d *driver) arm() {
	if _, at := d.next(); !at.IsZero() {
		d.wake.Reset(max(0, time.Until(at)))
	}
}

func (d *driver) fire() {
	t, at := d.next()
	if at.IsZero() || time.Until(at) > 0 {
		return // it was cleared, or is the idle hour of the start
	}
	d.deadlines[t] = time.Time{}
	d.state.Fired(t)
}

func (d *driver) outlet() chan translate.Effect {
	if len(d.messages) == 0 {
		return nil
	}
	return d.toRunner
}

func (d *driver) nextMessage() translate.Effect {
	if len(d.messages) == 0 {
		return translate.Effect{}
	}
	return d.messages[0]
}

func (d *driver) inlet() chan []byte {
	if len(d.input) == 0 {
		return nil
	}
	return d.toAgent
}

func (d *driver) nextInput() []byte {
	if len(d.input) == 0 {
		return nil
	}
	return d.input[0]
}

// flush writes the last messages. A runner that ends the run and does not read
// is not waited for long: the private home has to be removed before it kills.
func (d *driver) flush() {
	if d.lost {
		return
	}
	var over <-chan time.Time
	if d.terminated {
		over = time.After(flushWait)
	}
	for _, m := range d.messages {
		select {
		case d.toRunner <- m:
		case <-d.written:
			return
		case <-over:
			return
		}
	}
	close(d.toRunner)
	select {
	case <-d.written:
	case <-over:
	}
}

// writeRunner sends messages until there are none or the runner is gone.
func (d *driver) writeRunner() {
	for m := range d.toRunner {
		if err := d.conn.Send(m.Type, m.Data); err != nil {
			d.written <- err
			return
		}
	}
	close(d.written)
}

// writeAgent writes lines until the agent's stdin is to be closed. An agent that
// does not take them is ended by other means.
func (d *driver) writeAgent() {
	var err error
	for b := range d.toAgent {
		switch {
		case b == nil:
			d.agent.Stdin.Close()
			err = os.ErrClosed
		case err == nil:
			_, err = d.agent.Stdin.Write(b)
		}
	}
}

// readAgent reads lines until the end of the agent's stdout.
func (d *driver) readAgent() {
	defer close(d.lines)
	reader := jsonl.NewReader(d.agent.Stdout, d.options.MaxLine)
	for {
		b, flags, err := reader.Next()
		if err != nil {
			return
		}
		d.lines <- line{bytes: bytes.Clone(b), long: flags&jsonl.TooLong != 0}
	}
}
