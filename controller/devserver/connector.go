package devserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"prp/controller/bridge"
)

// Paths of the connector's server.
const (
	// ConnectorPath is where a connector connects by WebSocket.
	ConnectorPath = "/connector/v1"
	// MessagesPath is its HTTPS fallback.
	MessagesPath = "/connector/v1/messages"
	// ObjectsPath has the artifacts, each behind a signed URL.
	ObjectsPath = "/objects/"
)

// connectorKinds are the frames of a connector, and the requests of its server.
var connectorKinds = []string{
	"register", "heartbeat", "capabilities", "run_event", "run_accepted", "run_cancelled", "handoff",
	"upload_artifact", "artifact_uploaded", "download_artifact", "approval_request", "error",
	"create_run", "cancel_run", "put", "get", "post", "poll",
}

// ConnectorConfig says how the server behaves. The zero value behaves well, but
// knows nobody.
type ConnectorConfig struct {
	// Verify says who asks, by certificate and token; nil lets everybody in.
	// The id that it gives has to be the one in register; empty is any.
	Verify func(r *http.Request) (connectorID string, err error)
	// Settings is the config of register_ack.
	Settings map[string]any
	// AckEvery acknowledges each so many events of a run, and its completion;
	// zero is each one.
	AckEvery int
	Rules    []Rule
	// Base is the address of the server in the URLs of artifacts; empty is the
	// one that the connector has used.
	Base string
	// Presign gives the URL for one method of an artifact in a store elsewhere;
	// nil is the server's own store. It is called with the server's lock held.
	Presign func(method, artifactID string) (address string, err error)
}

// ConnectorFrame is a frame that came from the connector.
type ConnectorFrame struct {
	// Session counts from 1, over both transports.
	Session int
	// Transport is "websocket" or "https".
	Transport string
	Type      string
	ID        string
	ReplyTo   string
	RunID     string
	Seq       int64
	Raw       json.RawMessage

	fromSeq int64 // of a gap
	event   string
}

// Connector is a server for one connector.
type Connector struct {
	cfg   ConnectorConfig
	rules *ruleBook

	mu       sync.Mutex
	sessions int
	current  *peer
	polls    map[string]*pollSession
	frames   []ConnectorFrame
	runs     map[string]*deliveredRun
	objects  map[string]*object
	decided  map[string]int    // by request_id: how many frames there were when the shell has decided
	pending  []json.RawMessage // sent while nobody was there
	changed  chan struct{}
	closed   context.Context
	close    context.CancelFunc
}

// deliveredRun has the events of a run as a server that keeps a cursor sees them.
type deliveredRun struct {
	cursor int64
	events []ConnectorFrame
	// faults are what a connector must not do: a number that was skipped
	// without a gap being told, or an event after the completion.
	faults []string
	over   bool
}

// peer is one session.
type peer struct {
	number    int
	transport string
	base      string
	ids       string // the id that was verified
	// write sends a frame; quit ends the session.
	write func(frame []byte) error
	quit  func(status websocket.StatusCode)
}

// NewConnector returns a server that nobody has connected to.
func NewConnector(cfg ConnectorConfig) *Connector {
	c := &Connector{
		cfg: cfg, rules: newRuleBook(cfg.Rules), polls: map[string]*pollSession{},
		runs: map[string]*deliveredRun{}, objects: map[string]*object{}, decided: map[string]int{}, changed: make(chan struct{}),
	}
	c.closed, c.close = context.WithCancel(context.Background())
	return c
}

// Close ends the sessions and everything that waits.
func (c *Connector) Close() { c.close() }

// Misbehave replaces the rules; what was counted stays.
func (c *Connector) Misbehave(rules ...Rule) { c.rules.set(rules) }

// Called is how many frames or calls of a kind of the rules came.
func (c *Connector) Called(kind string) int { return c.rules.counted(kind) }

// ServeHTTP implements [http.Handler].
func (c *Connector) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if len(r.URL.Path) > len(ObjectsPath) && r.URL.Path[:len(ObjectsPath)] == ObjectsPath {
		c.serveObject(rw, r)
		return
	}
	id := ""
	if c.cfg.Verify != nil {
		var err error
		if id, err = c.cfg.Verify(r); err != nil {
			http.Error(rw, err.Error(), http.StatusUnauthorized)
			return
		}
	}
	switch r.URL.Path {
	case ConnectorPath:
		c.accept(rw, r, id)
	case MessagesPath:
		c.messages(rw, r, id)
	default:
		http.NotFound(rw, r)
	}
}

func baseOf(r *http.Request, given string) string {
	switch {
	case given != "":
		return given
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

func (c *Connector) accept(rw http.ResponseWriter, r *http.Request, id string) {
	do := c.rules.next(OnConnect)
	if status := numberOf(do, HTTP); status > 0 || do == Drop {
		if status == 0 {
			status = http.StatusServiceUnavailable
		}
		http.Error(rw, "as ordered", status)
		return
	}
	switch do {
	case Hang:
		<-c.closed.Done()
		return
	case Late:
		if bridge.Pause(c.closed, lateBy) != nil {
			return
		}
	}
	ws, err := websocket.Accept(rw, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionNoContextTakeover})
	if err != nil {
		return // it has answered
	}
	defer ws.CloseNow()
	ws.SetReadLimit(maxFrame)
	ctx, cancel := context.WithCancel(c.closed)
	defer cancel()
	p := &peer{transport: "websocket", base: baseOf(r, c.cfg.Base), ids: id}
	p.write = func(frame []byte) error {
		ctx, stop := context.WithTimeout(ctx, writeWait)
		defer stop()
		return ws.Write(ctx, websocket.MessageText, frame)
	}
	p.quit = func(status websocket.StatusCode) {
		if status != 0 {
			_ = ws.Close(status, "as ordered") // it is lost either way
		}
		cancel()
	}
	if n := numberOf(do, Close); n > 0 {
		p.quit(websocket.StatusCode(n))
		return
	}
	for {
		_, raw, err := ws.Read(ctx)
		if err != nil || c.handle(p, raw) != nil {
			break
		}
	}
	c.gone(p)
}

func (c *Connector) gone(p *peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(p)
}

// forget takes a session for one that is not there; the lock is held.
func (c *Connector) forget(p *peer) {
	if c.current == p {
		c.current = nil
	}
	c.notify()
}

// notify wakes who waits; the lock is held.
func (c *Connector) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// handle takes a frame of a session; an error ends it.
func (c *Connector) handle(p *peer, raw []byte) error {
	f := parseConnectorFrame(raw)
	do := c.rules.next(f.Type)
	switch {
	case do == Drop:
		p.quit(0)
		return errOrdered
	case do == Hang:
		<-c.closed.Done()
		return errOrdered
	case do == Late:
		if err := bridge.Pause(c.closed, lateBy); err != nil {
			return err
		}
	case numberOf(do, Close) > 0:
		p.quit(websocket.StatusCode(numberOf(do, Close)))
		return errOrdered
	}
	answers := c.take(p, f)
	if code := numberOf(do, Fault); code > 0 {
		answers = []any{connectorError{Type: "error", Code: code, Message: "as ordered", ReplyTo: f.ID, RunID: f.RunID}}
	}
	if do != Mute {
		for _, answer := range answers {
			if err := p.write(encode(answer)); err != nil {
				return err
			}
		}
	}
	if do == DropAfter {
		p.quit(0)
		return errOrdered
	}
	if f.Type == "register" && len(answers) > 0 && do != Mute {
		c.enter(p)
	}
	return nil
}

// enter makes a session the current one, once it knows. Between the two nobody is
// registered, so that nothing is meant for the session before.
func (c *Connector) enter(p *peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = p
	c.notify()
}

type connectorError struct {
	Type    string `json:"type"`
	Code    int    `json:"code"`
	Message string `json:"message"`
	ReplyTo string `json:"reply_to,omitempty"`
	RunID   string `json:"run_id,omitempty"`
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte("null") // cannot be: what is sent is made here
	}
	return raw
}

// errNobody is a server that no connector has registered at.
var errNobody = errors.New("no connector is registered")

// Send sends a frame to the connector that is registered.
func (c *Connector) Send(frame []byte) error {
	c.mu.Lock()
	p := c.current
	c.mu.Unlock()
	if p == nil {
		return errNobody
	}
	times := 1
	switch do := c.rules.next(parseConnectorFrame(frame).Type); do {
	case Twice:
		times = 2
	case Drop:
		p.quit(0)
		return nil
	}
	for range times {
		if err := p.write(frame); err != nil {
			return err
		}
	}
	return nil
}

// Quit ends the present session with a WebSocket status; 0 drops it.
func (c *Connector) Quit(status int) {
	c.mu.Lock()
	p := c.current
	c.mu.Unlock()
	if p != nil {
		p.quit(websocket.StatusCode(status))
	}
}
