package bridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Defaults of a link. A peer that is gone without a word is noticed within two
// pings and one wait for a pong: 65 s.
const (
	DefaultPingEvery    = 30 * time.Second
	DefaultPongWait     = 5 * time.Second
	DefaultMissedPongs  = 2
	DefaultDialTimeout  = 20 * time.Second
	DefaultWriteTimeout = 30 * time.Second
	DefaultHealthyAfter = 60 * time.Second
	// DefaultMaxFrame bounds a frame each way, in bytes (worker.md row 2).
	DefaultMaxFrame = 1 << 20
)

// closeWait bounds a polite end of a connection.
const closeWait = time.Second

// ErrNoPong is the end of a connection whose peer has stopped to answer.
var ErrNoPong = errors.New("the server answers no ping")

// UpgradeError is a server that answered an attempt with HTTP instead of a
// WebSocket.
type UpgradeError struct {
	// Status is the HTTP status.
	Status int
}

// Error implements error.
func (e *UpgradeError) Error() string {
	what := ""
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		what = ": check the token"
	case http.StatusNotFound:
		what = ": check the path of the address"
	}
	return fmt.Sprintf("expected the server to accept a WebSocket, got HTTP status %d%s", e.Status, what)
}

// LinkConfig says where a link goes and how patient it is. Zero members but URL
// are the defaults above.
type LinkConfig struct {
	// URL was checked by [CheckURL].
	URL string
	// Client makes the connection; nil is the client of an empty [TLS].
	Client *http.Client
	// Token gives the bearer token of each attempt; it is called anew so that
	// the token can change. Nil is none.
	Token func() (string, error)

	PingEvery, PongWait       time.Duration
	MissedPongs               int
	DialTimeout, WriteTimeout time.Duration
	// HealthyAfter is how long a connection has to live for the backoff to
	// begin anew.
	HealthyAfter time.Duration
	MaxFrame     int64
	// Compress offers permessage-deflate, without context takeover: with it each
	// connection would hold 1.2 MB for its windows.
	Compress bool
	Backoff  Backoff
	// Changed is told each change of the state, in order. It must not block.
	Changed func(LinkState)
}

// LinkState is what a person wants to know of a link.
type LinkState struct {
	Connected bool `json:"connected"`
	// Since is when Connected last changed.
	Since time.Time `json:"since"`
	// LastContact is when something last came from the server.
	LastContact time.Time `json:"last_contact"`
	// Attempts counts dials, Connections those that succeeded.
	Attempts    int64 `json:"attempts"`
	Connections int64 `json:"connections"`
	// Error is why there is no connection.
	Error string `json:"error,omitempty"`
}

// Link keeps a connection to one server.
type Link struct {
	cfg LinkConfig
	mu  sync.Mutex
	now LinkState
}

// NewLink returns a link that is not yet connected.
func NewLink(cfg LinkConfig) (*Link, error) {
	if cfg.Client == nil {
		client, err := TLS{}.Client()
		if err != nil {
			return nil, err
		}
		cfg.Client = client
	}
	Fill(&cfg.PingEvery, DefaultPingEvery)
	Fill(&cfg.PongWait, DefaultPongWait)
	Fill(&cfg.MissedPongs, DefaultMissedPongs)
	Fill(&cfg.DialTimeout, DefaultDialTimeout)
	Fill(&cfg.WriteTimeout, DefaultWriteTimeout)
	Fill(&cfg.HealthyAfter, DefaultHealthyAfter)
	Fill(&cfg.MaxFrame, DefaultMaxFrame)
	return &Link{cfg: cfg, now: LinkState{Since: time.Now()}}, nil
}

// State is the link's state now.
func (l *Link) State() LinkState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *Link) change(f func(s *LinkState)) {
	l.mu.Lock()
	before := l.now.Connected
	f(&l.now)
	if l.now.Connected != before {
		l.now.Since = time.Now()
	}
	s := l.now
	l.mu.Unlock()
	if l.cfg.Changed != nil {
		l.cfg.Changed(s)
	}
}

func (l *Link) contact() {
	l.mu.Lock()
	l.now.LastContact = time.Now()
	l.mu.Unlock()
}

// Run connects, calls serve with each connection, and connects again, until ctx
// ends; then it returns the cause. What serve returns ends that connection
// only. The context of serve ends when the connection is lost. Connections
// never overlap.
func (l *Link) Run(ctx context.Context, serve func(context.Context, *Conn) error) error {
	backoff := l.cfg.Backoff
	for {
		began := time.Now()
		err := l.once(ctx, serve)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.change(func(s *LinkState) { s.Connected, s.Error = false, text(err) })
		// time.Since is monotonic: a clock that jumps changes no wait (rule 9).
		if time.Since(began) >= l.cfg.HealthyAfter {
			backoff.Reset()
		}
		if err := Pause(ctx, backoff.Next()); err != nil {
			return err
		}
	}
}

func text(err error) string {
	if err == nil {
		return "the connection was closed"
	}
	return err.Error()
}

// once is one connection from its dial to its end.
func (l *Link) once(ctx context.Context, serve func(context.Context, *Conn) error) error {
	conn, err := l.Connect(ctx)
	if err != nil {
		return err
	}
	return l.Serve(ctx, conn, serve)
}

// Connect makes one attempt, within the dial timeout. The error is an
// [*UpgradeError] where the server answered with HTTP. [Link.Serve] has to
// follow.
func (l *Link) Connect(ctx context.Context) (*Conn, error) {
	l.change(func(s *LinkState) { s.Attempts++ })
	ws, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	return &Conn{link: l, ws: ws}, nil
}

// Serve calls serve with a connection and closes it afterwards. It returns what
// serve returns, or [ErrNoPong].
func (l *Link) Serve(ctx context.Context, conn *Conn, serve func(context.Context, *Conn) error) error {
	ws := conn.ws
	defer ws.CloseNow()
	l.change(func(s *LinkState) {
		s.Connected, s.Error, s.LastContact = true, "", time.Now()
		s.Connections++
	})
	inner, cancel := context.WithCancelCause(ctx)
	var beat sync.WaitGroup
	beat.Go(func() {
		if err := l.heartbeat(inner, ws); err != nil {
			cancel(err)
			ws.CloseNow()
		}
	})
	err := serve(inner, conn)
	if cause := context.Cause(inner); errors.Is(cause, ErrNoPong) {
		err = cause
	}
	cancel(err)
	beat.Wait()
	if ctx.Err() != nil {
		farewell(ws)
	}
	return err
}

// farewell tells the peer of the end, for a moment.
func farewell(ws *websocket.Conn) {
	stop := time.AfterFunc(closeWait, func() { ws.CloseNow() })
	defer stop.Stop()
	ws.Close(websocket.StatusGoingAway, "")
}

func (l *Link) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.DialTimeout)
	defer cancel()
	o := &websocket.DialOptions{HTTPClient: l.cfg.Client}
	if l.cfg.Token != nil {
		token, err := l.cfg.Token()
		if err != nil {
			return nil, err
		}
		o.HTTPHeader = http.Header{"Authorization": {"Bearer " + token}}
	}
	if l.cfg.Compress {
		o.CompressionMode = websocket.CompressionNoContextTakeover
	}
	ws, response, err := websocket.Dial(ctx, l.cfg.URL, o)
	if err != nil {
		if response != nil {
			return nil, &UpgradeError{Status: response.StatusCode}
		}
		// The rest repeats the address and names the layers above; it is long
		// enough to leave no room for the cause on a line.
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, fmt.Errorf("cannot connect: %w", Lost(err))
	}
	ws.SetReadLimit(l.cfg.MaxFrame)
	return ws, nil
}

// heartbeat pings until pongs are missed in a row, or ctx ends.
func (l *Link) heartbeat(ctx context.Context, ws *websocket.Conn) error {
	tick := time.NewTicker(l.cfg.PingEvery)
	defer tick.Stop()
	for missed := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		wait, cancel := context.WithTimeout(ctx, l.cfg.PongWait)
		err := ws.Ping(wait)
		cancel()
		if err == nil {
			missed = 0
			l.contact()
			continue
		}
		if missed++; missed >= l.cfg.MissedPongs {
			return ErrNoPong
		}
	}
}

// Conn is one connection. One goroutine reads, any number write.
type Conn struct {
	link *Link
	ws   *websocket.Conn
}

// Read blocks until a frame comes. Text tells a text frame from a binary one.
// A frame above the limit ends the connection. The error says in plain words how
// the connection was lost ([Lost]).
func (c *Conn) Read(ctx context.Context) (frame []byte, isText bool, err error) {
	kind, frame, err := c.ws.Read(ctx)
	if err != nil {
		return nil, false, Lost(err)
	}
	c.link.contact()
	return frame, kind == websocket.MessageText, nil
}

// Write sends one text frame within the write timeout. After an error the
// connection is lost; the error says how ([Lost]).
func (c *Conn) Write(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.link.cfg.WriteTimeout)
	defer cancel()
	return Lost(c.ws.Write(ctx, websocket.MessageText, frame))
}
