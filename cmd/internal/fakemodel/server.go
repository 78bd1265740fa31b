package fakemodel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxBody bounds a request, in bytes: an agent sends its whole history.
	maxBody = 64 << 20
	// slowStep is the time between two words of [[slow:N]].
	slowStep = 250 * time.Millisecond
	// closeWait is how long requests under way may take at the end.
	closeWait = time.Second
)

// Server is a running model server.
type Server struct {
	http *http.Server
	url  string
	stop context.CancelFunc

	mu     sync.Mutex
	count  int            // of answers, for ids
	errors map[string]int // answers with an error so far, by marker
}

// Start starts a server on a free port of 127.0.0.1.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fake model: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{url: "http://" + listener.Addr().String(), stop: stop, errors: map[string]int{}}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = s.http.Serve(listener) }() // it ends with Close
	return s, nil
}

// URL is where the server is, without a path and a slash at its end.
func (s *Server) URL() string { return s.url }

// Answers is how many answers of a model were asked for so far.
func (s *Server) Answers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Close stops the server; answers under way are cut.
func (s *Server) Close() error {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if s.http.Shutdown(ctx) == nil {
		return nil
	}
	return s.http.Close()
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q := &query{}
	// A body that is no JSON is an empty request.
	_ = json.Unmarshal(body, &q.body)
	if r.Method == http.MethodPost && q.route(r.URL.Path) {
		s.answer(w, r, q)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/count_tokens"):
		io.WriteString(w, `{"input_tokens":120}`)
	case strings.HasSuffix(path, ":countTokens"):
		io.WriteString(w, `{"totalTokens":120}`)
	case strings.HasSuffix(path, "/models"):
		io.WriteString(w, `{"object":"list","data":[{"id":"fake-model","object":"model","created":1,"owned_by":"fake","type":"model","display_name":"Fake"}],"models":[],"has_more":false}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"error":{"type":"not_found_error","message":"no such path"}}`)
	}
}

// answer plays the plan of a request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, q *query) {
	p := q.plan()
	s.mu.Lock()
	s.count++
	n := s.count
	code := s.failure(p)
	s.mu.Unlock()
	if code != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"api_error","code":"server_error","message":"scripted %d"}}`, code)
		return
	}
	ids := func(kind string) string { return fmt.Sprintf("%s_%06d", kind, n) }
	if !q.streaming {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(q.dialect.whole(q, p, ids)) // an error is an agent that left
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	out := &events{w: w, flush: http.NewResponseController(w)}
	out.flush.Flush()
	if p.marker == "hang" {
		<-r.Context().Done()
		return
	}
	pieces := func(yield func(string) bool) {
		for piece := range p.pieces() {
			if p.marker == "slow" {
				select {
				case <-time.After(slowStep):
				case <-r.Context().Done():
					return
				}
			}
			if !yield(piece) {
				return
			}
		}
	}
	q.dialect.stream(q, p, ids, pieces, out)
}

// failure is the status of a scripted error that is still to be given, else 0.
func (s *Server) failure(p plan) int {
	if p.marker != "error" {
		return 0
	}
	status, times, limited := strings.Cut(p.arg, ":")
	code, err := strconv.Atoi(status)
	if err != nil || code < 400 || code > 599 {
		code = http.StatusInternalServerError
	}
	s.errors[p.key]++
	if k, err := strconv.Atoi(times); limited && err == nil && s.errors[p.key] > k {
		return 0
	}
	return code
}

// events writes server-sent events.
type events struct {
	w     io.Writer
	flush *http.ResponseController
	dead  bool
}

// send writes one event; the name may be empty. After an error nothing is
// written: the agent has left.
func (e *events) send(name string, data any) {
	if e.dead {
		return
	}
	text, isText := data.(string)
	if !isText {
		raw, err := json.Marshal(data)
		if err != nil {
			e.dead = true // cannot be: the data are made here
			return
		}
		text = string(raw)
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	if _, err := fmt.Fprintf(e.w, "%sdata: %s\n\n", name, text); err != nil || e.flush.Flush() != nil {
		e.dead = true
	}
}
