package console

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"prp/controller"
	"prp/protocol"
)

// run is one run that the console knows, active or over.
type run struct {
	id      string
	choice  Choice
	started time.Time
	inbox   *inbox

	mu      sync.Mutex
	client  *controller.Client // nil once the run is over
	bound   boundTo
	changed chan struct{} // closed at the next change
	history history
	// snapshot is the fold of all events. Once the history is reduced it has
	// no timeline and no texts of items: nobody could compare them.
	snapshot controller.Snapshot
	events   int64
	streams  int
	over     bool
	ended    time.Time
	end      ending
}

// boundTo are the ids that all events of the run have.
type boundTo struct{ runID, sessionID, runnerID string }

// ending is what is known once a run is over.
type ending struct {
	exit     *protocol.ExitFact
	stderr   string
	forced   string
	fault    string
	problems []controller.Problem
	count    int // of all problems
}

// maxProblems bounds the problems that are kept of a recorded run: after the
// first ones the rest says nothing new.
const maxProblems = 200

func newRun(id string, choice Choice, limit int) *run {
	return &run{
		id: id, choice: choice, started: time.Now(),
		changed: make(chan struct{}), history: history{limit: limit},
	}
}

// Shape of a run that the console starts.
const (
	turnID = "turn_1"
	// maxInFlight bounds the lines that were read of the runner and not yet
	// folded, in bytes; past it the runner's pipe is not read.
	maxInFlight = 8 << 20
	// maxRetained bounds what the client keeps for its readers: well above
	// what may be in flight, so that no reader is ever too late.
	maxRetained = 32 << 20
	// forgetEvery is the number of events between two clean-ups of a
	// snapshot that has outgrown its history.
	forgetEvery = 1024
)

// start starts the runner and drives the run; it returns once the process is
// there. The run ends with ctx.
func (r *run) start(ctx context.Context, cfg controller.Config, text string, over func()) error {
	r.inbox = newInbox()
	cfg.Tap = r.inbox.put
	cfg.MaxRetainedBytes = maxRetained
	client, err := controller.Start(ctx, cfg)
	if err != nil {
		return err
	}
	r.client = client
	r.bound = boundTo{client.RunID(), client.SessionID(), client.RunnerID()}
	go func() {
		followed := make(chan struct{})
		go func() {
			defer close(followed)
			r.follow(client)
		}()
		trace, err := client.Drive(ctx, controller.Scenario{TurnID: turnID, Text: text})
		<-followed
		_ = client.Close()
		r.finish(trace, err)
		over()
	}()
	return nil
}

// follow takes every message of the stream until the run is over.
func (r *run) follow(client *controller.Client) {
	defer r.inbox.shut()
	for m, err := range client.Messages(context.Background()) {
		if err != nil {
			return // Drive says it too
		}
		r.take(r.inbox.take(), &m)
	}
}

// take records and folds one message.
func (r *run) take(line []byte, m *protocol.StreamMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.add(line, m)
	if m.Kind == protocol.KindEvent {
		r.events++
		r.snapshot.Apply(*m.Event)
		if r.history.reduced && r.events%forgetEvery == 0 {
			r.forget()
		}
	}
	r.notify()
}

// forget drops what grows with every event and cannot be compared any more.
func (r *run) forget() {
	r.snapshot.Timeline = []controller.TimelineEntry{}
	for i := range r.snapshot.Items {
		r.snapshot.Items[i].Text = nil
	}
}

// finish records the end of the run.
func (r *run) finish(trace *controller.Trace, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over, r.ended, r.client = true, time.Now(), nil
	if r.history.reduced {
		r.forget()
	}
	if trace != nil {
		r.end.exit, r.end.stderr, r.end.forced = &trace.Exit, trace.Stderr, trace.Forced
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		r.end.fault = err.Error()
	}
	r.notify()
}

// notify wakes the streams. The lock is held.
func (r *run) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// isOver reports whether the run has ended.
func (r *run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// runInfo is a run as the list shows it.
type runInfo struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	RunID      string    `json:"runId"`
	SessionID  string    `json:"sessionId"`
	RunnerID   string    `json:"runnerId"`
	StartedAt  time.Time `json:"startedAt"`
	EndedAt    time.Time `json:"endedAt,omitzero"`
	Active     bool      `json:"active"`
	Phase      string    `json:"phase"`
	Events     int64     `json:"events"`
	Pending    int       `json:"pendingRequests"`
	TurnActive bool      `json:"turnActive"`
	// State and Reason are those of run.terminal, empty without it.
	State  protocol.RunTerminalState `json:"state"`
	Reason protocol.Reason           `json:"reason"`
	// Reduced is true where parts of the history are not kept.
	Reduced bool `json:"reduced"`
}

func (r *run) info() runInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.infoLocked()
}

func (r *run) infoLocked() runInfo {
	i := runInfo{
		ID: r.id, Kind: r.choice.Kind, Name: r.choice.Name,
		RunID: r.bound.runID, SessionID: r.bound.sessionID, RunnerID: r.bound.runnerID,
		StartedAt: r.started.UTC(), EndedAt: r.ended.UTC(), Active: !r.over,
		Phase: r.snapshot.Phase, Events: r.events, Pending: len(r.snapshot.Pending()), Reduced: r.history.reduced,
	}
	if r.ended.IsZero() {
		i.EndedAt = time.Time{}
	}
	if n := len(r.snapshot.Turns); n > 0 {
		switch r.snapshot.Turns[n-1].State {
		case "submitted", "accepted", "started":
			i.TurnActive = !r.over
		}
	}
	if t := r.snapshot.Terminal; t != nil {
		i.State, i.Reason = t.RunTerminalState, t.Reconciliation.Reason
	}
	return i
}

// traceBody is the final trace of a run: its stream is under events.
type traceBody struct {
	Run      runInfo         `json:"run"`
	Snapshot json.RawMessage `json:"snapshot"`
	// Exit is how the runner process ended, null for a recorded run.
	Exit   *protocol.ExitFact `json:"runnerExit"`
	Stderr string             `json:"runnerStderr"`
	Forced string             `json:"forced"`
	// Fault is why the controller ended the run, where it had to.
	Fault string `json:"fault"`
	// Problems are what is wrong with a recorded run, the first ones;
	// ProblemCount counts all.
	Problems     []controller.Problem `json:"problems"`
	ProblemCount int                  `json:"problemCount"`
}

// trace is the final trace; false while the run is active.
func (r *run) trace() (traceBody, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		return traceBody{}, false, nil
	}
	snapshot, err := json.Marshal(&r.snapshot)
	body := traceBody{
		Run: r.infoLocked(), Snapshot: snapshot, Exit: r.end.exit, Stderr: r.end.stderr, Forced: r.end.forced,
		Fault: r.end.fault, Problems: r.end.problems, ProblemCount: r.end.count,
	}
	if body.Problems == nil {
		body.Problems = []controller.Problem{}
	}
	return body, true, err
}

// inbox holds the lines of the runner from the moment they are read until
// their message is taken. It is what slows a runner down that writes faster
// than the console folds.
type inbox struct {
	mu    sync.Mutex
	room  sync.Cond
	lines [][]byte
	size  int // bytes
	done  bool
}

func newInbox() *inbox {
	b := &inbox{}
	b.room.L = &b.mu
	return b
}

// put is the client's tap.
func (b *inbox) put(line []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.size > maxInFlight && !b.done {
		b.room.Wait()
	}
	if !b.done {
		b.size += len(line)
		b.lines = append(b.lines, append([]byte(nil), line...))
	}
}

// take is the line of the next message: put was called for it before.
func (b *inbox) take() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := b.lines[0]
	b.lines[0] = nil
	b.lines = b.lines[1:]
	b.size -= len(line)
	b.room.Signal()
	return line
}

// shut lets every further line go.
func (b *inbox) shut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.lines = true, nil
	b.room.Broadcast()
}
