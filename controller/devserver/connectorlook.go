package devserver

import (
	"context"
	"slices"
)

// Pend gives a frame to the next session in its register_ack.
func (c *Connector) Pend(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, frame)
}

// Registered tells whether a connector is there.
func (c *Connector) Registered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != nil
}

// Transport is that of the present session, "websocket" or "https"; empty where
// no connector is there. A session is the present one after its register_ack.
func (c *Connector) Transport() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return ""
	}
	return c.current.transport
}

// Frames are all frames that came, also doubled ones.
func (c *Connector) Frames() []ConnectorFrame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.frames)
}

// Delivered has each event of a run once, in the order of the numbers, and what
// the connector has done wrong.
func (c *Connector) Delivered(runID string) (events []ConnectorFrame, over bool, faults []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[runID]
	if r == nil {
		return nil, false, nil
	}
	return slices.Clone(r.events), r.over, slices.Clone(r.faults)
}

// Over tells whether the completion of a run is here.
func (c *Connector) Over(runID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[runID]
	return r != nil && r.over
}

// Await waits until ok is true; it is called at each change, without the lock.
func (c *Connector) Await(ctx context.Context, ok func() bool) error {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.closed.Done():
			return c.closed.Err()
		}
	}
}
