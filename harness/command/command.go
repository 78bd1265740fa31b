package command

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"prp/harness"
	"prp/harness/child"
	"prp/harness/fields"
	"prp/harness/text"
	"prp/protocol"
)

// Exit statuses of the adapter that are not the program's.
const (
	// StatusRefused is a turn that asked for what is not allowed, or a
	// runner that could not be understood.
	StatusRefused = 125
	// StatusTimedOut stands for an exit status of 0 after the time was up.
	StatusTimedOut = 124
)

const (
	// version is what ready says.
	version = "1"
	// readSize is how much is read from the program at once, in bytes.
	readSize = 32 << 10
	// killGrace is how long a program has after SIGTERM: less than the
	// runner's own shortest grace (cancel, 2 s), so that the end is told.
	killGrace = 1500 * time.Millisecond
	// commandBuffer is how many commands are taken ahead.
	commandBuffer = 16
)

// Options says what is run, and what a turn may decide.
type Options struct {
	// Argv is the program that is run where the turn names none.
	Argv []string
	// Allow are the members of turn.start that are heeded.
	Allow Allow
	// Shell runs the member command of a turn: it is put after these words.
	Shell []string
	// Stdin and Stdout are the harness stream.
	Stdin  io.Reader
	Stdout io.Writer
}

// adapter is one run. One goroutine owns it; the pumps only read their stream
// and send.
type adapter struct {
	options  Options
	conn     *harness.Conn
	commands <-chan protocol.HarnessCommand
	signals  chan os.Signal

	turn    turn
	program *child.Child
	pumps   sync.WaitGroup
	streams [2]pump

	timeout, kill <-chan time.Time
	interrupted   bool   // SIGINT was sent
	why           ending // why the program is being ended, if it is
	reason        string // as the command gave it
}

// ending is why the turn ends other than by the program.
type ending uint8

const (
	byItself ending = iota
	byInterrupt
	byCancel
	byTimeout
)

// Run runs one program under a runner and returns how it ended. It blocks until
// then, or until the session is closed or stdin ends before a turn starts.
func Run(o Options) child.Exit {
	a := &adapter{
		options: o,
		conn:    harness.New(o.Stdin, o.Stdout, protocol.FamilyHarness),
		signals: make(chan os.Signal, 4), // one of each that is asked for
	}
	// A lost stdout is an error of a write; what ends the adapter is passed on
	// to the program first.
	signal.Notify(a.signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if a.conn.Send(protocol.MessageReady, []byte(readyPayload)) != nil {
		return child.Exit{Status: 1}
	}
	a.commands = a.conn.Commands(commandBuffer)
	return a.run()
}

const readyPayload = `{"version":"` + version + `","driverKind":"command","capabilities":["interrupt"]}`

// run waits for the turn, then for its end.
func (a *adapter) run() child.Exit {
	for {
		select {
		case c, ok := <-a.commands:
			switch {
			case !ok:
				return a.ended()
			case c.Type == protocol.SessionOpen:
				a.queue(protocol.EventSessionStarted, "", nil)
				a.event(protocol.EventPhaseChanged, "", fields.New().Text("phase", protocol.PhaseExecuting))
			case c.Type == protocol.TurnStart:
				return a.play(c)
			case c.Type == protocol.SessionClose, c.Type == protocol.RunCancel:
				a.event(protocol.EventSessionClosed, "", nil)
				return child.Exit{}
			}
		case <-a.signals:
			return child.Exit{}
		}
	}
}

// ended is the end of stdin before a turn.
func (a *adapter) ended() child.Exit {
	if err := a.conn.Err(); err != nil {
		a.event(protocol.EventHarnessDiag, "", diagnosis("command_unreadable", err.Error()))
		return child.Exit{Status: StatusRefused}
	}
	return child.Exit{}
}

// play runs the program of a turn and reports its end.
func (a *adapter) play(c protocol.HarnessCommand) child.Exit {
	t, err := readTurn(c.Payload, a.options)
	a.turn = t
	a.event(protocol.EventTurnStarted, "", nil)
	if err != nil {
		return a.refuse("turn_refused", err, child.Exit{Status: StatusRefused})
	}
	if err = t.enter(); err == nil {
		a.program, err = child.Start(child.Options{Argv: t.argv, Input: t.stdin != nil})
	}
	a.event(protocol.EventItemStarted, itemID, a.item(err == nil))
	if err != nil {
		status := child.StatusNotExecutable
		if e := (*child.StartError)(nil); errors.As(err, &e) {
			status = e.Status
		}
		a.queue(protocol.EventItemFailed, itemID, fields.New().Text("kind", itemKind))
		return a.refuse("command_not_started", err, child.Exit{Status: status})
	}
	a.feed(t.stdin)
	for i, output := range []*child.Output{a.program.Stdout, a.program.Stderr} {
		p := &a.streams[i]
		p.name = [...]string{protocol.LogStdout, protocol.LogStderr}[i]
		a.pumps.Go(func() { a.pump(p, output) })
	}
	if t.timeout > 0 {
		a.timeout = time.After(t.timeout)
	}
	a.watch()
	a.pumps.Wait()
	return a.report(a.program.Exit())
}

// item describes the program, which is known by its pid and its start together:
// the number alone is given to others later.
func (a *adapter) item(started bool) *fields.Fields {
	f := fields.New().Text("kind", itemKind).Text("title", a.turn.title()).Text("command", a.turn.line())
	if started {
		f.Number("pid", int64(a.program.PID())).Text("startedAt", time.Now().UTC().Format(protocol.TimeLayout))
	}
	return f
}

// feed writes the program's stdin. A program that does not read it leaves the
// goroutine to the end of the process.
func (a *adapter) feed(stdin *string) {
	if stdin == nil {
		return
	}
	go func() {
		// An error is a program that does not want the rest.
		_, _ = io.WriteString(a.program.Stdin, *stdin)
		a.program.Stdin.Close()
	}()
}

// watch waits for the program's exit and acts on what comes meanwhile.
func (a *adapter) watch() {
	for {
		select {
		case <-a.program.Done():
			return
		case c, ok := <-a.commands:
			if !ok {
				a.commands = nil
				a.stop(byCancel, "stdin ended")
				break
			}
			a.command(c)
		case s := <-a.signals:
			if s == os.Interrupt && a.interrupted {
				break // our own, which goes to the whole group
			}
			a.stop(byCancel, s.String())
		case <-a.timeout:
			a.stop(byTimeout, "")
		case <-a.kill:
			a.program.Kill()
		}
	}
}

func (a *adapter) command(c protocol.HarnessCommand) {
	switch c.Type {
	case protocol.TurnInterrupt, protocol.TurnStop:
		a.interrupted = true
		if a.why == byItself {
			a.why, a.reason = byInterrupt, reasonOf(c.Payload)
		}
		a.program.Interrupt()
	case protocol.RunCancel, protocol.SessionClose:
		a.stop(byCancel, string(c.Type))
	}
}

// stop ends the program. The first reason is the one that is told, but for an
// interrupt that the program did not heed.
func (a *adapter) stop(why ending, reason string) {
	if a.why == byItself {
		a.why, a.reason = why, reason
	}
	if a.kill == nil {
		a.kill = time.After(killGrace)
	}
	a.program.Terminate()
}

// pump is one stream of the program.
type pump struct {
	name            string
	bytes, replaced int64
}

// pump sends what comes from one stream. Where the runner does not read, it
// blocks, and so does the program.
func (a *adapter) pump(p *pump, from *child.Output) {
	defer from.Close()
	var decode text.Stream
	buf := make([]byte, readSize)
	for {
		n, err := from.Read(buf)
		p.bytes += int64(n)
		if !a.deltas(p, decode.Add, buf[:n]) {
			return
		}
		if err != nil {
			a.deltas(p, func([]byte) (string, int) { return decode.End() }, nil)
			return
		}
	}
}

func (a *adapter) deltas(p *pump, decode func([]byte) (string, int), chunk []byte) bool {
	s, replaced := decode(chunk)
	p.replaced += int64(replaced)
	for piece := range text.Pieces(s) {
		f := fields.New().Text("kind", itemKind).Text("stream", p.name).Text("delta", piece)
		if replaced > 0 {
			f.Number("replacedBytes", int64(replaced))
			replaced = 0 // counted once, in the first piece of the chunk
		}
		if !a.event(protocol.EventItemDelta, itemID, f) {
			return false
		}
	}
	return true
}
