package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"prp/protocol"
)

// Scenario is a run of one turn.
type Scenario struct {
	// TurnID and Text are the turn's; Extra are further members of the
	// payload of turn.start.
	TurnID, Text string
	Extra        map[string]any
	// Answer gives the response to a request of the harness. It is called
	// for one request at a time, in their order, and its ctx ends with the
	// request or the run. An error cancels the run. Nil leaves every request open.
	Answer func(ctx context.Context, r protocol.Request) (json.RawMessage, error)
}

// Drive plays a scenario on a client that was just started: it prepares the
// run, opens the session, starts the turn, answers requests, closes the session
// when the turn has ended, and ends the runner's stdin when run.terminal is
// there. It returns what [Client.Wait] returns; an error of [Scenario.Answer]
// is joined to it. The end of ctx closes the run.
//
// A command that is rejected ends the scenario: the run is closed where the
// runner does not end it by itself, and the terminal tells the reason. So does
// one that cannot be sent, such as a text that is too long for a line; then the
// error has [ErrNotSent].
func (c *Client) Drive(ctx context.Context, s Scenario) (*Trace, error) {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	unhook := context.AfterFunc(ctx, c.beginClose)
	defer unhook()

	asked := &questions{queue: make(chan question, maxPendingRequests), open: map[string]context.CancelFunc{}}
	started, answered := make(chan error, 1), make(chan error, 1)
	go func() { started <- c.setGoing(running, s) }()
	go func() { answered <- c.answerAll(running, s, asked) }()

	follow := c.followScenario(running, asked)
	c.beginClose()
	<-c.done
	stop(ErrRunnerGone)
	close(asked.queue)
	startErr, answerErr := <-started, <-answered
	trace, err := c.Wait(context.WithoutCancel(ctx))
	if trace.Terminal != nil {
		follow = nil // the terminal says it better
		if !errors.Is(startErr, ErrNotSent) {
			startErr = nil
		}
	}
	if follow != nil && errors.Is(err, follow) {
		follow = nil
	}
	return trace, errors.Join(err, startErr, follow, answerErr)
}

// maxPendingRequests is how many requests a runner lets be pending (spec
// section 2).
const maxPendingRequests = 1024

// setGoing sends the three commands that set a run going.
func (c *Client) setGoing(ctx context.Context, s Scenario) error {
	err := c.Prepare(ctx)
	if err == nil {
		err = c.OpenSession(ctx)
	}
	if err == nil {
		err = c.StartTurn(ctx, s.TurnID, s.Text, s.Extra)
	}
	rejected := new(RejectedError)
	if errors.As(err, &rejected) && !endsByItself(rejected.Code()) || errors.Is(err, ErrNotSent) {
		c.beginClose()
	}
	return err
}

// endsByItself tells whether a run that rejects with this code is ending.
func endsByItself(code protocol.Code) bool {
	return code == protocol.CodeRunEnding || code == protocol.CodeHarnessStartFailed || code == protocol.CodeHarnessNotReady
}

// followScenario reads events until run.terminal, or until there are none.
func (c *Client) followScenario(ctx context.Context, asked *questions) error {
	var closer sync.WaitGroup
	defer closer.Wait()
	closed, markClosed := context.WithCancel(ctx)
	defer markClosed()
	for e, err := range c.Events(ctx) {
		switch {
		case err != nil:
			return err
		case e.EventType == protocol.EventRunTerminal:
			return nil
		case e.EventType == protocol.EventRequestCreated:
			if r, ok := RequestOf(&e); ok {
				asked.add(ctx, r)
			}
		case e.EventType == protocol.EventRequestExpired, e.EventType == protocol.EventRequestCancelled:
			if p, ok := parsePayload(e.Payload); ok {
				asked.end(p.text("requestId"))
			}
		case e.EventType.EndsTurn():
			closer.Go(func() { c.closeUnless(closed, ctx) })
		case e.EventType.EndsSession(), e.EventType == protocol.EventHarnessExited:
			markClosed()
		}
	}
	return nil
}

// sessionCloseWait is how long a harness has to close its session by itself
// after the end of its turn, before it is told to.
const sessionCloseWait = 150 * time.Millisecond

// closeUnless closes the session unless it is closed soon.
func (c *Client) closeUnless(closed, ctx context.Context) {
	timer := time.NewTimer(sessionCloseWait)
	defer timer.Stop()
	select {
	case <-closed.Done():
	case <-timer.C:
		_ = c.CloseSession(ctx) // rejected is a session that was just closed
	}
}

// questions are the requests that wait for an answer.
type questions struct {
	queue chan question
	mu    sync.Mutex
	open  map[string]context.CancelFunc
}

// question is a request; its context ends when an answer is not wanted any more.
type question struct {
	ctx     context.Context
	request protocol.Request
}

func (q *questions) add(run context.Context, r protocol.Request) {
	ctx, cancel := context.WithCancel(run)
	q.mu.Lock()
	q.open[r.RequestID] = cancel
	q.mu.Unlock()
	select {
	case q.queue <- question{ctx, r}:
	case <-run.Done():
	}
}

// end takes the question back, where it is still open.
func (q *questions) end(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel := q.open[id]; cancel != nil {
		cancel()
		delete(q.open, id)
	}
}

// answerAll answers requests one after the other.
func (c *Client) answerAll(run context.Context, s Scenario, asked *questions) error {
	for q := range asked.queue {
		if s.Answer == nil || q.ctx.Err() != nil {
			continue
		}
		response, err := s.Answer(q.ctx, q.request)
		wanted := q.ctx.Err() == nil
		asked.end(q.request.RequestID)
		switch {
		case !wanted:
		case err == nil:
			// Rejected is an answer that came too late: the runner's
			// events say what became of the request.
			_ = c.Resolve(run, q.request.RequestID, response)
		default:
			if c.Cancel(run) != nil {
				c.beginClose()
			}
			return fmt.Errorf("controller: answer %q: %w", q.request.RequestID, err)
		}
	}
	return nil
}

// RequestOf reads the request of a runtime_request.created event, as strictly
// as the runner has; false where its payload has none.
func RequestOf(e *protocol.Event) (protocol.Request, bool) {
	p, _ := parsePayload(e.Payload)
	r, err := protocol.DecodeRequest(p["request"])
	return r, err == nil
}

// Choice is one of the answers that a request of type permission offers.
type Choice struct {
	Key   string `json:"key"`
	Label string `json:"label"`
}

// Choices are the answers that a request offers, as far as they have a key; a
// choice that is a string is its own key.
func Choices(r protocol.Request) []Choice {
	var raw []json.RawMessage
	if json.Unmarshal(r.Choices, &raw) != nil {
		return nil
	}
	var list []Choice
	for _, one := range raw {
		p, _ := parsePayload(one)
		c := Choice{Key: p.text("key"), Label: p.text("label")}
		if len(p) == 0 {
			c.Key = payload{"key": one}.text("key")
		}
		if c.Key == "" {
			continue
		}
		if c.Label == "" {
			c.Label = c.Key
		}
		list = append(list, c)
	}
	return list
}
