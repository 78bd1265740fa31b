package worker

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"prp/controller"
	"prp/controller/bridge"
	"prp/protocol"
)

const (
	// retainRun bounds what is kept of the stream of a run, in bytes: the
	// output is kept elsewhere.
	retainRun = 1 << 20
	// maxSpares is how many runs wait ready: one for the next command, and one
	// for the command that comes at once after that, while a third starts.
	maxSpares = 2
	// spareLife is how long a run waits for a command before it is ended: the
	// processes of a server that is silent cost memory.
	spareLife = 5 * time.Minute
	// fillAfterStart and fillAfterEnd are how long after the start and the end
	// of a command the next spare starts, as long as there is another: not
	// beside its start, its end and its answer, which it would slow down.
	fillAfterStart = 500 * time.Millisecond
	fillAfterEnd   = 5 * time.Millisecond
)

// launcher starts runs, and keeps some ready: three programs start one after the
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
	// most is how many runs are kept ready for the next commands.
	most int

	mu     sync.Mutex
	spares []*run // the oldest first
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
	// idle ends a spare; nil for a run that never was one.
	idle *time.Timer
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
	l.fillFirst()
	return r, nil
}

// prepare starts a runner and its harness, which then wait for a turn.
func (l *launcher) prepare() (*run, error) {
	r := &run{over: make(chan struct{}), gone: make(chan struct{})}
	ended := make(chan *protocol.Terminal, 1)
	client, err := controller.Start(context.Background(), controller.Config{
		Argv: append(slices.Clone(l.runner), "--clock", "system", "--harness", l.harness,
			"--cancel-grace-ms", milliseconds(cancelGrace), "--shutdown-grace-ms", milliseconds(forceGrace)),
		Env: l.env, Dir: l.dir, MaxRetainedBytes: retainRun,
		OnEvent: func(e *protocol.Event) {
			if seen := r.seen.Load(); seen != nil {
				(*seen)(e)
			}
			if e.EventType == protocol.EventRunTerminal {
				t := new(protocol.Terminal)
				if bridge.Decode(e.Payload, t) == nil {
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

// take gives away the spare that has waited longest, nil where none lives.
func (l *launcher) take() *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.spares) > 0 {
		r := l.spares[0]
		l.spares = slices.Delete(l.spares, 0, 1)
		r.idle.Stop()
		if !isClosed(r.over) {
			return r
		}
	}
	return nil
}

// fillFirst starts a spare at once where none is left: the next command may be
// on its way.
func (l *launcher) fillFirst() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spares) == 0 {
		l.add()
	}
}

// fill has all spares ready.
func (l *launcher) fill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.spares) < l.most && l.add() {
	}
}

// add starts a spare where there is room for one; the lock is held.
func (l *launcher) add() bool {
	if l.closed || len(l.spares) >= l.most {
		return false
	}
	r, err := l.prepare()
	if err != nil {
		return false // the next command tells why
	}
	l.spares = append(l.spares, r)
	r.idle = time.AfterFunc(spareLife, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if i := slices.Index(l.spares, r); i >= 0 {
			l.spares = slices.Delete(l.spares, i, i+1)
			go r.client.Close()
		}
	})
	return true
}

// close ends the spares; there are none any more.
func (l *launcher) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	for r := l.take(); r != nil; r = l.take() {
		go r.client.Close()
	}
}
