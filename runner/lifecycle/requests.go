package lifecycle

import (
	"slices"
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
	expiresAt *time.Time // nil: never; any time may be one that a harness gave
	answer    string     // id of the command that answered it
}

// requests is the book of the harness's requests. Pending ones are bounded by
// maxPendingRequests, answered ones by maxAnsweredRequests, the memory of others
// by maxClosedRequests: the oldest is forgotten, and then unknown.
type requests struct {
	byID     map[string]*request
	pending  []*request // in the order in which they came
	answered []*request // in the order in which they were answered
	closed   []string   // ring of closed ids
	oldest   int
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
	r.pending = append(r.pending, q)
}

// answer notes the command that answers a pending request. A harness need not
// say that it has the answer, so the oldest answered one counts as closed at
// some time.
func (r *requests) answer(id, command string) {
	q := r.byID[id]
	r.pending = without(r.pending, q)
	q.status, q.answer = requestAnswered, command
	r.answered = append(r.answered, q)
	if len(r.answered) > maxAnsweredRequests {
		r.close(r.answered[0].id)
	}
}

// undelivered takes an answer back that never reached the harness: nobody has
// answered the request.
func (r *requests) undelivered(command string) {
	for _, q := range r.answered {
		if q.answer == command {
			r.answered = without(r.answered, q)
			q.status = requestPending
			r.pending = append(r.pending, q)
			return
		}
	}
}

// close ends a request that the harness or the runner has closed.
func (r *requests) close(id string) {
	q := r.byID[id]
	if q == nil || q.status == requestClosed {
		return
	}
	r.pending, r.answered = without(r.pending, q), without(r.answered, q)
	q.status = requestClosed
	if len(r.closed) < maxClosedRequests {
		r.closed = append(r.closed, id)
		return
	}
	delete(r.byID, r.closed[r.oldest])
	r.closed[r.oldest] = id
	r.oldest = (r.oldest + 1) % maxClosedRequests
}

func without(list []*request, q *request) []*request {
	if i := slices.Index(list, q); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// nextExpiry is the earliest expiresAt of a pending request, nil where none has
// one.
func (r *requests) nextExpiry() *time.Time {
	var next *time.Time
	for _, q := range r.pending {
		if q.expiresAt != nil && (next == nil || q.expiresAt.Before(*next)) {
			next = q.expiresAt
		}
	}
	return next
}

// closeRequest tells that nobody answered a request in time.
func (s *State) closeRequest(q *request, t protocol.EventType, reason string) {
	s.event(t, object(nil).text("requestId", q.id).text("reason", reason).end()).TurnID = q.turn
	s.requests.close(q.id)
}

// expireRequests closes the pending requests whose time has come.
func (s *State) expireRequests() {
	for _, q := range slices.Clone(s.requests.pending) {
		if q.expiresAt != nil && !q.expiresAt.After(s.at) {
			s.closeRequest(q, protocol.EventRequestExpired, "expired")
		}
	}
	s.armExpiry()
}

// cancelRequests closes what is pending when the harness is gone.
func (s *State) cancelRequests() {
	for _, q := range slices.Clone(s.requests.pending) {
		s.closeRequest(q, protocol.EventRequestCancelled, "harness_exited")
	}
}

// armExpiry sets the timer for the next request that expires.
func (s *State) armExpiry() {
	next := s.requests.nextExpiry()
	if next == nil || s.over() {
		s.clearTimer(TimerExpiry)
		return
	}
	s.setTimer(TimerExpiry, max(0, next.Sub(s.at)))
}
