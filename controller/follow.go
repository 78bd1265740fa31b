package controller

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"prp/protocol"
	"prp/protocol/jsonl"
)

// messageLog is what is kept of the stream. It is guarded by the client's lock.
type messageLog struct {
	limit   int // of size, in bytes of lines
	size    int
	entries []logEntry
	first   int64 // the place of entries[0] in the stream, from 0
}

type logEntry struct {
	message protocol.StreamMessage
	size    int
}

// add appends a message and forgets the oldest ones past the limit.
func (l *messageLog) add(m protocol.StreamMessage, size int) {
	l.entries = append(l.entries, logEntry{m, size})
	l.size += size
	for l.size > l.limit && len(l.entries) > 1 {
		l.size -= l.entries[0].size
		l.entries[0] = logEntry{}
		l.entries = l.entries[1:]
		l.first++
	}
}

// take decodes, checks and records one line; false is a fault. After a fault
// nothing is recorded any more.
func (c *Client) take(d *protocol.Decoder, number int64, line []byte, flags jsonl.Flag) (protocol.StreamMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil {
		return protocol.StreamMessage{}, false
	}
	m, err := decodeLine(d, number, line, flags, c.cfg.MaxLineBytes)
	if err == nil && m.Kind == protocol.KindEvent {
		if path, detail := c.bound.check(m.Event); detail != "" {
			err = &BindingError{Line: number, Path: path, Detail: detail}
		}
	}
	if err != nil {
		c.fault = err
		c.out.failPending()
		c.notify()
		return protocol.StreamMessage{}, false
	}
	c.log.add(m, len(line))
	if m.Kind == protocol.KindReceipt {
		c.out.answer(*m.Receipt)
	}
	c.notify()
	return m, true
}

// decodeLine decodes one line of a stream.
func decodeLine(d *protocol.Decoder, number int64, line []byte, flags jsonl.Flag, limit int) (protocol.StreamMessage, error) {
	if flags&jsonl.TooLong != 0 {
		return protocol.StreamMessage{}, &BindingError{
			Line: number, Detail: fmt.Sprintf("expected at most %d bytes, got more", limit),
		}
	}
	m, err := d.Stream(line)
	if field := new(protocol.FieldError); errors.As(err, &field) {
		return protocol.StreamMessage{}, &BindingError{
			Line: number, Path: field.Path, Detail: fmt.Sprintf("expected %s, got %s", field.Want, field.Got),
		}
	}
	if err != nil {
		return protocol.StreamMessage{}, &BindingError{Line: number, Detail: err.Error()}
	}
	return m, nil
}

// Messages yields every message of the stream in order, from the first on,
// until the run is over: events, receipts and diagnostics. It blocks while
// there is nothing new. The last pair carries an error where the stream ended
// badly: a [*BindingError], [ErrLagged], or the cause of ctx. Each call is a
// reader of its own. Messages share their payload with every other reader and
// must not be changed.
func (c *Client) Messages(ctx context.Context) iter.Seq2[protocol.StreamMessage, error] {
	return func(yield func(protocol.StreamMessage, error) bool) {
		var batch [64]protocol.StreamMessage
		for at := int64(0); ; {
			n, err := c.next(ctx, at, batch[:])
			for _, m := range batch[:n] {
				if !yield(m, nil) {
					return
				}
			}
			at += int64(n)
			if err != nil {
				yield(protocol.StreamMessage{}, err)
				return
			}
			if n == 0 {
				return
			}
		}
	}
}

// Events is [Client.Messages] without receipts and diagnostics.
func (c *Client) Events(ctx context.Context) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		for m, err := range c.Messages(ctx) {
			switch {
			case err != nil:
				yield(protocol.Event{}, err)
				return
			case m.Kind == protocol.KindEvent && !yield(*m.Event, nil):
				return
			}
		}
	}
}

// next copies messages from place at on into batch. None and no error is the
// end of the stream.
func (c *Client) next(ctx context.Context, at int64, batch []protocol.StreamMessage) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if at < c.log.first {
			return 0, ErrLagged
		}
		if have := c.log.entries[at-c.log.first:]; len(have) > 0 {
			n := min(len(have), len(batch))
			for i, e := range have[:n] {
				batch[i] = e.message
			}
			return n, nil
		}
		switch {
		case c.fault != nil:
			return 0, c.fault
		case c.over:
			return 0, nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		}
		c.await(ctx.Done())
	}
}

// notify wakes everybody who awaits a change. The lock is held.
func (c *Client) notify() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// await gives the lock up until there is a change or stop is closed.
func (c *Client) await(stop <-chan struct{}) {
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	changed := c.changed
	c.mu.Unlock()
	select {
	case <-changed:
	case <-stop:
	}
	c.mu.Lock()
}

// Trace is a run as its controller saw it.
type Trace struct {
	RunID, SessionID, RunnerID string
	// Messages is the stream in order. Dropped counts those before it that
	// were not kept ([Config.MaxRetainedBytes]).
	Messages []protocol.StreamMessage
	Dropped  int64
	// Terminal is the payload of run.terminal, nil where there was none.
	Terminal *protocol.Terminal
	// Exit is how the runner process ended.
	Exit protocol.ExitFact
	// Stderr is the end of what the runner wrote to its stderr.
	Stderr string
	// Forced names what Close had to use against a runner that did not end
	// with its stdin: "terminate" or "kill"; else it is empty.
	Forced string
}

// Events are the events among the messages.
func (t *Trace) Events() []protocol.Event {
	events := make([]protocol.Event, 0, len(t.Messages))
	for _, m := range t.Messages {
		if m.Kind == protocol.KindEvent {
			events = append(events, *m.Event)
		}
	}
	return events
}

// Wait blocks until the run is over and returns its trace. The error is the
// cause of ctx, and then there is no trace; or a [*BindingError] or
// [ErrNoTerminal] beside the trace. Wait ends nothing: a run whose turn has
// ended may want [Client.CloseSession] or [Client.Close].
func (c *Client) Wait(ctx context.Context) (*Trace, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &Trace{
		RunID: c.cfg.RunID, SessionID: c.cfg.SessionID, RunnerID: c.cfg.RunnerID,
		Messages: make([]protocol.StreamMessage, 0, len(c.log.entries)),
		Dropped:  c.log.first,
		Exit:     c.exit,
		Stderr:   c.tail.String(),
		Forced:   c.forced,
	}
	for _, e := range c.log.entries {
		t.Messages = append(t.Messages, e.message)
	}
	terminal, err := c.log.terminal()
	t.Terminal = terminal
	switch {
	case c.fault != nil:
		return t, c.fault
	case err != nil:
		return t, err
	}
	return t, nil
}

// terminal is the payload of run.terminal: the last event of the log.
func (l *messageLog) terminal() (*protocol.Terminal, error) {
	for i := len(l.entries) - 1; i >= 0; i-- {
		m := l.entries[i].message
		if m.Kind != protocol.KindEvent {
			continue
		}
		if m.Event.EventType != protocol.EventRunTerminal {
			break
		}
		t, ok := readTerminal(m.Event.Payload)
		if !ok {
			return nil, errors.New("run.terminal: expected the payload of a terminal, got another shape")
		}
		return t, nil
	}
	return nil, ErrNoTerminal
}
