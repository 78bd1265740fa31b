package runner

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"prp/protocol"
	"prp/protocol/journal"
	"prp/protocol/secret"
	"prp/runner/lifecycle"
	"prp/runner/logtail"
	"prp/runner/process"
)

// Exit statuses of [Run] (spec section 5).
const (
	// ExitDelivered: the one terminal was written, whatever it says.
	ExitDelivered = 0
	// ExitUndelivered: the terminal could not be written.
	ExitUndelivered = 1
	// ExitMisused: nothing was started, since the configuration is wrong.
	ExitMisused = 2
)

// Run supervises one run: it reads commands from stdin, writes the stream to
// stdout and returns the exit status of the process once nothing of the
// harness is left and everything is written. A fault of the configuration is
// told on stderr. It blocks while stdout is full: the terminal is never
// dropped, it is only not delivered where nobody is left to read it.
func Run(cfg Config, stdin, stdout, stderr *os.File) (status int) {
	if err := cfg.Check(); err != nil {
		fmt.Fprintf(stderr, "prp-runner: %v\n", err)
		return ExitMisused
	}
	var log *journal.Journal
	if cfg.JournalPath != "" {
		j, err := journal.Open(cfg.JournalPath)
		if err != nil {
			fmt.Fprintf(stderr, "prp-runner: cannot open the journal: %v\n", err)
			return ExitMisused
		}
		log = j
	}
	if cfg.TerminalPath != "" {
		if err := freeTerminal(cfg.TerminalPath); err != nil {
			fmt.Fprintf(stderr, "prp-runner: cannot keep the terminal: %v\n", err)
			return ExitMisused
		}
	}
	signals := make(chan os.Signal, 4)
	caught := make(chan struct{})
	go func() {
		catch(signals)
		close(caught)
	}()
	sup, err := process.Open(process.Options{})
	if err != nil {
		fmt.Fprintf(stderr, "prp-runner: cannot supervise a process here: %v\n", err)
		return ExitUndelivered
	}
	defer sup.Close()

	l := newLoop(cfg, log)
	defer func() {
		// A fault in the program itself: nothing true can be told any more,
		// but the harness still has to go.
		if fault := recover(); fault != nil {
			fmt.Fprintf(stderr, "prp-runner: internal fault: %v\n%s", fault, debug.Stack())
			status = ExitUndelivered
		}
	}()
	l.sup = sup
	l.signals = signals
	// Before anything is started: a signal that comes earlier ends the runner
	// without a terminal.
	<-caught
	l.start(stdin, stdout)
	l.run()
	return l.status()
}

// catch has the signals that end a run sent to c. They stay caught when the run
// is over: one that comes then would make another status of what was delivered.
// SIGABRT keeps its meaning of Go, a dump of all goroutines, for whoever debugs
// the runner. SIGPIPE is caught, not ignored: an ignored one would be inherited.
func catch(c chan<- os.Signal) {
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// loop owns the run. All of its members belong to its goroutine alone.
type loop struct {
	cfg   Config
	state *lifecycle.State
	sup   *process.Supervisor
	child *process.Child
	tail  *logtail.Tail
	mask  *secret.Masker
	log   *journal.Journal

	printer *protocol.EventPrinter
	signals <-chan os.Signal
	hangup  <-chan struct{}
	facts   chan lifecycle.Input // from the writers
	input   *stdinReader
	output  *stdoutWriter
	harness harnessEnds
	crashed chan crash // from the goroutines around the loop

	stdout  *os.File
	direct  bool   // stdout may be written by the loop, without blocking
	out     []byte // lines that no writer has yet
	busy    bool   // the writer has a buffer
	broken  bool   // stdout is gone
	done    bool   // Finish was ordered
	settle  bool   // Settle is under way
	timers  timers
	pending []lifecycle.Input // answers to effects, taken before all else
}

func newLoop(cfg Config, log *journal.Journal) *loop {
	l := &loop{
		cfg:  cfg,
		tail: logtail.New(cfg.LogMaxLines, cfg.LogMaxBytes),
		mask: secret.NewMasker(cfg.Secrets),
		log:  log,

		printer: protocol.NewEventPrinter(cfg.RunID, cfg.SessionID, cfg.RunnerID),
		facts:   make(chan lifecycle.Input, 16),
		crashed: make(chan crash, 1),
	}
	core := cfg.core()
	core.Mask = l.masked
	l.state = lifecycle.New(core)
	return l
}

// start begins to read and write.
func (l *loop) start(stdin, stdout *os.File) {
	l.timers.init()
	l.input = readCommands(l.spawn, stdin, l.cfg.CommandMaxLineBytes)
	l.stdout = stdout
	l.direct = l.log == nil // a journal comes first, and may take its time
	process.EnlargePipe(stdout, pipeRoom)
	l.output = writeStream(l.spawn, stdout, l.log)
	l.hangup = process.WatchHangup(stdout)
}

// spawn runs f beside the loop. A fault in it is the loop's.
func (l *loop) spawn(f func()) {
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				select {
				case l.crashed <- crash{fault, debug.Stack()}:
				default: // one is enough
				}
			}
		}()
		f()
	}()
}

// crash is a fault in a goroutine, with its stack.
type crash struct {
	fault any
	stack []byte
}

func (c crash) String() string { return fmt.Sprintf("%v\n%s", c.fault, c.stack) }

// status is the exit status of the process.
func (l *loop) status() int {
	if l.broken {
		return ExitUndelivered
	}
	return ExitDelivered
}

// noted makes a fact about the runner's means visible.
func noted(code protocol.Code, detail string) lifecycle.Input {
	return lifecycle.Noted{Level: protocol.LevelWarning, Code: code, Detail: detail}
}
