package console

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"prp/controller"
	"prp/protocol"
	"prp/protocol/jsonl"
)

// registry holds the runs, oldest first.
type registry struct {
	cfg Config
	ctx context.Context // the end of it ends every run
	end context.CancelFunc
	wg  sync.WaitGroup // one for each active run

	mu     sync.Mutex
	runs   []*run
	active int
	closed bool
}

func newRegistry(cfg Config) *registry {
	ctx, end := context.WithCancel(context.Background())
	return &registry{cfg: cfg, ctx: ctx, end: end}
}

// start starts a run of a choice that the configuration has.
func (g *registry) start(kind, name, text string) (*run, *refusal) {
	i := slices.IndexFunc(g.cfg.Choices, func(c Choice) bool { return c.Kind == kind && c.Name == name })
	if i < 0 {
		return nil, refuse(http.StatusNotFound, "unknown_choice", fmt.Sprintf("expected something that can be started, got the %s %q", kind, name))
	}
	if no := g.reserve(); no != nil {
		return nil, no
	}
	r := newRun(newID(), g.cfg.Choices[i], g.cfg.HistoryBytes)
	cfg, over, err := g.cfg.Start(r.choice)
	release := func() {
		if over != nil {
			over()
		}
		g.release()
	}
	if err == nil {
		err = r.start(g.ctx, cfg, text, release)
	}
	if err != nil {
		release()
		return nil, refuse(http.StatusInternalServerError, "start_failed", err.Error())
	}
	g.keep(r)
	return r, nil
}

// reserve takes one of the places of active runs.
func (g *registry) reserve() *refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return refuse(http.StatusServiceUnavailable, "console_ending", "the console is ending")
	case g.active >= maxActiveRuns:
		return refuse(http.StatusTooManyRequests, "too_many_active_runs",
			fmt.Sprintf("expected at most %d active runs; end one first", maxActiveRuns))
	}
	g.active++
	g.wg.Add(1)
	return nil
}

func (g *registry) release() {
	g.mu.Lock()
	g.active--
	g.mu.Unlock()
	g.wg.Done()
}

// keep adds a run; the oldest that are over go, where there are too many. There
// always is one that is over, since fewer may be active than are kept.
func (g *registry) keep(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs = append(g.runs, r)
	for len(g.runs) > maxKeptRuns {
		i := slices.IndexFunc(g.runs, (*run).isOver)
		if i < 0 {
			return
		}
		g.runs = slices.Delete(g.runs, i, i+1)
	}
}

// list are all runs, the newest first.
func (g *registry) list() []*run {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := slices.Clone(g.runs)
	slices.Reverse(list)
	return list
}

func (g *registry) find(id string) (*run, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.runs {
		if r.id == id {
			return r, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "unknown_run", fmt.Sprintf("expected a run of this console, got %q", id))
}

// close ends every run by the controller's ladder and waits for them.
func (g *registry) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.end()
	g.wg.Wait()
}

// kill ends every run at once; it does not wait.
func (g *registry) kill() {
	for _, r := range g.list() {
		if c := r.running(); c != nil {
			go c.Kill()
		}
	}
}

// running is the client of an active run, else nil.
func (r *run) running() *controller.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client
}

// newID is an id for a URL.
func newID() string { return strings.ToLower(rand.Text()[:12]) }

// load reads a recorded run to its end.
func (g *registry) load(name string, in io.Reader) (*run, error) {
	r := newRun(newID(), Choice{Kind: KindRecorded, Name: name}, g.cfg.HistoryBytes)
	replayer := controller.NewReplayer()
	lines := jsonl.NewReader(bufio.NewReaderSize(in, 64<<10), maxRecordedLine)
	for {
		line, flags, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		m, found := replayer.Message(lines.LineNumber(), line, flags)
		r.takeRecorded(bytes.Clone(line), &m, found)
	}
	if err := replayer.NoRecord(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.problem(replayer.End())
	r.finish(nil, nil)
	g.keep(r)
	return r, nil
}

// maxRecordedLine bounds a line of a recorded run, in bytes, as package
// controller does for a live one.
const maxRecordedLine = 4 << 20

// takeRecorded takes one line of a recorded run.
func (r *run) takeRecorded(line []byte, m *protocol.StreamMessage, found []controller.Problem) {
	r.problem(found)
	if m.Kind != "" {
		if m.Kind == protocol.KindEvent && r.bound == (boundTo{}) {
			r.bound = boundTo{m.Event.RunID, m.Event.NormalizedSessionID, m.Event.SourceInstanceID}
		}
		r.take(line, m)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range found {
		r.history.addProblem(p)
	}
}

func (r *run) problem(found []controller.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end.count += len(found)
	if room := maxProblems - len(r.end.problems); room > 0 {
		r.end.problems = append(r.end.problems, found[:min(room, len(found))]...)
	}
}
