package connector

import (
	"context"
	"slices"
	"time"
)

const (
	// quantum is how many events of one run are sent before another's turn.
	quantum = 16
	// most and least window are how many events may be on their way without an
	// acknowledgement before the writer is careful: what stands in the buffers
	// of the network before a slow server delays every heartbeat. Then there is
	// half a window each paceEvery, so that a server that acknowledges rarely
	// gets all.
	mostWindow  = 8192
	leastWindow = 256
	paceEvery   = 250 * time.Millisecond
	// burst is how many frames go by WebSocket, and how many in a POST, before
	// it is looked whether a heartbeat is due: that goes before all events that
	// wait, and behind so many at most. A POST is a round trip.
	burst     = 64
	burstPoll = 1024
	// lookEvery is how often the writer looks for acknowledgements that do not
	// come.
	lookEvery = time.Second
)

// write sends what there is, in this order: urgent frames, answers and requests,
// then events, the runs in turn. A slow server slows it down and nothing else.
func (s *session) write(ctx context.Context) error {
	if err := s.pipe.Write(ctx, [][]byte{s.c.offer()}); err != nil {
		return err
	}
	s.setTargets()
	look := time.NewTicker(min(lookEvery, s.c.cfg.Times.EventAck/4))
	defer look.Stop()
	released := false
	for {
		b, err := s.collect()
		if err != nil {
			return err
		}
		if len(b.frames) > 0 {
			if err := s.pipe.Write(ctx, b.frames); err != nil {
				return err
			}
			s.wrote(b)
		}
		if !released && s.atTargets() {
			released = true
			go s.release(ctx)
		}
		select { // also while there is always something to send
		case <-look.C:
			if err := s.look(); err != nil {
				return err
			}
		default:
		}
		if len(b.frames) > 0 {
			continue
		}
		pace := time.NewTimer(paceEvery)
		if !b.held {
			pace.Stop()
		}
		select {
		case <-pace.C:
		case <-s.wakeup:
		case <-s.c.wake:
			if err := s.gather(ctx); err != nil {
				return err
			}
		case <-look.C:
			if err := s.look(); err != nil {
				return err
			}
		case <-ctx.Done():
			pace.Stop()
			return context.Cause(ctx)
		}
		pace.Stop()
	}
}

// gather waits for more to send with what there is, where the server wants that
// (row 4). What is urgent does not wait.
func (s *session) gather(ctx context.Context) error {
	s.c.mu.Lock()
	d := s.c.gather
	s.c.mu.Unlock()
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.wakeup:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// batch is what is sent at once.
type batch struct {
	frames  [][]byte
	size    int
	room    int // frames that may be added
	answers []*answer
	held    bool // events wait for acknowledgements
}

func (b *batch) add(frame []byte) {
	b.frames = append(b.frames, frame)
	b.size += len(frame)
	b.room--
}

// collect takes the next batch. Only the writer calls it.
func (s *session) collect() (*batch, error) {
	b := &batch{room: s.burst}
	s.mu.Lock()
	for _, frame := range s.urgent {
		b.add(frame)
	}
	s.urgent = nil
	s.mu.Unlock()
	c := s.c
	c.mu.Lock()
	most, limit, now := c.batch, min(c.frame, c.batch), time.Now()
	for _, a := range c.answers {
		// Written is not received: an end is told to a server that has it.
		if a.session == s.number || a.run != nil && a.run.out.Acked() < a.seq || b.size > most || b.room <= 0 {
			continue
		}
		b.answers = append(b.answers, a)
		b.add(a.body)
	}
	large := 0
	for _, a := range c.asks {
		switch {
		case a.session == s.number || now.Before(a.hold) || b.size > most || b.room <= 0:
			continue
		case len(a.body) > limit:
			large++
			continue
		}
		a.session = s.number
		b.add(a.body)
	}
	spools := slices.Clone(c.spools)
	c.mu.Unlock()
	if large > 0 {
		go c.call(func() { c.giveUpLarge(limit) })
	}
	return b, s.events(b, spools, most, limit, now)
}

// events adds events of the runs in turn.
func (s *session) events(b *batch, spools []*spool, most, limit int, now time.Time) error {
	room := min(b.room, s.allowance(now))
	if b.held = room <= 0; b.held {
		return nil
	}
	for i := range spools {
		sp := spools[(s.first+i)%len(spools)]
		at := s.cursor(sp)
		for range quantum {
			frame, ok, err := sp.out.Next(max(at.sent, sp.out.Acked()))
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			body := frame.Body
			if frame.Gap {
				body = gapFrame(sp.runID, frame.From, frame.Seq, stamp())
			}
			body = shorten(body, limit)
			if room <= 0 || b.size > 0 && b.size+len(body) > most {
				s.first = (s.first + i) % len(spools) // it goes on here
				return nil
			}
			b.add(body)
			room--
			s.credit--
			if at.since.IsZero() {
				at.since = now
			}
			at.sent = frame.Seq
		}
	}
	if len(spools) > 0 {
		s.first = (s.first + 1) % len(spools)
	}
	return nil
}

// allowance is how many events may be sent now.
func (s *session) allowance(now time.Time) int {
	window := int(s.window.Load())
	if room := window - s.onTheWay(); room > 0 {
		return room
	}
	if now.Sub(s.paced) >= paceEvery {
		s.paced, s.credit = now, window/2
	}
	return s.credit
}

// adapt makes the window smaller where the answer to a heartbeat took a
// considerable part of the time that it has, and larger where it came at once:
// what a slow server has before it delays every heartbeat (row 5).
func (s *session) adapt(took time.Duration) {
	window, most := s.window.Load(), s.c.cfg.Times.HeartbeatAnswer
	switch {
	case took >= most/4:
		window /= 2
	case took <= most/20:
		window *= 2
	}
	s.window.Store(within(leastWindow, window, mostWindow))
}

// onTheWay counts the events that were sent and are not acknowledged.
func (s *session) onTheWay() (n int) {
	for sp, at := range s.cursors {
		n += max(0, int(at.sent-sp.out.Acked()))
	}
	return n
}

func (s *session) cursor(sp *spool) *cursor {
	at := s.cursors[sp]
	if at == nil {
		at = &cursor{acked: sp.out.Acked()}
		s.cursors[sp] = at
	}
	return at
}

// wrote forgets answers that were sent, but for those that the server does not ask
// for again: of them it has to be known that they were read.
func (s *session) wrote(b *batch) {
	if len(b.answers) == 0 {
		return
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, a := range b.answers {
		s.placed++
		a.session, a.place, a.run = s.number, s.placed, nil // the server has the events
	}
	s.c.answers = slices.DeleteFunc(s.c.answers, func(a *answer) bool {
		return a.session == s.number && (!a.told || s.posts)
	})
}

// mark remembers which answers were written before a heartbeat; the connector's
// lock is not held.
func (s *session) mark(heartbeat string) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.marks = append(s.marks, mark{heartbeat: heartbeat, placed: s.placed})
	s.marks = s.marks[max(0, len(s.marks)-maxMarks):]
}

// maxMarks bounds the heartbeats that are remembered, for a server whose answers
// name others. Two that are not answered end the session.
const maxMarks = 8

// confirm forgets the answers that were written before a heartbeat that the server
// has answered: it reads in order. Without a name it is the oldest one (row 1).
func (s *session) confirm(heartbeat string) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	i := slices.IndexFunc(s.marks, func(m mark) bool { return heartbeat == "" || m.heartbeat == heartbeat })
	if i < 0 {
		return
	}
	upTo := s.marks[i].placed
	s.marks = s.marks[i+1:]
	s.c.answers = slices.DeleteFunc(s.c.answers, func(a *answer) bool { return a.session == s.number && a.place <= upTo })
}

// setTargets remembers what there is to be sent again before new work (row 6).
func (s *session) setTargets() {
	for _, sp := range s.c.spooled() {
		s.cursor(sp).target = sp.out.Last()
	}
}

func (s *session) atTargets() bool {
	for sp, at := range s.cursors {
		if max(at.sent, sp.out.Acked()) < at.target {
			return false
		}
	}
	return true
}

// look ends a session whose server does not acknowledge (row 9).
func (s *session) look() error {
	for sp, at := range s.cursors {
		acked := sp.out.Acked()
		switch {
		case acked >= at.sent:
			at.since = time.Time{}
			if sp.finished() {
				delete(s.cursors, sp)
			}
		case acked > at.acked:
			at.since = time.Now()
		case time.Since(at.since) >= s.c.cfg.Times.EventAck:
			return errNoEventAck
		}
		at.acked = acked
	}
	return nil
}
