package connector

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pipe is a transport: frames in order, each way.
type pipe interface {
	// Read blocks until a frame comes.
	Read(ctx context.Context) ([]byte, error)
	// Write sends frames. After an error the pipe is lost, and some of them may
	// have arrived.
	Write(ctx context.Context, frames [][]byte) error
}

// Ends of a session that are no loss of the pipe.
var (
	errNoRegister  = errors.New("the server has not answered register in time")
	errNoHeartbeat = errors.New("the server has not answered two heartbeats")
	errNoEventAck  = errors.New("the server has not acknowledged events in time")
	errRenew       = errors.New("the token is about to expire, and there is a newer one")
)

// reasonWait is how long a connection that cannot be written is read for the
// server's reason.
const reasonWait = time.Second

// session is one registered connection over either transport.
type session struct {
	c      *Connector
	pipe   pipe
	number int64
	wakeup chan struct{} // as Connector.wake, for urgent frames
	// inbox is between the reader and the loop, which writes to the disk: what
	// is read behind requests, as the answer to a heartbeat, passes them.
	inbox  chan inbound
	burst  int          // frames that are written before urgent ones are looked for
	window atomic.Int64 // events on their way
	early  []inbound    // what came before the answer to register
	posts  bool         // what was written was read: a POST has an answer

	// placed counts the answers that were written, marks are the heartbeats that
	// may be answered; guarded by the connector's lock.
	placed int64
	marks  []mark

	// What follows belongs to the writer.
	cursors map[*spool]*cursor
	first   int // the spool that is served next
	paced   time.Time
	credit  int // events that may be sent beyond the window

	mu     sync.Mutex
	urgent [][]byte
	beats  int // heartbeats that were not answered
	acked  chan struct{}
	held   []inbound // requests before the events were sent again
	caught bool
}

// mark is a heartbeat, and how many answers were written before it.
type mark struct {
	heartbeat string
	placed    int64
}

// cursor is how far the events of a run were sent in this session.
type cursor struct {
	sent, acked, target int64
	since               time.Time // since when what was sent is not acknowledged
}

func newSession(c *Connector, p pipe, transport string) *session {
	s := &session{
		c: c, pipe: p, burst: burst, inbox: make(chan inbound, maxHeld), wakeup: make(chan struct{}, 1), cursors: map[*spool]*cursor{}, acked: make(chan struct{}, 1),
	}
	if transport == transportPoll {
		s.burst, s.posts = burstPoll, true
	}
	s.window.Store(mostWindow)
	return s
}

// serve is one session from register to its end. Losing it stops nothing.
func (c *Connector) serve(ctx context.Context, p pipe, transport string) error {
	s := newSession(c, p, transport)
	ack, err := s.register(ctx)
	if err != nil {
		return err
	}
	s.configure(ack)
	s.begin(transport)
	defer s.end()
	s.c.cfg.Report("connected by " + transport)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	readEnded := make(chan struct{})
	parts.Go(func() {
		defer close(readEnded)
		cancel(s.read(ctx))
	})
	parts.Go(func() {
		err := s.write(ctx)
		if !errors.Is(err, errNoEventAck) && ctx.Err() == nil {
			// A server that closes says why, and the reader is told.
			select {
			case <-readEnded:
			case <-time.After(reasonWait):
			}
		}
		cancel(err)
	})
	parts.Go(func() { s.feed(ctx) })
	for _, part := range []func(context.Context) error{s.beat, s.renew} {
		parts.Go(func() { cancel(part(ctx)) })
	}
	for _, raw := range ack.PendingCommands {
		s.deliver(ctx, decodeFrame(raw))
	}
	for _, in := range s.early {
		s.deliver(ctx, in)
	}
	<-ctx.Done()
	parts.Wait()
	return context.Cause(ctx)
}

func (c *Connector) spooled() []*spool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spools)
}

func (s *session) begin(transport string) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Sessions++
	s.number = c.state.Sessions
	c.session = s.number
	c.state.Connected, c.state.Transport, c.state.Error = true, transport, ""
	c.state.Since, c.state.LastContact = time.Now(), time.Now()
}

func (s *session) end() {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = 0
	c.state.Connected, c.state.Transport, c.state.Since = false, "", time.Now()
}

// read reads frames until the pipe is lost.
func (s *session) read(ctx context.Context) error {
	for {
		frame, err := s.pipe.Read(ctx)
		if err != nil {
			return err
		}
		s.c.mu.Lock()
		s.c.state.LastContact = time.Now()
		s.c.mu.Unlock()
		in := decodeFrame(frame)
		switch {
		case in.bad == nil && in.kind == typeEventAck:
			if sp := s.c.spoolOf(in.runID); sp != nil {
				s.ack(sp, in.seq)
			}
		case in.bad == nil && in.kind == typeHeartbeatAck:
			s.mu.Lock()
			s.beats = 0
			s.mu.Unlock()
			s.confirm(in.replyTo)
			signal(s.acked)
		default:
			s.deliver(ctx, in)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (c *Connector) spoolOf(runID string) *spool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.spools, func(s *spool) bool { return s.runID == runID })
	if i < 0 {
		return nil
	}
	return c.spools[i]
}

// ack takes a cumulative acknowledgement (row 9).
func (s *session) ack(sp *spool, seq int64) {
	if err := sp.out.Ack(seq); err != nil {
		// It only means that more is sent again.
		s.c.cfg.Report("an acknowledgement cannot be recorded: " + err.Error())
	}
	s.c.nudge() // an answer may have waited for it
}

// maxHeld bounds the requests that wait until the events were sent again.
const maxHeld = 1024

// deliver hands a frame to the loop. New work waits until the events of the
// past were sent again (row 6), and what concerns that work with it.
func (s *session) deliver(ctx context.Context, in inbound) {
	s.mu.Lock()
	wait := !s.caught && in.bad == nil && len(s.held) < maxHeld &&
		(in.kind == typeCreateRun || slices.ContainsFunc(s.held, func(h inbound) bool { return h.runID == in.runID }))
	if wait {
		s.held = append(s.held, in)
	}
	s.mu.Unlock()
	if !wait {
		s.hand(ctx, in)
	}
}

func (s *session) hand(ctx context.Context, in inbound) {
	select {
	case s.inbox <- in:
	case <-ctx.Done():
	}
}

// feed gives the loop what was read, also what is left when the session ends.
func (s *session) feed(ctx context.Context) {
	give := func(in inbound) {
		select {
		case s.c.frames <- in:
		case <-s.c.over:
		}
	}
	for {
		select {
		case in := <-s.inbox:
			give(in)
			continue
		default:
		}
		select {
		case in := <-s.inbox:
			give(in)
		case <-ctx.Done():
			return
		}
	}
}

// release hands over what has waited; called by the writer once.
func (s *session) release(ctx context.Context) {
	for {
		s.mu.Lock()
		if len(s.held) == 0 {
			s.caught = true
			s.mu.Unlock()
			return
		}
		in := s.held[0]
		s.held = s.held[1:]
		s.mu.Unlock()
		s.hand(ctx, in)
	}
}

// beat sends heartbeats (row 5).
func (s *session) beat(ctx context.Context) error {
	for {
		s.c.mu.Lock()
		every := s.c.beat
		s.c.mu.Unlock()
		due := time.NewTimer(every)
		select {
		case <-due.C:
		case <-s.c.beatSoon:
		case <-ctx.Done():
		}
		due.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		mode, m := s.c.metrics()
		select {
		case <-s.acked: // a late answer to the one before
		default:
		}
		began, id := time.Now(), newID()
		s.mark(id)
		s.hurry(marshal(heartbeat{
			Type: typeHeartbeat, ID: id, ConnectorID: s.c.cfg.ID, Timestamp: stamp(), Mode: mode, Metrics: m,
		}))
		s.mu.Lock()
		s.beats++
		s.mu.Unlock()
		wait := time.NewTimer(s.c.cfg.Times.HeartbeatAnswer)
		select {
		case <-s.acked:
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
		s.adapt(time.Since(began))
		s.mu.Lock()
		missed := s.beats
		s.mu.Unlock()
		if missed >= 2 {
			return errNoHeartbeat
		}
	}
}

// renew ends a session whose token is about to end, where there is another one
// (row 18). Without one the server decides.
func (s *session) renew(ctx context.Context) error {
	if s.c.cfg.Renewed != nil {
		err := s.c.cfg.Renewed(ctx)
		if err == nil {
			return errRenew
		}
		if ctx.Err() == nil {
			s.c.cfg.Report(s.c.mask.String(err.Error()))
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// hurry queues a frame before all others.
func (s *session) hurry(frame []byte) {
	s.mu.Lock()
	s.urgent = append(s.urgent, frame)
	s.mu.Unlock()
	signal(s.wakeup)
}
