package worker

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"prp/controller"
	"prp/protocol"
)

const (
	// retainRun bounds what is kept of the stream of a run, in bytes: the
	// output is kept elsewhere.
	retainRun = 1 << 20
	// spareLife is how long a run waits for a command before it is ended: the
	// three processes of a server that is silent cost memory.
	spareLife = 5 * time.Minute
	// fillAfterStart and fillAfterEnd are how long after the start and the end
	// of a command the next spare starts: not beside its start, its end and
	// its answer, which it would slow down.
	fillAfterStart = 500 * time.Millisecond
	fillAfterEnd   = 5 * time.Millisecond
)

// launcher starts runs, and keeps one ready: three programs start one after the
// other before a command's own, which takes most of the time of a short command.
type launcher struct {
	// runner and harness are command lines, env the environment of both, dir
	// where they are started.
	runner  []string
	harness string
	env     []string
	dir     string
	// jobs counts runners that have not ended yet; nil counts none.
	jobs *sync.WaitGroup
	// spares keeps one run ready for the next command.
	spares bool

	mu     sync.Mutex
	spare  *run
	idle   *time.Timer
	closed bool
}

// run is a command under its runner.
type run struct {
	client *controller.Client
	// seen is called with each event once it is set, before the turn starts.
	seen atomic.Pointer[func(*protocol.Event)]
	// over is closed when the run is: its terminal was read, so nothing of the
	// command lives, or its runner has died. Gone is closed when the runner
	// has ended as well, which is not waited for before the answer.
	over, gone chan struct{}
	last       *protocol.Terminal // set before over is closed
	// expired tells that the run was ended since its time was up.
	expired atomic.Bool
}

// start starts a command under a runner of its own. Seen is called with each
// event, by one goroutine, until the run is over.
func (l *launcher) start(spec runSpec, seen func(*protocol.Event)) (*run, error) {
	r := l.take()
	if r == nil {
		var err error
		if r, err = l.prepare(); err != nil {
			return nil, err
		}
	}
	hook := func(e *protocol.Event) {
		seen(e)
		switch e.EventType {
		case protocol.EventItemStarted:
			time.AfterFunc(fillAfterStart, l.fill)
		case protocol.EventRunTerminal:
			time.AfterFunc(fillAfterEnd, l.fill)
		}
	}
	r.seen.Store(&hook)
	r.send(controller.Command{Type: protocol.TurnStart, Payload: spec.turn})
	return r, nil
}

// prepare starts a runner and its harness, which then wait for a turn.
func (l *launcher) prepare() (*run, error) {
	r := &run{over: make(chan struct{}), gone: make(chan struct{})}
	decoder := protocol.NewDecoder()
	ended := make(chan *protocol.Terminal, 1)
	client, err := controller.Start(context.Background(), controller.Config{
		Argv: append(slices.Clone(l.runner), "--clock", "system", "--harness", l.harness,
			"--cancel-grace-ms", milliseconds(cancelGrace), "--shutdown-grace-ms", milliseconds(forceGrace)),
		Env: l.env, Dir: l.dir, MaxRetainedBytes: retainRun,
		Tap: func(line []byte) {
			m, err := decoder.Stream(line)
			if err != nil || m.Event == nil {
				return // the client sees it as well
			}
			if seen := r.seen.Load(); seen != nil {
				(*seen)(m.Event)
			}
			if m.Event.EventType == protocol.EventRunTerminal {
				t := new(protocol.Terminal)
				if json.Unmarshal(m.Event.Payload, t) == nil {
					ended <- t // the first is the only one
				}
			}
		},
	})
	if err != nil {
		return nil, err
	}
	r.client = client
	if l.jobs != nil {
		l.jobs.Go(func() { r.follow(ended) })
	} else {
		go r.follow(ended)
	}
	r.send(controller.Command{Type: protocol.RunPrepare}, controller.Command{Type: protocol.SessionOpen})
	return r, nil
}

// send sends commands without waiting in between. Where one is refused the run
// cannot go on: it is ended, and its terminal says why.
func (r *run) send(commands ...controller.Command) {
	ctx, stop := context.WithTimeout(context.Background(), 2*orderWait)
	var receipts []func(context.Context) (protocol.Receipt, error)
	for _, c := range commands {
		wait, err := r.client.Submit(ctx, c)
		if err != nil {
			wait = func(context.Context) (protocol.Receipt, error) { return protocol.Receipt{}, err }
		}
		receipts = append(receipts, wait)
	}
	go func() {
		defer stop()
		for _, wait := range receipts {
			if _, err := wait(ctx); err != nil {
				r.client.Close()
				return
			}
		}
	}()
}

// follow waits for the end of the run, then for that of its runner.
func (r *run) follow(ended <-chan *protocol.Terminal) {
	defer close(r.gone)
	defer r.client.Close()
	select {
	case r.last = <-ended:
	case <-r.client.Done():
		select { // its last line may have come just before
		case r.last = <-ended:
		default:
		}
	}
	close(r.over)
}

// terminal waits for the end of the run, when nothing of the command lives any
// more; nil where its runner died without one.
func (r *run) terminal() *protocol.Terminal {
	<-r.over
	return r.last
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// take gives the spare away, nil where there is none that lives.
func (l *launcher) take() *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.spare
	l.spare = nil
	if r == nil {
		return nil
	}
	l.idle.Stop()
	select {
	case <-r.over:
		return nil
	default:
		return r
	}
}

// fill has a spare ready for the next command.
func (l *launcher) fill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.spares || l.closed || l.spare != nil {
		return
	}
	r, err := l.prepare()
	if err != nil {
		return // the next command tells why
	}
	l.spare = r
	l.idle = time.AfterFunc(spareLife, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.spare == r {
			l.spare = nil
			go r.client.Close()
		}
	})
}

// close ends the spare; there is none any more.
func (l *launcher) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	if r := l.take(); r != nil {
		go r.client.Close()
	}
}
