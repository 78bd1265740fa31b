package controller

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"prp/protocol"
)

// Command is what a controller wants; the client adds the number and the time.
type Command struct {
	// Type is the type of the command (spec section 2).
	Type protocol.CommandType
	// Payload is encoded as JSON and must give an object; nil is {}.
	// A json.RawMessage is sent as it is.
	Payload any
	// ID is the command id; empty is one that the client makes up. An id is
	// used once in a run.
	ID string
	// Deadline, where it is not zero, is the time after which the runner
	// refuses the command.
	Deadline time.Time
	// Precondition, where it is not nil, must hold for the command to be taken.
	Precondition *protocol.Precondition
}

// Send sends one command and waits for its receipt, which it returns where the
// command was accepted. The error is a [*RejectedError] with the runner's
// reason, [ErrRunnerGone], [ErrClosed], the cause of ctx, or [ErrNotSent] with
// why (its shape, its length, its id). Where ctx ends
// the wait, the command may still take effect.
//
// Commands of several goroutines go out in the order in which Send was
// entered. Send blocks while 4 MiB of commands wait for a runner that does not
// read.
func (c *Client) Send(ctx context.Context, cmd Command) (protocol.Receipt, error) {
	wait, err := c.Submit(ctx, cmd)
	if err != nil {
		return protocol.Receipt{}, err
	}
	return wait(ctx)
}

// Submit is the first half of [Client.Send]: the command has its place in the
// order of commands when it returns. The second half is wait, which may be
// called by any goroutine, or not at all.
func (c *Client) Submit(ctx context.Context, cmd Command) (wait func(context.Context) (protocol.Receipt, error), err error) {
	p, err := c.enqueue(ctx, cmd)
	if err != nil {
		return nil, fmt.Errorf("controller: %s: %w", cmd.Type, err)
	}
	return p.wait, nil
}

// wait waits for the receipt.
func (p *pending) wait(ctx context.Context) (protocol.Receipt, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		select {
		case <-p.done:
		default:
			return protocol.Receipt{}, fmt.Errorf("controller: %s: wait for the receipt: %w", p.kind, context.Cause(ctx))
		}
	}
	if p.err != nil {
		return p.receipt, fmt.Errorf("controller: %w", p.err)
	}
	return p.receipt, nil
}

// enqueue numbers the command and puts its line into the queue, as soon as
// there is room.
func (c *Client) enqueue(ctx context.Context, cmd Command) (*pending, error) {
	payload, err := encodePayload(cmd.Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := c.canSend(ctx); err != nil {
			return nil, err
		}
		line, wire, err := c.encode(cmd, payload)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
		}
		if c.out.hasRoom(len(line)) {
			return c.put(cmd, wire, line), nil
		}
		c.await(ctx.Done())
	}
}

// canSend says why no command can be sent now.
func (c *Client) canSend(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.over, c.out.broken, c.fault != nil:
		return ErrRunnerGone
	case c.out.ending:
		if c.closeWasAsked() {
			return ErrClosed
		}
		return ErrRunnerGone
	}
	return nil
}

// put makes the command pending under the number that its line carries.
func (c *Client) put(cmd Command, wire protocol.Command, line []byte) *pending {
	p := &pending{kind: cmd.Type, seq: wire.ControllerSeq, era: c.out.era, done: make(chan struct{})}
	c.out.next++
	c.out.pending[wire.CommandID] = p
	if cmd.ID != "" {
		c.out.given[cmd.ID] = true
	}
	c.out.queued = append(c.out.queued, line...)
	c.wakeWriter()
	return p
}

// encode makes the line of the command with the next number, checked as the
// runner will check it: a line that the runner cannot even read would get no
// receipt, or one that does not consume its number.
func (c *Client) encode(cmd Command, payload json.RawMessage) ([]byte, protocol.Command, error) {
	wire := protocol.Command{
		Schema:        protocol.SchemaCommand,
		CommandID:     cmd.ID,
		ControllerSeq: c.out.next,
		Type:          cmd.Type,
		IssuedAt:      time.Now().UTC(),
		Precondition:  cmd.Precondition,
		Payload:       payload,
	}
	if cmd.ID == "" {
		wire.CommandID = "command_" + rand.Text()
	} else if c.out.given[cmd.ID] {
		return nil, wire, fmt.Errorf("%w: %q", ErrCommandIDUsed, cmd.ID)
	}
	if !cmd.Deadline.IsZero() {
		deadline := cmd.Deadline.UTC()
		wire.DeadlineAt = &deadline
	}
	line := protocol.AppendCommand(nil, &wire)
	if n := len(line) - 1; n > c.cfg.MaxCommandBytes {
		return nil, wire, fmt.Errorf("expected a command of at most %d bytes, got %d", c.cfg.MaxCommandBytes, n)
	}
	if _, fault := c.out.decoder.Command(line[:len(line)-1]); fault != nil {
		return nil, wire, fault
	}
	return line, wire, nil
}

// encodePayload is the payload as JSON.
func encodePayload(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return json.RawMessage("{}"), nil
	case json.RawMessage:
		if len(v) == 0 {
			return nil, errors.New("expected a payload object, got an empty text")
		}
		if err := protocol.CheckJSON(v); err != nil {
			return nil, fmt.Errorf("payload: %w", err)
		}
		return v, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	return raw, nil
}
