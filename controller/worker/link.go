package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"prp/controller/bridge"
)

func (w *Worker) linkConfig() bridge.LinkConfig {
	cfg := w.cfg.Link
	if token := cfg.Token; token != nil {
		masked := w.mask.Tokens(w.cfg.Secrets, token)
		cfg.Token = func() (string, error) {
			text, err := masked()
			if err == nil {
				w.token.Store(&text)
			}
			return text, err
		}
	}
	cfg.MaxFrame = MaxFrame
	// Each attempt is a change with the cause of the one before it. A cause is told
	// once, until there is another one or a connection in between.
	connected, told, before := false, "", cfg.Changed
	cfg.Changed = func(s bridge.LinkState) {
		switch {
		case s.Connected && !connected:
			w.cfg.Report("connected")
		case !s.Connected && s.Error != "" && s.Error != told:
			w.cfg.Report("not connected: " + w.mask.String(s.Error))
		}
		connected, told = s.Connected, s.Error
		if before != nil {
			before(s)
		}
	}
	return cfg
}

// secrets are the values that are masked now, with the token that was used last.
func (w *Worker) secrets() []string {
	list := slices.Clone(w.cfg.Secrets)
	if token := w.token.Load(); token != nil && !slices.Contains(list, *token) {
		list = append(list, *token)
	}
	return list
}

// session is one connection.
type session struct {
	w    *Worker
	conn *bridge.Conn
	in   chan inbound
	held []inbound // commands before the server has answered hello
}

// serve is one connection from hello to its end. Losing it stops nothing.
func (w *Worker) serve(ctx context.Context, conn *bridge.Conn) error {
	s := &session{w: w, conn: conn, in: make(chan inbound)}
	greeting, err := json.Marshal(hello{
		Event: "hello", Capabilities: w.Capabilities(), ProtocolVersion: ProtocolVersion, InstanceID: w.instance,
		LastSeq: w.outbox.Last(), AckSeq: w.outbox.Acked(),
	})
	if err != nil {
		return err
	}
	if err := conn.Write(ctx, greeting); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(s.read(ctx)) }()
	if err := s.greet(ctx); err != nil {
		return err
	}
	go func() { cancel(s.write(ctx)) }()
	for _, in := range s.held {
		s.deliver(ctx, in)
	}
	for {
		select {
		case in := <-s.in:
			s.deliver(ctx, in)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// greet waits for the server's answer to hello, which may move the cursor; a
// server that answers nothing has a moment (row 1).
func (s *session) greet(ctx context.Context) error {
	wait := time.NewTimer(s.w.cfg.HelloWait)
	defer wait.Stop()
	for {
		select {
		case in := <-s.in:
			if in.command != nil {
				s.held = append(s.held, in)
				continue
			}
			s.deliver(ctx, in)
			return nil
		case <-wait.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// read reads frames until the connection ends.
func (s *session) read(ctx context.Context) error {
	for {
		frame, isText, err := s.conn.Read(ctx)
		if err != nil {
			return err
		}
		in, err := decodeFrame(frame)
		if err != nil || !isText {
			s.w.ignored.Add(1)
			continue
		}
		select {
		case s.in <- in:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// deliver handles a frame: an acknowledgement at once, a command by the loop.
func (s *session) deliver(ctx context.Context, in inbound) {
	if in.command != nil {
		select {
		case s.w.commands <- in:
		case <-ctx.Done():
		}
		return
	}
	err := error(nil)
	if in.ackSeq > 0 {
		err = s.w.outbox.Ack(in.ackSeq)
	}
	if in.ackID != "" && err == nil {
		err = s.w.outbox.AckKey(in.ackID)
	}
	if err != nil {
		// It only means that more is sent again.
		s.w.cfg.Report(fmt.Sprintf("an acknowledgement cannot be recorded: %s", err))
	}
}

// write sends what waits, from the cursor on and each once, then what comes.
func (s *session) write(ctx context.Context) error {
	after := int64(0)
	for {
		changed := s.w.outbox.Changed()
		frame, ok, err := s.w.outbox.Next(after)
		if err != nil {
			return err
		}
		if !ok {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		body := frame.Body
		if frame.Gap {
			if body, err = json.Marshal(gap{Event: "gap", FromSeq: frame.From, ToSeq: frame.Seq}); err != nil {
				return err
			}
		}
		// Sent before the answer can come: an ack by id counts for what was sent.
		s.w.outbox.Sent(frame.Seq)
		if err := s.conn.Write(ctx, body); err != nil {
			return err
		}
		after = frame.Seq
	}
}
