package devserver

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"prp/controller/bridge"
)

const (
	// maxFrame bounds a frame, in bytes.
	maxFrame = 1 << 20
	// writeWait bounds a write to the worker.
	writeWait = 30 * time.Second
)

// Paths of the worker's server.
const (
	// WorkerPath is where a worker connects.
	WorkerPath = "/worker"
	// SendPath takes a command by POST and answers with its frames.
	SendPath = "/send"
)

// Ack is how a server acknowledges.
type Ack string

// Ways to acknowledge.
const (
	AckSeq  Ack = "seq"
	AckID   Ack = "id"
	AckNone Ack = "none"
)

// WorkerConfig says how the server behaves. The zero value behaves well, but
// asks for no token.
type WorkerConfig struct {
	Token string
	// Ack is AckSeq where it is empty.
	Ack Ack
	// Silent sends no welcome.
	Silent bool
	Rules  []Rule
}

// Frame is a frame that came from the worker.
type Frame struct {
	// Connection counts from 1.
	Connection int
	Kind       string // hello, result, progress, or the event
	ID         string // command_id
	Seq        int64
	Status     string
	Raw        json.RawMessage

	toSeq int64 // of a gap
}

// onGap is an event that tells frames that were dropped.
const onGap = "gap"

// Worker is a server for one worker.
type Worker struct {
	cfg   WorkerConfig
	rules *ruleBook

	mu          sync.Mutex
	connections int
	current     *wire
	frames      []Frame
	delivered   []Frame
	cursor      int64
	changed     chan struct{}
	closed      context.Context
	close       context.CancelFunc
}

// NewWorker returns a server that nobody has connected to.
func NewWorker(cfg WorkerConfig) *Worker {
	if cfg.Ack == "" {
		cfg.Ack = AckSeq
	}
	w := &Worker{cfg: cfg, rules: newRuleBook(cfg.Rules), changed: make(chan struct{})}
	w.closed, w.close = context.WithCancel(context.Background())
	return w
}

// Close ends the connection and everything that waits.
func (w *Worker) Close() { w.close() }

// ServeHTTP implements [http.Handler].
func (w *Worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	want := "Bearer " + w.cfg.Token
	if w.cfg.Token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) != 1 {
		http.Error(rw, "expected the token", http.StatusUnauthorized)
		return
	}
	switch {
	case r.URL.Path == WorkerPath:
		w.accept(rw, r)
	case r.URL.Path == SendPath && r.Method == http.MethodPost:
		w.send(rw, r)
	default:
		http.NotFound(rw, r)
	}
}

func (w *Worker) accept(rw http.ResponseWriter, r *http.Request) {
	switch w.rules.next(OnConnect) {
	case Drop:
		http.Error(rw, "as ordered", http.StatusServiceUnavailable)
		return
	case Late:
		if bridge.Pause(w.closed, lateBy) != nil {
			return
		}
	}
	ws, err := acceptWire(rw, r)
	if err != nil {
		return // it has answered
	}
	defer ws.CloseNow()
	w.mu.Lock()
	w.connections++
	number := w.connections
	w.mu.Unlock()
	_ = w.serve(ws, number) // the end of a connection is all that it tells
	w.mu.Lock()
	if w.current == ws {
		w.current = nil
	}
	w.mu.Unlock()
}

// errOrdered ends a connection by a rule.
var errOrdered = errors.New("dropped as ordered")

func (w *Worker) serve(ws *wire, number int) error {
	for {
		raw, err := ws.readCut(w.closed, func() bool { return w.rules.next(OnFrame) == Cut })
		if err != nil {
			return err
		}
		f := parseFrame(raw)
		f.Connection = number
		do := w.rules.next(f.Kind)
		switch do {
		case Drop:
			return errOrdered
		case Hang:
			<-w.closed.Done()
			return errOrdered
		case Late:
			if err := bridge.Pause(w.closed, lateBy); err != nil {
				return err
			}
		}
		answer := w.take(ws, f, do == DropAfter)
		if answer != nil && do != Mute {
			if err := w.write(ws, answer); err != nil {
				return err
			}
		}
		if do == DropAfter {
			return errOrdered
		}
	}
}

func parseFrame(raw []byte) Frame {
	var m struct {
		Event     string `json:"event"`
		Status    string `json:"status"`
		CommandID string `json:"command_id"`
		Seq       int64  `json:"seq"`
		AckSeq    int64  `json:"ack_seq"`
		ToSeq     int64  `json:"to_seq"`
	}
	f := Frame{Raw: raw, Kind: "other"}
	if bridge.Decode(raw, &m) != nil {
		return f
	}
	f.ID, f.Seq, f.Status, f.toSeq = m.CommandID, m.Seq, m.Status, m.ToSeq
	switch {
	case m.Status != "":
		f.Kind = OnResult
	case m.Event != "":
		f.Kind = m.Event
	}
	if f.Kind == OnHello {
		f.Seq = m.AckSeq
	}
	return f
}

// take records a frame and makes the answer, nil for none. After the last frame
// of a connection nothing is sent over it any more.
func (w *Worker) take(ws *wire, f Frame, last bool) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Kind == OnHello {
		w.current = ws
	}
	if last {
		w.current = nil
	}
	w.frames = append(w.frames, f)
	defer func() {
		close(w.changed)
		w.changed = make(chan struct{})
	}()
	if f.Kind == OnHello {
		w.cursor = max(w.cursor, f.Seq) // a server that began anew
		if w.cfg.Silent {
			return nil
		}
		if w.cfg.Ack == AckSeq {
			return fmt.Appendf(nil, `{"event":"welcome","ack_seq":%d}`, w.cursor)
		}
		return []byte(`{"event":"welcome"}`)
	}
	if f.Kind == onGap {
		f.Seq = f.toSeq
	}
	if f.Kind == onGap || f.Seq == w.cursor+1 || w.cfg.Ack != AckSeq && !w.has(f.Seq) {
		w.delivered = append(w.delivered, f)
		w.cursor = max(w.cursor, f.Seq)
	}
	switch {
	case w.cfg.Ack == AckSeq && f.Seq > 0:
		return fmt.Appendf(nil, `{"ack_seq":%d}`, w.cursor)
	case w.cfg.Ack == AckID && f.Kind == OnResult:
		id, _ := json.Marshal(f.ID)
		return fmt.Appendf(nil, `{"ack":%s}`, id)
	}
	return nil
}

func (w *Worker) has(seq int64) bool {
	return slices.ContainsFunc(w.delivered, func(f Frame) bool { return f.Seq == seq })
}

func (w *Worker) write(ws *wire, frame []byte) error {
	ctx, cancel := context.WithTimeout(w.closed, writeWait)
	defer cancel()
	return ws.Write(ctx, websocket.MessageText, frame)
}

// Frames are all frames that came, also doubled ones and hellos.
func (w *Worker) Frames() []Frame {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.frames)
}

// Delivered has each numbered frame once.
func (w *Worker) Delivered() []Frame {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.delivered)
}

// Await blocks until ok is true of the server's frames, or ctx ends.
func (w *Worker) Await(ctx context.Context, ok func(frames []Frame) bool) error {
	for {
		w.mu.Lock()
		changed, done := w.changed, ok(w.frames)
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.closed.Done():
			return errors.New("the server is closed")
		}
	}
}

// Connections is how many connections there were so far, with the one that is.
func (w *Worker) Connections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.connections
}

// Connected reports whether a worker is connected and has said hello.
func (w *Worker) Connected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current != nil
}

// Send sends one frame to the worker, once it is connected.
func (w *Worker) Send(ctx context.Context, frame []byte) error {
	if err := w.Await(ctx, func([]Frame) bool { return w.current != nil }); err != nil {
		return err
	}
	w.mu.Lock()
	ws := w.current
	w.mu.Unlock()
	if ws == nil {
		return errors.New("the worker has just left")
	}
	switch w.rules.next(OnCommand) {
	case Drop:
		ws.CloseNow()
		return nil
	case Cut:
		return ws.writeCut(frame)
	case Mute:
		return nil
	case Late:
		if err := bridge.Pause(w.closed, lateBy); err != nil {
			return err
		}
	case Twice:
		if err := w.write(ws, frame); err != nil {
			return err
		}
	case DropAfter:
		defer ws.CloseNow()
	}
	return w.write(ws, frame)
}

// Result waits for the first result of a command.
func (w *Worker) Result(ctx context.Context, id string) (Frame, error) {
	var found Frame
	err := w.Await(ctx, func(frames []Frame) bool {
		i := slices.IndexFunc(frames, func(f Frame) bool { return f.Kind == OnResult && f.ID == id })
		if i >= 0 {
			found = frames[i]
		}
		return i >= 0
	})
	return found, err
}

// DropLink ends the connection as a network does, without a word. What is sent
// after it waits for the next connection.
func (w *Worker) DropLink() {
	w.mu.Lock()
	ws := w.current
	w.current = nil
	w.mu.Unlock()
	if ws != nil {
		ws.CloseNow()
	}
}

func randomID() string {
	var b [6]byte
	rand.Read(b[:]) // never fails (package crypto/rand)
	return hex.EncodeToString(b[:])
}
