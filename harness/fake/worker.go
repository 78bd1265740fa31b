package fake

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"prp/protocol"
)

// WorkerCommand is the hidden command of a main that leads to [WorkerMain].
const WorkerCommand = "fake-worker"

// workerStart bounds the start of a worker; a loaded machine takes its time.
const workerStart = 30 * time.Second

// workerOrder is the whole argument of a worker, as JSON.
type workerOrder struct {
	Step SpawnWorker `json:"step"`
	// Argv leads back to WorkerMain, for workers that start others.
	Argv []string `json:"argv"`
	// Relay makes this process the first half of a double fork: it starts
	// the worker and exits.
	Relay bool `json:"relay,omitempty"`
	// UntilMS is when the worker ends by itself, in Unix milliseconds. It is
	// handed on, so that a chain of workers ends too.
	UntilMS int64 `json:"until_ms"`
	// FromSeq is the first messageSeq of a worker that writes.
	FromSeq int64 `json:"from_seq,omitempty"`
	// ParentPID is the process whose exit a worker that writes waits for.
	ParentPID int `json:"parent_pid,omitempty"`
}

// spawn starts a worker and returns its pid once it is set up: signals
// handled, session and group as asked. The worker is never waited for: what
// becomes of it is the supervisor's work.
func (d *driver) spawn(step *SpawnWorker) (int, error) {
	if len(d.options.Worker) == 0 {
		return 0, errors.New("this program has no worker")
	}
	lifetime := step.LifetimeMS
	if lifetime == 0 {
		lifetime = defaultLifetimeMS
	}
	order := workerOrder{
		Step:      *step,
		Argv:      d.options.Worker,
		Relay:     step.Escape == EscapeDoubleFork,
		UntilMS:   time.Now().UnixMilli() + lifetime,
		FromSeq:   step.WritesFromSeq,
		ParentPID: os.Getpid(),
	}
	if order.FromSeq == 0 {
		// One for the diagnostic with the pid, and then the next.
		order.FromSeq = d.conn.Sent() + 2
	}
	read, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer read.Close()
	process, err := order.start(write, d.options.Stdout, d.options.Stderr)
	write.Close()
	if err != nil {
		return 0, err
	}
	if order.Relay {
		// The first half of a double fork has exited at once; waiting for it
		// is what a daemon's parent does.
		if _, err := process.Wait(); err != nil {
			return 0, err
		}
	} else if err := process.Release(); err != nil {
		return 0, err
	}
	return readPID(read)
}

// readPID waits for the worker's word that it is set up.
func readPID(read *os.File) (int, error) {
	if err := read.SetReadDeadline(time.Now().Add(workerStart)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return 0, err
	}
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the worker did not start: %w", err)
	}
	return strconv.Atoi(strings.TrimSuffix(line, "\n"))
}

// start starts the process of an order. Its stdin is the writing end of the
// pipe on which the worker says its pid: an ordinary stream is there on every
// platform, an additional descriptor is not.
func (o *workerOrder) start(ready, stdout, stderr *os.File) (*os.Process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := []*os.File{ready, null, null}
	if ready == nil {
		files[0] = null
	}
	if o.Step.HoldStdout {
		files[1] = stdout
	}
	if o.Step.HoldStderr {
		files[2] = stderr
	}
	env := os.Environ()
	if o.Step.ClearEnv {
		env = []string{}
	}
	argv := append(append([]string(nil), o.Argv...), string(text))
	return os.StartProcess(path, argv, &os.ProcAttr{Env: env, Files: files, Sys: escapeAttr(o.Step.Escape)})
}

// WorkerMain is the whole life of a worker; args is what stands after
// [WorkerCommand]. It returns the exit status for the process.
func WorkerMain(args []string) int {
	var order workerOrder
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &order) != nil {
		fmt.Fprintln(os.Stderr, "fake worker: expected the order of a fake harness")
		return exitBroken
	}
	if err := order.work(); err != nil {
		fmt.Fprintf(os.Stderr, "fake worker: %v\n", err)
		return exitBroken
	}
	return 0
}

func (o *workerOrder) work() error {
	if o.Relay {
		next := *o
		next.Relay = false
		next.Step.Escape = EscapeNone // the relay has made the session
		_, err := next.start(os.Stdin, os.Stdout, os.Stderr)
		return err
	}
	// A held pipe that nobody reads is no reason to die.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	term := make(chan os.Signal, 1)
	if o.Step.IgnoreSigterm || o.Step.TermForks {
		signal.Notify(term, syscall.SIGTERM)
	}
	// An order without a reader comes from another worker of a chain.
	_, err := fmt.Fprintf(os.Stdin, "%d\n", os.Getpid())
	if closeErr := os.Stdin.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if o.Step.ForkChain {
		return o.chain()
	}
	if o.Step.Stopped {
		if err := stopSelf(); err != nil {
			return err
		}
	}
	return o.stay(term)
}

// chain starts the next worker of a chain, which outlives this one.
func (o *workerOrder) chain() error {
	if time.Now().UnixMilli() >= o.UntilMS {
		return nil
	}
	next := *o
	next.Step.Escape = EscapeSetsid
	_, err := next.start(nil, os.Stdout, os.Stderr)
	return err
}

// parentPoll is how often a worker that writes looks for the fake's exit:
// often enough to write before the supervisor has swept.
const parentPoll = 2 * time.Millisecond

// stay does nothing until the lifetime is over, except what the order asks for.
func (o *workerOrder) stay(term <-chan os.Signal) error {
	over := time.After(time.Until(time.UnixMilli(o.UntilMS)))
	var tick <-chan time.Time
	if o.Step.WritesEveryMS > 0 {
		ticker := time.NewTicker(parentPoll)
		defer ticker.Stop()
		for tick = ticker.C; os.Getppid() == o.ParentPID; {
			select {
			case <-over:
				return nil
			case <-term:
				o.forkAtTerm()
			case <-tick:
			}
		}
		ticker.Reset(time.Duration(o.Step.WritesEveryMS) * time.Millisecond)
	}
	for seq := o.FromSeq; ; {
		select {
		case <-over:
			return nil
		case <-term:
			o.forkAtTerm()
		case <-tick:
			// A broken stdout changes nothing: the worker stays.
			_, _ = os.Stdout.Write(workerEvent(seq))
			seq++
		}
	}
}

func workerEvent(seq int64) []byte {
	payload := []byte(`{"eventType":"item.delta","itemId":"item_worker","payload":{"delta":"still here"}}`)
	return protocol.AppendMessage(nil, protocol.FamilyFake, seq, protocol.MessageEvent, payload)
}

// What a worker with term_forks answers the first SIGTERM with.
const (
	termForks         = 5
	termForksSessions = 2 // of them in sessions of their own
)

func (o *workerOrder) forkAtTerm() {
	if !o.Step.TermForks {
		return
	}
	o.Step.TermForks = false
	for i := range termForks {
		next := *o
		next.Step = SpawnWorker{HoldStdout: o.Step.HoldStdout, HoldStderr: o.Step.HoldStderr}
		if i < termForksSessions {
			next.Step.Escape = EscapeSetsid
		}
		// One that cannot be started is one less; nobody is there to tell.
		if p, err := next.start(nil, os.Stdout, os.Stderr); err == nil {
			_ = p.Release()
		}
	}
}
