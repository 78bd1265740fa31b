package devserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"prp/controller/workerclient"
	"prp/controller/workerclient/coretask"
)

// TaskRunsConfig says how a server of task runs behaves. The zero value behaves
// well.
type TaskRunsConfig struct {
	// Token is for who submits runs; empty asks for none.
	Token string
	Rules []Rule
	// Submitted is told each run that was submitted, so that a worker can be
	// started. It must not block.
	Submitted func(id, token string)
}

// TaskRun is a run that a server offers.
type TaskRun struct {
	// Bundle is what is fetched. An empty id, status or time is filled in.
	Bundle workerclient.GetTaskRunResponse
	// Token is the run token; empty is one that is made up.
	Token string
	// Secrets are the secret variables; nil answers 404.
	Secrets map[string]string
	// Plugins are the packed files by "name/version". Digests overrides what the
	// header says of one.
	Plugins map[string][]byte
	Digests map[string]string
	// Workspaces tells that the server keeps workspaces, Base with which
	// checkpoint this one begins; nil is none yet.
	Workspaces bool
	Base       *workerclient.WorkspaceBaseResponse
}

// Call is a request that came for a run.
type Call struct {
	// Kind is one of the kinds that a rule can mean.
	Kind string
	Body json.RawMessage
	// Status is what was answered, 0 where nothing was.
	Status int
}

// TaskRunState is what a server knows of a run.
type TaskRunState struct {
	Status    string
	SessionID string
	// Text is the text that came by the stream.
	Text string
	// Claim and End are the reports that counted.
	Claim, End *workerclient.PatchTaskRunRequest
	Restores   []workerclient.WorkspaceRestoreRequest
	Seeds      []workerclient.SeedCheckpointRequest
	// Calls are all calls in order.
	Calls []Call
}

// Count counts the calls of a kind.
func (s TaskRunState) Count(kind string) (n int) {
	for _, c := range s.Calls {
		if c.Kind == kind {
			n++
		}
	}
	return n
}

// run is a run with its state. The lock of the server guards it.
type run struct {
	TaskRun
	TaskRunState
	// text becomes TaskRunState.Text. It grows without a copy for each delta.
	text strings.Builder
}

// TaskRuns is a server of the worker API for task runs (workerclient.md).
type TaskRuns struct {
	cfg   TaskRunsConfig
	rules *ruleBook

	mu      sync.Mutex
	runs    map[string]*run
	changed chan struct{}
	closed  context.Context
	close   context.CancelFunc
}

// NewTaskRuns returns a server without runs.
func NewTaskRuns(cfg TaskRunsConfig) *TaskRuns {
	s := &TaskRuns{cfg: cfg, rules: newRuleBook(cfg.Rules), runs: map[string]*run{}, changed: make(chan struct{})}
	s.closed, s.close = context.WithCancel(context.Background())
	return s
}

// Close ends everything that waits.
func (s *TaskRuns) Close() { s.close() }

// Add offers a run and returns its id and its token.
func (s *TaskRuns) Add(r TaskRun) (id, token string) {
	b := &r.Bundle
	fill := func(at *string, value string) {
		if *at == "" {
			*at = value
		}
	}
	fill(&b.Run.ID, "run_"+randomID())
	fill(&b.Run.TaskID, "task_"+randomID())
	fill(&b.Task.ID, b.Run.TaskID)
	fill(&b.Task.ConversationID, "conversation_1")
	fill(&b.Task.SpaceID, "space_1")
	fill(&b.Task.UserID, "user_1")
	fill(&b.Run.Status, coretask.StatusScheduled)
	fill(&r.Token, "run-token-"+randomID())
	if b.Run.CreatedAt.IsZero() {
		b.Run.CreatedAt = time.Now().UTC()
	}
	s.change(func() {
		s.runs[b.Run.ID] = &run{TaskRun: r, TaskRunState: TaskRunState{Status: b.Run.Status}}
	})
	return b.Run.ID, r.Token
}

// change changes the state and wakes who waits for it.
func (s *TaskRuns) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// RequestCancel asks for the end of a run; false is a run that is not known.
func (s *TaskRuns) RequestCancel(id string) (known bool) {
	s.change(func() {
		if r := s.runs[id]; r != nil {
			r.Bundle.Run.CancelRequested, known = true, true
		}
	})
	return known
}

// SetStatus changes the status of a run, as another worker or a person would.
func (s *TaskRuns) SetStatus(id, status string) {
	s.change(func() {
		if r := s.runs[id]; r != nil {
			r.Status = status
		}
	})
}

// Fail ends a run that no worker will end, and says why, as a server does that
// knows its worker to be gone. A run that has its end keeps it.
func (s *TaskRuns) Fail(id, why string) {
	s.change(func() {
		if r := s.runs[id]; r != nil {
			r.report(workerclient.PatchTaskRunRequest{Status: coretask.StatusFailed, ErrorMessage: &why})
		}
	})
}

// SetToken replaces the token of a run: the one before is refused from then on.
func (s *TaskRuns) SetToken(id, token string) {
	s.change(func() {
		if r := s.runs[id]; r != nil {
			r.Token = token
		}
	})
}

// State is what is known of a run now.
func (s *TaskRuns) State(id string) TaskRunState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(id)
}

func (s *TaskRuns) state(id string) TaskRunState {
	r := s.runs[id]
	if r == nil {
		return TaskRunState{}
	}
	out := r.TaskRunState
	out.Text = r.text.String()
	// What is in the lists does not change, and what comes later is not seen: a
	// copy for each change would cost more with each call.
	out.Calls, out.Restores, out.Seeds = slices.Clip(out.Calls), slices.Clip(out.Restores), slices.Clip(out.Seeds)
	return out
}

// Await blocks until a condition on a run holds.
func (s *TaskRuns) Await(ctx context.Context, id string, holds func(TaskRunState) bool) error {
	for {
		s.mu.Lock()
		now, changed := s.state(id), s.changed
		s.mu.Unlock()
		if holds(now) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed.Done():
			return s.closed.Err()
		}
	}
}

// bundle is what is fetched now. The lock is held.
func (r *run) bundle() workerclient.GetTaskRunResponse {
	b := r.Bundle
	b.Run.Status = r.Status
	if r.SessionID != "" {
		session := r.SessionID
		b.Task.SessionID = &session
	}
	b.Plugins = slices.Clone(b.Plugins)
	return b
}

// report takes a PATCH and returns the status of the answer and why.
func (r *run) report(p workerclient.PatchTaskRunRequest) (int, string) {
	switch {
	case p.Status == coretask.StatusRunning && r.Status == coretask.StatusScheduled:
		r.Status, r.Claim = p.Status, &p
		if p.SessionID != nil {
			r.SessionID = *p.SessionID
		}
	case p.Status == coretask.StatusRunning:
		return 409, fmt.Sprintf("the run is %s", r.Status)
	case !coretask.IsTerminal(p.Status):
		return 400, fmt.Sprintf("%q is no status that a worker reports", p.Status)
	case !coretask.IsTerminal(r.Status):
		r.Status, r.End = p.Status, &p
	}
	return 200, ""
}

// secrets is a copy of the run's secret variables.
func (r *run) secrets() workerclient.TaskRunSecretsResponse {
	return workerclient.TaskRunSecretsResponse{Env: maps.Clone(r.Secrets)}
}
