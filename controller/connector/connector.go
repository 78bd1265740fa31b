package connector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"prp/controller/bridge"
	"prp/protocol"
)

// ErrRefused is a server that does not take this connector: HTTP 401 or 403, or
// the WebSocket status 1008 (row 16). Trying again would not help.
var ErrRefused = errors.New("the server refuses this connector; check its certificate, its token and its id")

// Connector is a connector.
type Connector struct {
	cfg      Config
	instance string
	link     *bridge.Link
	client   *http.Client
	store    *bridge.Store // runs by run_id
	grants   *bridge.Store // approvals that were used, by approval_id
	mask     *bridge.Masker

	frames chan inbound  // from the session
	calls  chan func()   // for the loop
	wake   chan struct{} // of size one: the session's writer has something to do
	// beatSoon, of size one, asks for a heartbeat: its answer tells what was read.
	beatSoon chan struct{}
	over     chan struct{} // closed when the loop has ended
	jobs     sync.WaitGroup

	// mu guards what the session reads.
	mu      sync.Mutex
	spools  []*spool
	answers []*answer
	asks    []*ask
	batch   int // bytes of a batch (row 16)
	frame   int // bytes of a frame
	beat    time.Duration
	gather  time.Duration
	session int64 // number of the present one, 0 where there is none
	state   State

	// What follows belongs to the loop.
	mode     Mode
	draining bool
	leaving  bool // nothing is begun any more
	room     int  // runs at once, as the server set it
	runs     map[string]*run
	queue    []*run
	running  int
	fatal    error
	refused  error
	ended    time.Time // when the last run ended
}

// State is what a person wants to know of a connector.
type State struct {
	ConnectorID string `json:"connector_id"`
	Mode        Mode   `json:"mode"`
	// Transport is "websocket" or "https" while there is a session.
	Transport   string    `json:"transport,omitempty"`
	Connected   bool      `json:"connected"`
	Since       time.Time `json:"since"`
	LastContact time.Time `json:"last_contact"`
	Sessions    int64     `json:"sessions"`
	// Error is why there is no session.
	Error      string `json:"error,omitempty"`
	ActiveRuns int    `json:"active_runs"`
	QueuedRuns int    `json:"queued_runs"`
	// WaitingRuns have events that the server has not acknowledged.
	WaitingRuns int   `json:"waiting_runs"`
	SpoolBytes  int64 `json:"spool_bytes"`
}

// answer is a frame that answers a request of the server. It waits until the
// server has the events of a run up to seq.
type answer struct {
	body []byte
	run  *spool
	seq  int64
	// told is one that the server does not ask for again, and which is not in the
	// events either: it is sent again on the next connection where this one is
	// lost before it was read (rows 11 and 14).
	told bool
	// holds is the run whose folder stays until it was read; nil is none.
	holds *spool
	// session is where it was written last, and place its place among those that
	// were; see confirm.
	session, place int64
}

// New opens the connector's state. What a connector before it left unfinished is
// brought in order: runs that had not begun wait again, those that had are told
// as they truly ended, or as unknown.
func New(cfg Config) (*Connector, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	c := &Connector{
		cfg: cfg, instance: newID(), mask: bridge.NewMasker(cfg.Secrets),
		frames: make(chan inbound), calls: make(chan func()), wake: make(chan struct{}, 1), beatSoon: make(chan struct{}, 1), over: make(chan struct{}),
		batch: maxFrame, frame: maxFrame, beat: cfg.Times.Heartbeat,
		mode: ModeServing, room: cfg.MaxConcurrentRuns, runs: map[string]*run{},
		state: State{ConnectorID: cfg.ID, Mode: ModeServing, Since: time.Now()},
	}
	if err := c.open(); err != nil {
		c.close()
		return nil, err
	}
	c.publish()
	return c, nil
}

func (c *Connector) open() (err error) {
	in := func(name string) string { return filepath.Join(c.cfg.Dir, name) }
	link := c.cfg.Link
	if link.Client == nil {
		if link.Client, err = (bridge.TLS{}).Client(); err != nil {
			return err
		}
	}
	c.client = link.Client
	link.MaxFrame, link.Compress = maxFrame, true
	if token := link.Token; token != nil {
		link.Token = c.mask.Tokens(c.cfg.Secrets, token)
		c.cfg.Link.Token = link.Token // for the HTTPS fallback
	}
	if c.link, err = bridge.NewLink(link); err != nil {
		return err
	}
	if c.store, err = bridge.OpenStore(in(runsFile), bridge.StoreConfig{}); err != nil {
		return err
	}
	if c.grants, err = bridge.OpenStore(in(grantsFile), bridge.StoreConfig{}); err != nil {
		return err
	}
	if exists(in(stoppedFile)) {
		c.mode = ModeStopped
		c.cfg.Report("stopped before its start: new work is refused until 'prp connect --resume'")
	}
	return c.recover()
}

func (c *Connector) close() {
	if c.store != nil {
		c.store.Close()
	}
	if c.grants != nil {
		c.grants.Close()
	}
	for _, s := range c.spools {
		s.out.Close()
	}
}

// Run connects and serves until ctx ends; then every run is ended, and its end
// is on disk for the next start. It returns nil after [Connector.Drain] has done
// its work, [ErrRefused] where the server does not take the connector (runs go on
// to their end before it returns), the cause of ctx, or why the state on disk
// cannot be written. It blocks until nothing of any run is left.
func (c *Connector) Run(ctx context.Context) error {
	defer c.close()
	defer close(c.over)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var linked sync.WaitGroup
	linked.Go(func() {
		if err := c.dial(ctx); err != nil && ctx.Err() == nil {
			c.call(func() { c.refuse(err) })
		}
	})
	c.dropOrphans()
	c.schedule()
	c.publish()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case in := <-c.frames:
			c.take(in)
		case call := <-c.calls:
			call()
		case <-tick.C:
			c.look()
		case <-ctx.Done():
			c.leave(&linked)
			return context.Cause(ctx)
		}
		c.publish()
		if done, err := c.done(); done {
			stop()
			c.leave(&linked)
			return err
		}
	}
}

// tickEvery is how often the loop looks at what has no event of its own.
const tickEvery = 200 * time.Millisecond

// look does what time alone brings.
func (c *Connector) look() {
	c.expireAsks(time.Now())
	c.dropSpools()
	stopped := exists(filepath.Join(c.cfg.Dir, stoppedFile))
	switch {
	case stopped && c.mode != ModeStopped:
		c.stopAll()
	case !stopped && c.mode == ModeStopped:
		c.mode = ModeServing
		if c.draining {
			c.mode = ModeDraining
			return
		}
		c.cfg.Report("new work is taken again")
		c.schedule()
	}
}

// done tells whether Run has nothing left to do.
func (c *Connector) done() (bool, error) {
	switch {
	case c.fatal != nil:
		return true, c.fatal
	case c.running > 0:
		return false, nil
	case c.refused != nil:
		return true, c.refused
	case !c.draining:
		return false, nil
	}
	n, unread := c.undelivered()
	switch {
	case n+unread == 0:
		c.dropSpools()
		return true, nil
	case n == 0:
		signal(c.beatSoon)
	}
	return time.Since(c.ended) >= c.cfg.Times.Deliver, nil
}

// leave ends every run and waits for all that was started.
func (c *Connector) leave(linked *sync.WaitGroup) {
	c.leaving = true
	for _, r := range c.runs {
		r.leave()
	}
	done := make(chan struct{})
	go func() {
		linked.Wait()
		c.jobs.Wait()
		close(done)
	}()
	for {
		select {
		case call := <-c.calls:
			call()
		case <-c.frames: // a session that ends
		case <-done:
			return
		}
	}
}

// call has f run by the loop. After its end nothing is left to be done.
func (c *Connector) call(f func()) {
	select {
	case c.calls <- f:
	case <-c.over:
	}
}

// fail ends the connector: without its disk it can promise nothing.
func (c *Connector) fail(err error) {
	if c.fatal == nil {
		c.fatal = fmt.Errorf("the state cannot be written: %w", err)
	}
}

// refuse ends the connector once its runs have ended.
func (c *Connector) refuse(err error) {
	c.refused = err
	c.cfg.Report(c.mask.String(err.Error()))
	c.drain()
}

// Drain has the connector refuse new work, let its runs end, deliver their
// events, and return from Run. It does not wait.
func (c *Connector) Drain() {
	go c.call(c.drain)
}

func (c *Connector) drain() {
	if c.mode == ModeServing {
		c.mode = ModeDraining
	}
	c.draining, c.ended = true, time.Now()
}

// nudge wakes the session's writer.
func (c *Connector) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// reply queues a frame that answers a request of the server. The server asks
// again where it gets none.
func (c *Connector) reply(v any) { c.queueAnswer(&answer{body: marshal(v)}) }

// tell queues a frame that the server has to get, after the events of a run up to
// seq where there is one.
func (c *Connector) tell(v any, run *spool, seq int64) {
	c.queueAnswer(&answer{body: marshal(v), run: run, seq: seq, told: true})
}

func (c *Connector) queueAnswer(a *answer) {
	c.mu.Lock()
	c.answers = append(c.answers, a)
	if extra := len(c.answers) - maxAnswers; extra > 0 {
		c.answers = slices.Delete(c.answers, 0, extra)
	}
	c.mu.Unlock()
	c.nudge()
}

// refuseTo answers a request with an error.
func (c *Connector) refuseTo(in inbound, e *Error) {
	out := *e
	out.Type, out.ReplyTo, out.RunID = typeError, in.id, in.runID
	out.Message = c.mask.String(out.Message)
	c.reply(out)
}

// take handles one frame of the server.
func (c *Connector) take(in inbound) {
	if in.bad != nil {
		c.refuseTo(in, in.bad)
		return
	}
	switch in.kind {
	case typeCreateRun:
		c.create(in)
	case typeCancelRun:
		c.cancel(in)
	case typeApprovalGranted, typeApprovalDenied:
		c.approval(in)
	case typeHandoffAck, typeUploadURL, typeDownloadURL:
		c.answered(in)
	case typeError:
		c.erred(in)
	}
}

// publish makes the loop's part of the state visible.
func (c *Connector) publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Mode, c.state.ActiveRuns, c.state.QueuedRuns = c.mode, c.running, len(c.queue)
}

// State is the connector's state now.
func (c *Connector) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state
	for _, sp := range c.spools {
		if sp.out.Acked() < sp.out.Last() {
			s.WaitingRuns++
			s.SpoolBytes += sp.out.Bytes()
		}
	}
	if at := c.link.State().LastContact; at.After(s.LastContact) {
		s.LastContact = at
	}
	return s
}

// metrics is what a heartbeat tells.
func (c *Connector) metrics() (Mode, Metrics) {
	var m Metrics
	m.CPUPct, m.MemoryMB = c.cfg.Figures()
	c.mu.Lock()
	defer c.mu.Unlock()
	m.ActiveRuns, m.QueuedRuns = c.state.ActiveRuns, c.state.QueuedRuns
	return c.state.Mode, m
}

// stamp is now as the wire has it.
func stamp() string { return time.Now().UTC().Format(protocol.TimeLayout) }
