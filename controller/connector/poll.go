package connector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"prp/controller/bridge"
)

// MessagesPath is where a server has the HTTPS fallback (row 17).
const MessagesPath = "/connector/v1/messages"

const (
	// postTries is how often a batch is posted before the session is lost. It
	// may be repeated: the server knows it by its cursor.
	postTries = 3
	// postWait bounds one post, and a poll beyond the time that the server was
	// asked to wait.
	postWait = 30 * time.Second
	// maxPoll bounds what one poll brings, in bytes.
	maxPoll = 8 << 20
)

// poller is the HTTPS fallback as a pipe (row 17). Frames go up by POST and come
// down by a long poll; each way has a cursor, so that a request that is repeated
// brings nothing twice.
type poller struct {
	c       *Connector
	session string
	up      int64 // frames that the server has
	in      chan []byte
	// known is closed when the server knows the session.
	known chan struct{}
}

func newPoller(c *Connector) *poller {
	return &poller{c: c, session: newID(), in: make(chan []byte), known: make(chan struct{})}
}

// upward is the body of a post. Cursor is the number of frames before these.
type upward struct {
	SessionID string            `json:"session_id"`
	Cursor    int64             `json:"cursor"`
	Messages  []json.RawMessage `json:"messages"`
}

// downward is what a poll brings. Cursor is the number of frames up to the last.
type downward struct {
	Cursor   int64             `json:"cursor"`
	Messages []json.RawMessage `json:"messages"`
}

// run polls while serve serves the session, and returns when both have ended.
func (p *poller) run(ctx context.Context, serve func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var polling sync.WaitGroup
	polling.Go(func() { cancel(p.poll(ctx)) })
	err := serve(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(err)
	polling.Wait()
	return err
}

// Read implements pipe.
func (p *poller) Read(ctx context.Context) ([]byte, error) {
	select {
	case frame := <-p.in:
		return frame, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Write implements pipe: the frames are one post.
func (p *poller) Write(ctx context.Context, frames [][]byte) error {
	body := upward{SessionID: p.session, Cursor: p.up}
	for _, f := range frames {
		body.Messages = append(body.Messages, f)
	}
	raw := marshal(body)
	backoff := p.c.cfg.Link.Backoff
	var err error
	for range postTries {
		if err = p.post(ctx, raw); err == nil {
			if p.up == 0 {
				close(p.known)
			}
			p.up += int64(len(frames))
			return nil
		}
		if ctx.Err() != nil || refuses(err) || tooBig(err) || bridge.Pause(ctx, backoff.Next()) != nil {
			break
		}
	}
	return err
}

func (p *poller) post(ctx context.Context, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, postWait)
	defer cancel()
	_, err := p.do(ctx, http.MethodPost, p.c.cfg.PollURL, raw)
	return err
}

// poll brings frames until the session ends.
func (p *poller) poll(ctx context.Context) error {
	select {
	case <-p.known:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	cursor, failed := int64(0), 0
	backoff := p.c.cfg.Link.Backoff
	for {
		d, err := p.once(ctx, cursor)
		if err != nil {
			failed++
			if ctx.Err() != nil || refuses(err) || failed >= postTries {
				return err
			}
			if err := bridge.Pause(ctx, backoff.Next()); err != nil {
				return err
			}
			continue
		}
		failed = 0
		backoff.Reset()
		fresh := d.Cursor - cursor
		if fresh < 0 || fresh > int64(len(d.Messages)) {
			return fmt.Errorf("expected frames from %d on, got %d up to %d", cursor, len(d.Messages), d.Cursor)
		}
		for _, m := range d.Messages[int64(len(d.Messages))-fresh:] {
			select {
			case p.in <- m:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		cursor = d.Cursor
	}
}

func (p *poller) once(ctx context.Context, cursor int64) (downward, error) {
	wait := p.c.cfg.Times.Poll
	ctx, cancel := context.WithTimeout(ctx, wait+postWait)
	defer cancel()
	query := url.Values{
		"session_id": {p.session}, "cursor": {strconv.FormatInt(cursor, 10)},
		"wait": {strconv.FormatFloat(wait.Seconds(), 'f', -1, 64)},
	}
	var d downward
	raw, err := p.do(ctx, http.MethodGet, p.c.cfg.PollURL+"?"+query.Encode(), nil)
	if err == nil {
		err = bridge.Decode(raw, &d)
	}
	return d, err
}

// statusError is an HTTP status of the fallback other than 200.
type statusError int

// Error implements error.
func (e statusError) Error() string {
	return fmt.Sprintf("expected the HTTPS fallback to answer with status 200, got %d", int(e))
}

// do is one request with the connector's identity.
func (p *poller) do(ctx context.Context, method, address string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address of the HTTPS fallback cannot be used")
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token := p.c.cfg.Link.Token; token != nil {
		text, err := token()
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+text)
	}
	answer, err := p.c.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the HTTPS fallback: %w", bridge.Lost(unwrapURL(err)))
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxPoll+1))
	switch {
	case err != nil:
		return nil, bridge.Lost(err)
	case answer.StatusCode != http.StatusOK:
		return nil, statusError(answer.StatusCode)
	case len(raw) > maxPoll:
		return nil, fmt.Errorf("expected at most %d bytes, got more", maxPoll)
	}
	return raw, nil
}

// unwrapURL takes the address out of an error.
func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
