package devserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"prp/controller/bridge"
)

// maxBatch bounds a post, in bytes.
const maxBatch = 4 << 20

// pollSession is a session over the HTTPS fallback.
type pollSession struct {
	peer    *peer
	up      int64             // frames that came
	base    int64             // frames that the connector has acknowledged
	down    []json.RawMessage // those after base
	more    chan struct{}     // closed at the next frame
	ended   bool
	serving chan struct{} // of size one: one post at a time
	calls   int           // polls and posts so far
	calling int           // those that are under way
	absent  *time.Timer
}

// errEnded is a session that is over.
var errEnded = errors.New("the session is over")

// lease is how long a session without a call is taken for one that is there.
const lease = time.Second

// called takes note of a poll or a post; the lock is held.
func (s *pollSession) called(c *Connector) {
	if c.current == nil && s.peer.number > 0 && !s.ended {
		c.current = s.peer // it is back
	}
	if s.absent != nil {
		s.absent.Stop()
	}
	s.calls++ // where Stop comes too late, left knows by that
	s.calling++
}

// waits begins the lease after a call. A connector may end before its first poll.
func (s *pollSession) waits(c *Connector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.calling--; s.calling == 0 {
		calls := s.calls
		s.absent = time.AfterFunc(lease, func() { c.left(s, calls) })
	}
}

// left ends the lease of a session, unless there was another call meanwhile.
func (c *Connector) left(s *pollSession, calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.calls == calls {
		c.forget(s.peer)
	}
}

// messages is the HTTPS fallback (row 17).
func (c *Connector) messages(rw http.ResponseWriter, r *http.Request, id string) {
	kind := "poll"
	if r.Method == http.MethodPost {
		kind = "post"
	}
	c.ordered(rw, r, kind, func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			c.post(rw, r, id)
			return
		}
		c.poll(rw, r)
	})
}

// unheard is an answer that nobody gets.
type unheard struct{}

// Header implements [http.ResponseWriter].
func (unheard) Header() http.Header { return http.Header{} }

// WriteHeader implements [http.ResponseWriter].
func (unheard) WriteHeader(int) {}

// Write implements [http.ResponseWriter].
func (unheard) Write(b []byte) (int, error) { return len(b), nil }

// ordered serves a call, or errs at it as the rules say.
func (c *Connector) ordered(rw http.ResponseWriter, r *http.Request, kind string, serve http.HandlerFunc) {
	do := c.rules.next(kind)
	switch {
	case numberOf(do, HTTP) > 0:
		http.Error(rw, "as ordered", numberOf(do, HTTP))
		return
	case do == Drop:
		panic(http.ErrAbortHandler) // package http closes the connection
	case do == Hang || do == Mute:
		select {
		case <-c.closed.Done():
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case do == Late && bridge.Pause(c.closed, lateBy) != nil:
		panic(http.ErrAbortHandler)
	case do == DropAfter: // the answer is lost
		serve(unheard{}, r)
		panic(http.ErrAbortHandler)
	}
	serve(rw, r)
}

func (c *Connector) post(rw http.ResponseWriter, r *http.Request, id string) {
	var body struct {
		SessionID string            `json:"session_id"`
		Cursor    int64             `json:"cursor"`
		Messages  []json.RawMessage `json:"messages"`
	}
	err := readBody(rw, r, maxBatch, &body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(rw, "the batch is too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil || body.SessionID == "" || body.Cursor < 0:
		http.Error(rw, "expected session_id, cursor and messages", http.StatusBadRequest)
		return
	}
	s := c.pollSession(body.SessionID, r, id)
	select {
	case s.serving <- struct{}{}:
		defer func() { <-s.serving }()
	case <-r.Context().Done():
		return
	}
	c.mu.Lock()
	ended := s.ended
	s.called(c)
	c.mu.Unlock()
	defer s.waits(c)
	if ended || body.Cursor > s.up {
		http.Error(rw, errEnded.Error(), http.StatusGone)
		return
	}
	fresh := body.Messages[min(int64(len(body.Messages)), s.up-body.Cursor):]
	for _, raw := range fresh {
		s.up++
		if c.handle(s.peer, raw) != nil {
			http.Error(rw, errEnded.Error(), http.StatusGone)
			return
		}
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(encode(map[string]any{"cursor": s.up})) // the client repeats it
}

// pollSession finds a session, or makes it.
func (c *Connector) pollSession(name string, r *http.Request, id string) *pollSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.polls[name]
	if s != nil {
		return s
	}
	s = &pollSession{more: make(chan struct{}), serving: make(chan struct{}, 1)}
	s.peer = &peer{transport: "https", base: baseOf(r, c.cfg.Base), ids: id}
	s.peer.write = func(frame []byte) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if s.ended {
			return errEnded
		}
		s.down = append(s.down, frame)
		close(s.more)
		s.more = make(chan struct{})
		return nil
	}
	s.peer.quit = func(websocket.StatusCode) {
		c.gone(s.peer)
		c.mu.Lock()
		defer c.mu.Unlock()
		if !s.ended {
			s.ended = true
			close(s.more)
			s.more = make(chan struct{})
		}
	}
	c.polls[name] = s
	return s
}

// poll waits for frames after a cursor.
func (c *Connector) poll(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	cursor, err := strconv.ParseInt(q.Get("cursor"), 10, 64)
	wait, err2 := strconv.ParseFloat(q.Get("wait"), 64)
	if errors.Join(err, err2) != nil || cursor < 0 {
		http.Error(rw, "expected session_id, cursor and wait", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(wait*float64(time.Second)))
	defer cancel()
	c.mu.Lock()
	s := c.polls[q.Get("session_id")]
	if s == nil {
		c.mu.Unlock()
		http.Error(rw, errEnded.Error(), http.StatusGone)
		return
	}
	s.called(c)
	c.mu.Unlock()
	defer s.waits(c)
	for {
		c.mu.Lock()
		if s.ended || cursor < s.base || cursor > s.base+int64(len(s.down)) {
			c.mu.Unlock()
			http.Error(rw, errEnded.Error(), http.StatusGone)
			return
		}
		s.down = s.down[cursor-s.base:]
		s.base = cursor
		list, more := s.down[:len(s.down):len(s.down)], s.more
		c.mu.Unlock()
		if len(list) == 0 && ctx.Err() == nil {
			select {
			case <-more:
			case <-ctx.Done():
			case <-c.closed.Done():
				return
			}
			continue
		}
		if list == nil {
			list = []json.RawMessage{}
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(encode(map[string]any{"cursor": cursor + int64(len(list)), "messages": list})) // it is asked for again
		return
	}
}
