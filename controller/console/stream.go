package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// stream writes the run's history from an index on, then what is new, until
// the run is over or the client is gone.
func (s *Server) stream(w http.ResponseWriter, req *http.Request, r *run) {
	from, no := fromIndex(req)
	if no == nil {
		no = r.enter()
	}
	if no != nil {
		no.write(w)
		return
	}
	defer r.leave()
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := streamWriter{w: w, control: http.NewResponseController(w), timeout: s.cfg.WriteTimeout}
	head, err := json.Marshal(struct {
		Run runInfo `json:"run"`
	}{r.info()})
	if err != nil || !out.write(head, newline) {
		return
	}
	heartbeat := time.NewTicker(s.cfg.Heartbeat)
	defer heartbeat.Stop()
	for {
		lines, next, over, changed := r.read(from)
		if len(lines) > 0 {
			if !out.write(lines...) {
				return
			}
			from = next
			continue
		}
		if over {
			out.write(fmt.Appendf(nil, `{"index":%d,"end":true}`, from), newline)
			return
		}
		select {
		case <-changed:
		case <-heartbeat.C:
			if !out.write(newline) {
				return
			}
		case <-req.Context().Done():
			return
		}
	}
}

var newline = []byte("\n")

// fromIndex is where the client wants to go on.
func fromIndex(req *http.Request) (int64, *refusal) {
	values, given := req.URL.Query()["from"]
	if !given {
		return 0, nil
	}
	if len(values) == 1 {
		if n, err := strconv.ParseInt(values[0], 10, 64); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, refuse(http.StatusBadRequest, "invalid_from", fmt.Sprintf("expected from to be an index from 0, got %q", values))
}

// enter takes one of the places of the run's stream clients.
func (r *run) enter() *refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams >= maxStreams {
		return refuse(http.StatusTooManyRequests, "too_many_streams",
			fmt.Sprintf("expected at most %d clients of one run at a time; close a tab", maxStreams))
	}
	r.streams++
	return nil
}

func (r *run) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams--
}

// read gives what there is from an index on, and where there is nothing,
// whether there ever will be and what to wait for.
func (r *run) read(from int64) (lines [][]byte, next int64, over bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines, next = r.history.read(from)
	return lines, next, r.over, r.changed
}

// streamWriter writes to a client that may have stopped reading.
type streamWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	buf     []byte // reused: the pieces of one write
}

// write writes the pieces and flushes them, all within one deadline; false is a
// client that is gone.
func (s *streamWriter) write(pieces ...[]byte) bool {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return false
	}
	s.buf = s.buf[:0]
	for _, p := range pieces {
		s.buf = append(s.buf, p...)
	}
	if _, err := s.w.Write(s.buf); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
