package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"prp/controller"
	"prp/controller/bridge"
	"prp/protocol"
)

const (
	// retainRun bounds what is kept in memory of the stream of a run, in bytes:
	// its events are kept on disk.
	retainRun = 256 << 10
	// orderWait bounds how long a runner may take to answer a command. The
	// harness may need 30 s to be ready (prp.md section 7).
	orderWait = 60 * time.Second
	turnID    = "turn_1"
)

// run is a run that is not over. The loop owns it, but for what the lock guards.
type run struct {
	c      *Connector
	req    *createRun
	agent  *Agent
	spool  *spool
	status RunStatus
	dir    string

	// ctx ends what belongs to the run: transfers, and the run itself.
	ctx       context.Context
	stop      context.CancelCauseFunc
	moves     context.Context // ends the uploads, with ctx or before it
	stopMoves context.CancelCauseFunc
	cancelled bool
	client    *controller.Client // nil until the runner is there
	waiters   []string           // ids of the cancel_run that are not answered
	force     *time.Timer

	mu       sync.Mutex
	tr       *translation
	source   int64           // the last event of the runner that was taken
	terminal *protocol.Event // is told last
	warned   bool
	turnOver chan struct{} // closed when the turn has ended
	ended    bool          // it has
	todo     []func()      // for the loop
	uploads  sync.WaitGroup
	sent     map[string]bool // artifacts that were looked at
	many     bool            // there are more, which was told
	uploaded bool            // no more are taken
	// transfers is what becomes of them; nil before the first one.
	transfers *bridge.Store
	moving    chan struct{} // has one for each that is on its way
}

// Causes of the end of a run's context.
var (
	errCancelled = errors.New("the run was cancelled")
	errLeft      = errors.New("the connector ends")
	// errSlowUpload ends uploads only.
	errSlowUpload = errors.New("it took too long after the end of the run")
)

func (c *Connector) newRun(req *createRun, agent *Agent, s *spool) *run {
	r := &run{
		c: c, req: req, agent: agent, spool: s, status: StatusQueued, dir: s.dir,
		tr: newTranslation(c.mask), turnOver: make(chan struct{}), sent: map[string]bool{}, moving: make(chan struct{}, uploadsAtOnce),
	}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	r.moves, r.stopMoves = context.WithCancelCause(r.ctx)
	return r
}

// start begins a run. From here on it is never begun again.
func (c *Connector) start(r *run) {
	// The marker is on disk before the runner is: writeWhole syncs it.
	if err := writeWhole(filepath.Join(r.dir, startedFile), nil); err != nil {
		c.fail(err)
		return
	}
	r.status = StatusRunning
	c.running++
	c.jobs.Go(func() {
		end := r.execute()
		c.call(func() { c.finished(r, end) })
	})
}

// execute runs the run from its inputs to its end, and returns its completion.
func (r *run) execute() event {
	began, limit := time.Now(), r.req.Constraints.limit()
	inputs, inTime := r.fetchWithin(limit)
	if r.ctx.Err() != nil {
		return r.unstarted(cause{
			status: StatusCancelled, reason: reasonCancelled, message: context.Cause(r.ctx).Error() + " before it began",
		})
	}
	if !inTime {
		return r.unstarted(cause{
			status: StatusFailed, code: CodeAdapter, reason: string(protocol.ReasonRunTimedOut),
			message: fmt.Sprintf("the artifacts of the run were not there within its %s", limit),
		})
	}
	if limit > 0 {
		limit = max(time.Millisecond, limit-time.Since(began))
	}
	ended := make(chan struct{})
	client, err := controller.Start(context.Background(), controller.Config{
		Argv: r.argv(limit), Env: r.c.cfg.Env, RunID: r.req.RunID, MaxRetainedBytes: retainRun, OnEvent: r.see(ended),
	})
	if err != nil {
		return r.unstarted(cause{
			status: StatusFailed, code: CodeInternal, reason: reasonNoRunner, message: "the runner cannot be started: " + err.Error(),
		})
	}
	r.c.call(func() { r.attach(client) })
	going := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { going <- r.setGoing(ctx, client, inputs) }()
	r.drive(client, going, ended)
	r.awaitUploads()
	return r.ending(func(t *translation) event {
		if r.terminal == nil {
			return t.lost(stamp(), "the runner died before it told the end of the run")
		}
		return r.settle(t)
	})
}

// drive waits for the end of the run.
func (r *run) drive(client *controller.Client, going <-chan error, ended <-chan struct{}) {
	turnOver := r.turnOver
	for {
		select {
		case err := <-going:
			going = nil
			if err != nil {
				r.notGoing(err)
				client.Close()
			}
		case <-turnOver:
			turnOver = nil
			go func() {
				ctx, stop := context.WithTimeout(context.Background(), orderWait)
				defer stop()
				_ = client.CloseSession(ctx) // rejected is a run that ends by itself
			}()
		case <-ended:
			client.Close()
			return
		case <-client.Done():
			return
		}
	}
}

// notGoing says why a run ends that could not be set going: its terminal would
// only say that we have ended it. Where the runner has refused or is gone, that is
// told by itself, and so is an end that we have ordered.
func (r *run) notGoing(err error) {
	if errors.As(err, new(*controller.RejectedError)) || errors.Is(err, controller.ErrRunnerGone) ||
		errors.Is(err, controller.ErrClosed) || r.ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tr.cause == nil {
		r.tr.cause = &cause{status: StatusFailed, code: CodeInternal, reason: reasonNotGoing, message: "the run could not be set going: " + err.Error()}
	}
}

// argv is the command line of the runner; limit is what the run may take from its
// start, 0 where it has no limit.
func (r *run) argv(limit time.Duration) []string {
	a := r.agent
	argv := append(slices.Clone(r.c.cfg.Runner),
		"--clock", "system", "--harness", a.Harness, "--terminal", filepath.Join(r.dir, terminalFile))
	if a.Cwd != "" {
		argv = append(argv, "--cwd", a.Cwd)
	}
	for _, name := range a.EnvAllow {
		argv = append(argv, "--env-allow", name)
	}
	if limit > 0 {
		argv = append(argv, "--run-timeout-ms", strconv.FormatInt(max(1, limit.Milliseconds()), 10))
	}
	return argv
}

// setGoing sends the three commands that make a run.
func (r *run) setGoing(ctx context.Context, client *controller.Client, inputs []inputFile) error {
	ctx, cancel := context.WithTimeout(ctx, 2*orderWait)
	defer cancel()
	if err := client.Prepare(ctx); err != nil {
		return err
	}
	if err := client.OpenSession(ctx); err != nil {
		return err
	}
	return client.StartTurn(ctx, turnID, r.req.Goal, r.turn(inputs))
}

// turn is what turn.start has beside the goal (row 8).
func (r *run) turn(inputs []inputFile) map[string]any {
	extra := map[string]any{"constraints": r.req.Constraints}
	if r.agent.MaxTurns > 0 {
		extra["max_turns"] = r.agent.MaxTurns
	}
	if r.req.Context != nil {
		extra["context_bundle"] = r.req.Context
	}
	if r.req.Handoff != nil {
		extra["handoff"] = r.req.Handoff
	}
	if len(inputs) > 0 {
		extra["artifacts"] = inputs
	}
	if r.agent.GoalTo != "" {
		extra[r.agent.GoalTo] = r.req.Goal
	}
	return extra
}

// Parts of a turn that are counted at about their largest, in bytes: the command
// around the payload, and an artifact with its path and a reason.
const (
	turnFrame    = 4 << 10
	turnArtifact = 1 << 10
)

// turnSize is about how many bytes turn.start will have; not fewer.
func turnSize(req *createRun, agent *Agent) int {
	n := len(marshal(req.Goal))
	if agent.GoalTo != "" {
		n *= 2
	}
	// The artifacts are named once more, with their paths.
	for _, part := range []any{req.Context, req.Handoff, req.Constraints, req.Artifacts} {
		n += len(marshal(part))
	}
	return n + turnFrame + len(req.Artifacts)*turnArtifact
}

// see takes the runner's events. It never waits for the loop.
func (r *run) see(ended chan<- struct{}) func(e *protocol.Event) {
	return func(e *protocol.Event) {
		if r.take(e) {
			close(ended)
		}
	}
}

// take takes one event of the runner; true is the last one.
func (r *run) take(e *protocol.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.EventType == protocol.EventRunTerminal {
		r.terminal = e
		return true
	}
	events := r.tr.apply(e)
	r.uploadAll(e) // before the event, so that it is never told without them
	last := len(events) - 1
	for _, ev := range events[:last] {
		r.put(ev)
	}
	r.source = e.SourceSeq // not before its own is there: see tellLost
	r.put(events[last])
	r.react(e)
	return false
}

// put has an event on disk and wakes the session; the lock is held.
func (r *run) put(ev event) {
	if _, err := r.spool.put(ev, strconv.FormatInt(r.source, 10)); err != nil {
		go r.c.call(func() { r.c.fail(err) })
		return
	}
	r.c.nudge()
}

// warn tells something of the connector's own in the run's events.
func (r *run) warn(code, message string, more members) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spoolOver() {
		return
	}
	r.put(warning(stamp(), code, r.c.mask.String(message), more))
}

func (r *run) spoolOver() bool {
	r.spool.mu.Lock()
	defer r.spool.mu.Unlock()
	return r.spool.over
}

// Events of the open families by which a harness asks its connector for
// something (rows 13 and 14).
const (
	eventHandoff  protocol.EventType = "interaction.handoff"
	eventArtifact protocol.EventType = "interaction.artifact"
)

// react does what an event asks for, in the background; the lock is held.
func (r *run) react(e *protocol.Event) {
	payload := slices.Clone(e.Payload) // it is valid during the call
	switch e.EventType {
	case protocol.EventRequestCreated:
		r.later(func() { r.c.asked(r, payload) })
	case protocol.EventRequestResolved, protocol.EventRequestExpired, protocol.EventRequestCancelled:
		r.later(func() { r.c.settled(r, payload) })
	case eventHandoff:
		r.later(func() { r.c.handoff(r, payload) })
	case protocol.EventUsageReported:
		most := r.req.Constraints.MaxTokens
		if n := r.tr.tokens; most > 0 && n > most {
			r.later(func() {
				r.c.end(r, &cause{
					status: StatusFailed, code: CodeQuota, reason: reasonTokens,
					message: "the run has used " + strconv.FormatInt(n, 10) + " tokens of at most " + strconv.FormatInt(most, 10),
				})
			})
		}
	}
	if e.EventType.EndsTurn() && !r.ended {
		r.ended = true
		close(r.turnOver)
	}
}

// later has the loop do f, after all that it was to do for the run before; the
// lock is held. It does not wait.
func (r *run) later(f func()) {
	r.todo = append(r.todo, f)
	if len(r.todo) > 1 {
		return // it is done with the first one
	}
	go r.c.call(func() {
		r.mu.Lock()
		todo := r.todo
		r.todo = nil
		r.mu.Unlock()
		for _, f := range todo {
			f()
		}
	})
}

// payloadOf opens the payload of an event.
func payloadOf(raw json.RawMessage) members {
	m := members{}
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return members{}
	}
	return maps.Clone(m)
}
