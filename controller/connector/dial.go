package connector

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"prp/controller/bridge"
)

const (
	// fallbackAfter is how many WebSockets have to fail before HTTPS is used
	// (row 17).
	fallbackAfter = 3
	// minBatch is the least that a batch is halved to, in bytes.
	minBatch = 4 << 10
)

// Names of the transports in [State].
const (
	transportSocket = "websocket"
	transportPoll   = "https"
)

// socket is a WebSocket as a pipe: a frame is a text message.
type socket struct{ conn *bridge.Conn }

// Read implements pipe. A binary message is read like a text: it fails as JSON.
func (s socket) Read(ctx context.Context) ([]byte, error) {
	frame, _, err := s.conn.Read(ctx)
	return frame, err
}

// Write implements pipe.
func (s socket) Write(ctx context.Context, frames [][]byte) error {
	for _, frame := range frames {
		if err := s.conn.Write(ctx, frame); err != nil {
			return err
		}
	}
	return nil
}

// dial keeps a session, by WebSocket where that works and by HTTPS where it does
// not, until ctx ends or the server refuses. Sessions never overlap.
func (c *Connector) dial(ctx context.Context) error {
	backoff := c.cfg.Link.Backoff
	failed := 0
	var tried time.Time
	for {
		began := time.Now()
		conn, err := c.attempt(ctx, &failed, &tried)
		if conn != nil {
			failed = 0
			err = c.link.Serve(ctx, conn, func(ctx context.Context, conn *bridge.Conn) error {
				return c.serve(ctx, socket{conn}, transportSocket)
			})
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.lost(err)
		switch {
		case refuses(err):
			return errors.Join(ErrRefused, err)
		case tooBig(err):
			c.halve()
		case errors.Is(err, errRenew):
			continue
		}
		healthy := bridge.DefaultHealthyAfter
		if h := c.cfg.Link.HealthyAfter; h > 0 {
			healthy = h
		}
		if time.Since(began) >= healthy {
			backoff.Reset()
		}
		if bridge.Pause(ctx, backoff.Next()) != nil {
			return context.Cause(ctx)
		}
	}
}

// attempt tries a WebSocket, or has a session over HTTPS where too many have
// failed. It returns a connection where there is one.
func (c *Connector) attempt(ctx context.Context, failed *int, tried *time.Time) (*bridge.Conn, error) {
	fallback := c.cfg.PollURL != "" && *failed >= fallbackAfter
	if fallback && time.Since(*tried) < c.cfg.Times.Socket {
		return c.poll(ctx, tried)
	}
	*tried = time.Now()
	conn, err := c.link.Connect(ctx)
	if err == nil {
		return conn, nil
	}
	*failed++
	if !fallback || refuses(err) {
		return nil, err
	}
	return c.poll(ctx, tried)
}

// poll has a session over HTTPS until it ends, or until there is a WebSocket
// again.
func (c *Connector) poll(ctx context.Context, tried *time.Time) (*bridge.Conn, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	p := newPoller(c)
	go func() {
		ended <- p.run(inner, func(ctx context.Context) error { return c.serve(ctx, p, transportPoll) })
	}()
	for {
		wait := time.NewTimer(time.Until(tried.Add(c.cfg.Times.Socket)))
		select {
		case err := <-ended:
			wait.Stop()
			return nil, err
		case <-wait.C:
		}
		*tried = time.Now()
		conn, err := c.link.Connect(inner)
		if err != nil {
			continue
		}
		cancel()
		<-ended // only one transport delivers at a time
		return conn, nil
	}
}

// lost tells the end of a session.
func (c *Connector) lost(err error) {
	why := "the connection was closed"
	if err != nil {
		why = c.mask.String(err.Error())
	}
	c.mu.Lock()
	known := c.state.Error == why
	c.state.Error = why
	c.mu.Unlock()
	if !known {
		c.cfg.Report("not connected: " + why)
	}
}

// halve makes batches smaller, after the server has found one too big (row 16).
func (c *Connector) halve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batch = max(minBatch, min(c.batch, c.frame)/2)
}

// refuses tells whether a server does not want this connector (row 16).
func refuses(err error) bool {
	status := statusOfHTTP(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden ||
		websocket.CloseStatus(err) == websocket.StatusPolicyViolation
}

// tooBig tells whether a server found a frame or a batch too big.
func tooBig(err error) bool {
	return statusOfHTTP(err) == http.StatusRequestEntityTooLarge ||
		websocket.CloseStatus(err) == websocket.StatusMessageTooBig
}

// statusOfHTTP is the HTTP status in an error, 0 where there is none.
func statusOfHTTP(err error) int {
	var upgrade *bridge.UpgradeError
	if errors.As(err, &upgrade) {
		return upgrade.Status
	}
	var status statusError
	if errors.As(err, &status) {
		return int(status)
	}
	return 0
}
