package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"prp/controller"
	"prp/protocol"
)

// shellOptions are the flags of prp shell.
type shellOptions struct {
	target
	record string
}

// shellScript is what the fake harness plays where nothing is said.
const shellScript = "happy-path"

var shellCommand = &command{
	name: "shell", args: "[NAME|FILE.json]", operand: operandScript,
	short: "drive a run by hand, one command at a time",
	flags: func(fs *flag.FlagSet) runFunc {
		o := &shellOptions{}
		o.target.flags(fs)
		fs.StringVar(&o.record, "record", "", "write the stream to `FILE`, for prp replay")
		return o.run
	},
	long: `
Starts a runner and sends it what you type: each command of the protocol is a
word. What happens is shown as it comes, and every receipt too. The harness
plays a script, where none is given '` + shellScript + `', or it is any program that
speaks the harness protocol (--harness).

` + shellTable() + `
wait begins behind the event that the last wait has found, so that nothing that
came meanwhile is missed.

On a terminal, Tab completes, the arrow keys edit and recall what was typed.
Ctrl-C interrupts the turn, a second one cancels the run, a third one kills it.
Ctrl-D is quit.

From a pipe, one command is a line; blank lines and those that begin with # are
skipped. Each command waits for its receipt. A line that is no command ends the
run. At the end of the pipe the run goes on to the end of its turn.

exit status: as 'prp run'; 2 also for a line of a pipe that is no command.

  printf '%s\n' prepare open 'start Fix it.' | prp shell error`,
}

func (o *shellOptions) run(s *streams, args []string) int {
	if len(args) == 0 && o.harness == "" && o.agent.name == "" {
		args = []string{shellScript}
	}
	if err := o.check(args); err != nil {
		return fail(s, "shell", err)
	}
	defer o.agent.close(s)
	cfg, err := o.config()
	if err != nil {
		return fail(s, "shell", err)
	}
	o.agent.warn(s, "shell")
	return newShell(s).play(cfg, o.record)
}

// shell is a run that is driven by hand.
type shell struct {
	streams *streams
	screen  *screen
	view    *renderer
	client  *controller.Client
	keys    *interrupts
	start   time.Time
	typed   bool            // a person types; else a pipe is read
	turns   int             // that were asked for
	replied map[string]bool // requests that were answered from here
	waited  int             // events that were looked at by wait

	// Known from the stream and guarded by the view's lock.
	sent     map[string]string // what was sent, by command id
	answered map[string]bool   // command ids that have a receipt
	answers  int               // receipts and diagnostics that came
	requests map[string]protocol.Request

	waitLock sync.Mutex
	stopWait context.CancelFunc // ends what a person waits for; nil where nobody does
}

func newShell(s *streams) *shell {
	sh := &shell{
		streams: s, screen: newScreen(s.out), start: time.Now(), typed: isTerminal(s.in),
		sent: map[string]string{}, answered: map[string]bool{}, requests: map[string]protocol.Request{}, replied: map[string]bool{},
	}
	sh.screen.terminal = false // the prompt stands where a progress line would
	sh.view = &renderer{screen: sh.screen, noted: sh.note}
	sh.view.receipt = sh.receiptText
	return sh
}

func (sh *shell) age() time.Duration { return time.Since(sh.start) }

// play runs to the end and returns the exit status.
func (sh *shell) play(cfg controller.Config, record string) int {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	if record != "" {
		f, err := os.Create(record)
		if err != nil {
			return fail(sh.streams, "shell", err)
		}
		defer f.Close()
		cfg.Tap = tap([]io.Writer{f}, stop)
	}
	client, err := controller.Start(ctx, cfg)
	if err != nil {
		return fail(sh.streams, "shell", err)
	}
	defer client.Close()
	sh.client = client
	sh.keys = newInterrupts(client, sh.screen.print)
	sh.keys.id = func(kind protocol.CommandType) string { return sh.newID(string(kind)) }
	sh.keys.idle = func() bool { s, _ := sh.view.state(); return !turnActive(s) }

	unhook := sh.keys.hook() // before the terminal is taken over: no signal may leave it so
	in, restore, err := sh.open()
	if err != nil {
		unhook()
		return fail(sh.streams, "shell", err)
	}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		sh.view.follow(client, sh.age)
		sh.view.end(sh.age())
	}()
	if sh.typed {
		sh.screen.print("Type help for the commands; prepare starts the harness.")
	}
	misused := sh.obey(in)
	go client.Close()
	<-shown
	unhook()
	restore()
	trace, err := client.Wait(context.Background())
	status := ending{
		name: "shell", trace: trace, err: err, cause: context.Cause(ctx), killed: sh.keys.killed.Load(),
	}.status(sh.streams)
	if misused {
		return exitUsage
	}
	return status
}

// errQuit is the wish to leave.
var errQuit = errors.New("quit")

// obey carries out line after line; true is a line of a pipe that is wrong.
func (sh *shell) obey(in <-chan inputLine) (misused bool) {
	for {
		var line inputLine
		select {
		case line = <-in:
		case <-sh.keys.ended:
			return false
		}
		err := line.err
		switch {
		case err == nil:
			err = sh.line(line.text)
		case !errors.As(err, new(usageError)): // the end, mostly
			if !sh.typed {
				sh.finish()
			}
			return false
		}
		switch {
		case err == nil:
		case errors.Is(err, errQuit):
			return false
		case sh.typed:
			sh.screen.print(sh.screen.paint(red, err.Error()))
		default:
			fmt.Fprintf(sh.streams.err, "prp shell: line %d: %s\n", line.number, err)
			if errors.As(err, new(usageError)) {
				fmt.Fprintln(sh.streams.err, "Run 'prp shell -h' for the commands.")
				return true
			}
		}
	}
}

// sessionWait is how long a harness has to close its session by itself after
// the end of its turn, as in a run that is driven by prp run.
const sessionWait = 150 * time.Millisecond

// finish lets the run come to the end of its turn without further commands.
func (sh *shell) finish() {
	ctx := context.Background()
	var asked []controller.RequestState // questions without an answer on its way
	sh.view.await(ctx, func(s *controller.Snapshot) bool {
		asked = slices.DeleteFunc(s.Pending(), func(r controller.RequestState) bool { return sh.replied[r.ID] })
		return !turnActive(s) || len(asked) > 0
	})
	s, _ := sh.view.state()
	switch {
	case len(asked) > 0:
		fmt.Fprintf(sh.streams.err, "prp shell: the harness asks %q (%s) and the commands have ended; cancelling the run\n",
			asked[0].Prompt, asked[0].ID)
		return
	case len(s.Turns) == 0 || s.Terminal != nil:
		return
	}
	soon, cancel := context.WithTimeout(ctx, sessionWait)
	defer cancel()
	closed := func(s *controller.Snapshot) bool {
		return s.Exit != nil || s.Session == protocol.SessionClosed || s.Session == protocol.SessionFailed
	}
	if !sh.view.await(soon, closed) {
		sh.send(protocol.SessionClose, nil) // what is wrong is shown as a receipt
	}
	sh.view.await(ctx, func(s *controller.Snapshot) bool { return s.Terminal != nil })
}

// turnActive tells whether there is a turn to wait for or to interrupt.
func turnActive(s *controller.Snapshot) bool {
	if s.Terminal != nil || s.Exit != nil || len(s.Turns) == 0 {
		return false
	}
	switch s.Turns[len(s.Turns)-1].State {
	case "submitted", "accepted", "started":
		return true
	}
	return false
}

// note remembers what a message says beside the state of the run.
func (sh *shell) note(m *protocol.StreamMessage) {
	switch m.Kind {
	case protocol.KindReceipt:
		sh.answered[m.Receipt.CommandID] = true
		sh.answers++
	case protocol.KindDiagnostic:
		sh.answers++
	case protocol.KindEvent:
		if r, ok := controller.RequestOf(m.Event); ok && m.Event.EventType == protocol.EventRequestCreated {
			sh.requests[r.RequestID] = r
		}
	}
}

// newID is the id of a command that is about to be sent, whose receipt will be
// shown under the name what.
func (sh *shell) newID(what string) string {
	sh.view.mu.Lock()
	defer sh.view.mu.Unlock()
	id := fmt.Sprintf("shell_%d", len(sh.sent)+1)
	sh.sent[id] = what
	return id
}

// receiptText names the command that a receipt answers.
func (sh *shell) receiptText(c *protocol.Receipt) string {
	sh.view.mu.Lock()
	defer sh.view.mu.Unlock()
	if what := sh.sent[c.CommandID]; what != "" {
		return what
	}
	return c.CommandID
}
