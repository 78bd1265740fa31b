package fake

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"prp/harness"
	"prp/protocol"
)

// Version is what the fake says in its ready message.
const Version = "1.0.0"

// readyPayload tells the runner who is there and what it can do.
const readyPayload = `{"version":"` + Version + `","driverKind":"fake","capabilities":["steer","interrupt"]}`

// exitBroken is the exit status of a fake that cannot go on: its stdout is
// gone, its stdin ended too early, or the system refused something.
const exitBroken = 1

// Options is what a script is played with.
type Options struct {
	// Stdin, Stdout and Stderr are the streams of the fake; nil stands for
	// those of the process.
	Stdin, Stdout, Stderr *os.File
	// DelayMS replaces the milliseconds of every delay where it is not nil.
	DelayMS *int64
	// Worker is the argument list, program name first, with which this
	// executable reaches [WorkerMain]; the worker's own argument is added.
	// Without it spawn_worker is an error.
	Worker []string
}

// driver plays one script. All its work is done by one goroutine; a second one
// reads stdin when it is asked to.
type driver struct {
	options Options
	conn    *harness.Conn
	inbox   inbox
	turnID  string // of the turn that was started last
	scratch []byte

	term   chan os.Signal // SIGTERM, once a step has asked for it
	onTerm []Step         // what to do at the first one
}

// exitStatus ends a script as an exit step asks.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Run plays a script and returns the exit status for the process. It blocks
// until the script has ended, and a script may hang for ever. Notes for a
// person go to stderr.
func Run(script *Script, options Options) int {
	// A lost stdout is an error of a write and no sudden death; a channel
	// instead of Ignore, since a worker would inherit what is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	d := newDriver(options)
	err := d.play(script)
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(d.options.Stderr, "fake harness: script %q: %v\n", script.Name, err)
	return exitBroken
}

func newDriver(options Options) *driver {
	if options.Stdin == nil {
		options.Stdin = os.Stdin
	}
	if options.Stdout == nil {
		options.Stdout = os.Stdout
	}
	if options.Stderr == nil {
		options.Stderr = os.Stderr
	}
	conn := harness.New(options.Stdin, options.Stdout, protocol.FamilyFake)
	return &driver{
		options: options,
		conn:    conn,
		inbox:   inbox{conn: conn},
		term:    make(chan os.Signal, 1),
	}
}

func (d *driver) play(script *Script) error {
	if !script.NoHandshake {
		if err := d.handshake(); err != nil {
			return err
		}
	}
	return d.steps(script.Steps)
}

// handshake is the start of every run (spec section 8).
func (d *driver) handshake() error {
	if err := d.conn.Send(protocol.MessageReady, []byte(readyPayload)); err != nil {
		return err
	}
	if _, err := d.await(protocol.SessionOpen); err != nil {
		return err
	}
	if err := d.event(protocol.EventSessionStarted, "", "", []byte("{}")); err != nil {
		return err
	}
	phase := []byte(`{"phase":"` + protocol.PhaseExecuting + `"}`)
	if err := d.event(protocol.EventPhaseChanged, "", "", phase); err != nil {
		return err
	}
	if _, err := d.await(protocol.TurnStart); err != nil {
		return err
	}
	return d.event(protocol.EventTurnStarted, d.turnID, "", []byte("{}"))
}

func (d *driver) steps(list []Step) error {
	for _, step := range list {
		select {
		case <-d.term:
			if err := d.terminated(); err != nil {
				return err
			}
		default:
		}
		if err := step.run(d); err != nil {
			return err
		}
	}
	return nil
}

// terminated does what was kept for the first SIGTERM; later ones are ignored.
func (d *driver) terminated() error {
	list := d.onTerm
	d.onTerm = nil
	return d.steps(list)
}

// sleep waits for a time, or for ever where it is negative.
func (d *driver) sleep(duration time.Duration) error {
	var over <-chan time.Time
	if duration >= 0 {
		timer := time.NewTimer(duration)
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case <-over:
			return nil
		case <-d.term:
			if err := d.terminated(); err != nil {
				return err
			}
		}
	}
}

// await returns the next command of one of the types; the others stay for
// later steps. A turn.start makes its turn the current one.
func (d *driver) await(types ...protocol.CommandType) (protocol.HarnessCommand, error) {
	fits := func(c protocol.HarnessCommand) bool {
		for _, t := range types {
			if c.Type == t {
				return true
			}
		}
		return false
	}
	command, err := d.awaitWhere(fits)
	if errors.Is(err, io.EOF) {
		return command, fmt.Errorf("stdin ended while waiting for %s: %w", oneOf(types), err)
	}
	if command.Type == protocol.TurnStart {
		d.turnID, _ = unquote(member(command.Payload, "turnId"))
	}
	return command, err
}

func (d *driver) awaitWhere(fits func(protocol.HarnessCommand) bool) (protocol.HarnessCommand, error) {
	for {
		command, found, err := d.inbox.take(fits)
		if found || err != nil {
			return command, err
		}
		select {
		case r := <-d.inbox.next():
			d.inbox.add(r)
		case <-d.term:
			if err := d.terminated(); err != nil {
				return protocol.HarnessCommand{}, err
			}
		}
	}
}

// event sends an event message. Empty ids are left out; the payload is spliced
// in as it is.
func (d *driver) event(t protocol.EventType, turnID, itemID string, payload []byte) error {
	d.scratch = protocol.AppendHarnessEvent(d.scratch[:0], t, turnID, itemID, payload)
	return d.conn.Send(protocol.MessageEvent, d.scratch)
}

// turnOf is the turn that an event belongs to where the script names none.
func (d *driver) turnOf(eventType string) string {
	if strings.HasPrefix(eventType, "session.") || eventType == string(protocol.EventPhaseChanged) {
		return ""
	}
	return d.turnID
}

func oneOf(types []protocol.CommandType) string {
	names := make([]string, 0, len(types))
	for _, t := range types {
		names = append(names, string(t))
	}
	return strings.Join(names, " or ")
}
