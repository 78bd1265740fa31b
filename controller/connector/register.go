package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// register says who is there and waits for the answer (row 3).
func (s *session) register(ctx context.Context) (*registerAck, error) {
	c := s.c
	request := register{
		Type: typeRegister, ID: newID(), ConnectorID: c.cfg.ID, Version: c.cfg.Version, Host: c.cfg.Host,
		Adapters: c.adapters(), ProtocolVersion: ProtocolVersion, InstanceID: c.instance, Resume: map[string]int64{},
	}
	for _, sp := range c.spooled() {
		request.Resume[sp.runID] = sp.out.Acked()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Times.Register, errNoRegister)
	defer cancel()
	fail := func(err error) (*registerAck, error) {
		if errors.Is(context.Cause(ctx), errNoRegister) {
			err = errNoRegister
		}
		return nil, err
	}
	if err := s.pipe.Write(ctx, [][]byte{marshal(request)}); err != nil {
		return fail(err)
	}
	for {
		frame, err := s.pipe.Read(ctx)
		if err != nil {
			return fail(err)
		}
		in := decodeFrame(frame)
		switch {
		case in.kind == typeRegisterAck && in.bad == nil:
			return in.ack, nil
		case in.kind == typeError && in.bad == nil:
			return fail(fmt.Errorf("the server has answered register with %w", in.err))
		case len(s.early) < maxHeld:
			s.early = append(s.early, in)
		}
	}
}

// adapters are the runtimes of the agents, each once.
func (c *Connector) adapters() []string {
	list := []string{}
	for _, a := range c.cfg.Agents {
		if !slices.Contains(list, a.Runtime) {
			list = append(list, a.Runtime)
		}
	}
	return list
}

// configure takes what the server sets, within bounds (row 4), and how far it
// has come.
func (s *session) configure(ack *registerAck) {
	c, k, t := s.c, ack.Config, s.c.cfg.Times
	c.mu.Lock()
	c.beat, c.frame, c.gather = t.Heartbeat, maxFrame, 0
	if k.HeartbeatIntervalS > 0 {
		c.beat = within(t.MinHeartbeat, seconds(k.HeartbeatIntervalS), maxBeat)
	}
	if k.MaxFrameBytes > 0 {
		c.frame = int(within(minFrame, k.MaxFrameBytes, maxFrame))
	}
	if k.EventBatchMS > 0 {
		c.gather = within(0, seconds(k.EventBatchMS/1000), maxBatchWait)
	}
	c.mu.Unlock()
	room := c.cfg.MaxConcurrentRuns
	if k.MaxConcurrentRuns > 0 {
		room = within(1, k.MaxConcurrentRuns, room)
	}
	c.call(func() {
		c.room = room
		c.schedule()
	})
	for _, sp := range c.spooled() {
		if seq, ok := ack.Acked[sp.runID]; ok {
			s.ack(sp, seq)
		}
	}
}

// seconds is a duration that a number may be too large for.
func seconds(n float64) time.Duration {
	return time.Duration(min(n, (24*time.Hour).Seconds()) * float64(time.Second))
}

func within[T int | int64 | time.Duration](least, value, most T) T {
	return min(max(least, value), most)
}

// offer is the frame of the capabilities.
func (c *Connector) offer() []byte {
	k := capabilities{Type: typeCapabilities, ID: newID(), ConnectorID: c.cfg.ID, Agents: []offeredAgent{}}
	for i := range c.cfg.Agents {
		k.Agents = append(k.Agents, c.cfg.Agents[i].offered())
	}
	return marshal(k)
}
