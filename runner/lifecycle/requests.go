package lifecycle

import (
	"time"

	"prp/protocol"
)

type requestStatus uint8

const (
	requestUnknown requestStatus = iota
	requestPending
	requestAnswered // an answer is on its way to the harness
	requestClosed
)

type request struct {
	id        string
	status    requestStatus
	turn      string
	expiresAt time.Time // zero: never
	answer    string    // id of the command that answered it
}

// requests is the book of the harness's requests. Pending ones are bounded by
// maxPendingRequests, the memory of others by maxClosedRequests: the oldest is
// forgotten, and then unknown.
type requests struct {
	byID    map[string]*request
	open    []*request // pending and answered, in the order in which they came
	closed  []string   // ring of closed ids
	oldest  int
	pending int
}

func newRequests() requests { return requests{byID: make(map[string]*request)} }

func (r *requests) status(id string) requestStatus {
	if q := r.byID[id]; q != nil {
		return q.status
	}
	return requestUnknown
}

func (r *requests) add(q *request) {
	q.status = requestPending
	r.byID[q.id] = q
	r.open = append(r.open, q)
	r.pending++
}

func (r *requests) answer(id, command string) {
	q := r.byID[id]
	q.status, q.answer = requestAnswered, command
	r.pending--
}

// undelivered takes an answer back that never reached the harness: nobody has
// answered the request.
func (r *requests) undelivered(command string) {
	for _, q := range r.open {
		if q.status == requestAnswered && q.answer == command {
			q.status = requestPending
			r.pending++
		}
	}
}

// close ends a request that the harness or the runner has closed.
func (r *requests) close(id string) {
	q := r.byID[id]
	if q == nil || q.status == requestClosed {
		return
	}
	if q.status == requestPending {
		r.pending--
	}
	q.status = requestClosed
	for i, o := range r.open {
		if o == q {
			r.open = append(r.open[:i], r.open[i+1:]...)
			break
		}
	}
	if len(r.closed) < maxClosedRequests {
		r.closed = append(r.closed, id)
		return
	}
	delete(r.byID, r.closed[r.oldest])
	r.closed[r.oldest] = id
	r.oldest = (r.oldest + 1) % maxClosedRequests
}

// nextExpiry is the earliest expiresAt of a pending request, zero where none
// has one.
func (r *requests) nextExpiry() time.Time {
	var next time.Time
	for _, q := range r.open {
		if q.status == requestPending && !q.expiresAt.IsZero() && (next.IsZero() || q.expiresAt.Before(next)) {
			next = q.expiresAt
		}
	}
	return next
}

type requestGonePayload struct {
	RequestID string `json:"requestId"`
	Reason    string `json:"reason"`
}

// closeRequest tells that nobody answered a request in time.
func (s *State) closeRequest(q *request, t protocol.EventType, reason string) {
	s.eventOf(t, requestGonePayload{RequestID: q.id, Reason: reason}).TurnID = q.turn
	s.requests.close(q.id)
}

// expireRequests closes the pending requests whose time has come.
func (s *State) expireRequests() {
	for _, q := range append([]*request(nil), s.requests.open...) {
		if q.status == requestPending && !q.expiresAt.IsZero() && !q.expiresAt.After(s.at) {
			s.closeRequest(q, protocol.EventRequestExpired, "expired")
		}
	}
	s.armExpiry()
}

// cancelRequests closes what is pending when the harness is gone.
func (s *State) cancelRequests() {
	for _, q := range append([]*request(nil), s.requests.open...) {
		if q.status == requestPending {
			s.closeRequest(q, protocol.EventRequestCancelled, "harness_exited")
		}
	}
}

// armExpiry sets the timer for the next request that expires.
func (s *State) armExpiry() {
	next := s.requests.nextExpiry()
	if next.IsZero() || s.over() {
		s.clearTimer(TimerExpiry)
		return
	}
	s.setTimer(TimerExpiry, max(0, next.Sub(s.at)))
}
