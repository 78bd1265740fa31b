package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// SendLine writes one line to the runner as it is, to see what the runner says
// to it: a tool for debugging. The line is made by line, which is called with
// the client's lock held and the number that the next command will have, and
// must have no newline; one is added. Nothing else is checked.
//
// The answer is not waited for: it is a receipt or a diagnostic among
// [Client.Messages]. Where the line uses up its number, the commands after that
// receipt go on behind it; one that is sent before it may be rejected as a
// [protocol.CodeSequenceGap]. The error is [ErrRunnerGone], [ErrClosed] or the
// cause of ctx; SendLine blocks as [Client.Send] does while commands wait.
func (c *Client) SendLine(ctx context.Context, line func(next int64) []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := c.canSend(ctx); err != nil {
			return fmt.Errorf("controller: line: %w", err)
		}
		text := line(c.out.next)
		if bytes.IndexByte(text, '\n') >= 0 {
			return errors.New("controller: line: expected one line, got a newline inside")
		}
		if c.out.hasRoom(len(text) + 1) {
			c.out.queued = append(append(c.out.queued, text...), '\n')
			c.wakeWriter()
			return nil
		}
		c.await(ctx.Done())
	}
}
