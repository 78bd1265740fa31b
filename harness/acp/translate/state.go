package translate

import (
	"time"

	"prp/protocol"
)

// Config says how a conversation is held. Times of zero take the defaults, but
// for the two bounds of a turn, where zero is never.
type Config struct {
	// Cwd is the absolute path that a session works in.
	Cwd string
	// PID is the agent's process id, told in the session's first event; 0 is
	// not told.
	PID int
	// Version is the adapter's own, told to the agent.
	Version string
	// Policy decides about permissions.
	Policy Policy
	// AuthMethod is the method to authenticate with where the agent asks for
	// it; without one such a session fails.
	AuthMethod string
	// TurnTimeout bounds a turn, TurnIdle the silence of the agent in it.
	TurnTimeout, TurnIdle time.Duration
	// CancelWait is how long a cancelled turn has to end.
	CancelWait time.Duration
	// CloseWait is how long session/close has, and then each step that ends
	// the agent: the end of its stdin, and SIGTERM.
	CloseWait time.Duration
}

const (
	// defaultCancelWait is below the runner's grace after an interrupt
	// (10 s), and far above the 1 to 141 ms that agents need.
	defaultCancelWait = 5 * time.Second
	// defaultCloseWait is what an agent needs to write its state down.
	defaultCloseWait = 2 * time.Second
	// hurriedWait bounds each step once the runner ends the run: three of
	// them are less than its shortest grace (cancel, 2 s).
	hurriedWait = 500 * time.Millisecond
)

// phase is how far the conversation has come.
type phase uint8

const (
	phaseStarting phase = iota // initialize is not answered
	phaseReady                 // no session was asked for
	phaseOpening               // the session is not there yet
	phaseOpen
	phaseClosing // session/close is not answered
	phaseEnding  // the agent is to exit
	phaseOver
)

// State is one conversation with one agent.
type State struct {
	cfg     Config
	effects []Effect
	phase   phase

	nextID int64
	calls  map[int64]callKind // requests of ours without an answer

	agent     agent
	sessionID string
	open      opening
	queue     []protocol.HarnessCommand // they wait for the session
	replaying bool                      // session/load tells the past

	turn     *turn
	book     itemBook
	requests []*request
	asked    int // requests so far
	metadata map[string]*metadata
	told     map[string]bool // diagnostics that were told as events

	saidReady bool
	held      []Effect // said before ready
	last      outcome  // of the last turn
	resultOut bool
	closedOut bool
	wantEnd   bool // the session is to be closed
	hurried   bool // the run is being ended
	gone      bool // the agent has exited
	rung      int  // of the steps that end the agent
	ours      bool // the agent was ended by a signal of ours
	failed    bool // the adapter could not do its work
}

// New begins a conversation. The first effects are there at once: initialize.
func New(cfg Config) *State {
	if cfg.CancelWait == 0 {
		cfg.CancelWait = defaultCancelWait
	}
	if cfg.CloseWait == 0 {
		cfg.CloseWait = defaultCloseWait
	}
	s := &State{
		cfg:      cfg,
		calls:    map[int64]callKind{},
		metadata: map[string]*metadata{},
		told:     map[string]bool{},
	}
	s.initialize()
	return s
}

// Take returns the effects since the last call.
func (s *State) Take() []Effect {
	fx := s.effects
	s.effects = nil
	return fx
}

func (s *State) turnID() string {
	if s.turn == nil {
		return ""
	}
	return s.turn.id
}

// Command takes a command of the runner.
func (s *State) Command(c protocol.HarnessCommand) {
	switch c.Type {
	case protocol.SessionOpen:
		s.openSession(c)
	case protocol.TurnStart:
		s.startTurn(c)
	case protocol.TurnInterrupt, protocol.TurnStop:
		s.interrupt(c)
	case protocol.RequestResolve:
		s.resolve(c)
	case protocol.SessionClose:
		s.cancelTurn(cancelRun, "session.close")
		s.end(false)
	case protocol.RunCancel:
		s.cancelTurn(cancelRun, "run.cancel")
		s.end(true)
	default:
		s.diagnose("command_ignored", string(c.Type), "the agent has nothing like it", nil)
	}
}

// InputEnded is the end of the runner's commands. An active turn then waits for
// answers that cannot come, or the run is being ended.
func (s *State) InputEnded() {
	active := s.turn != nil
	s.cancelTurn(cancelRun, "stdin ended")
	s.end(active && !s.wantEnd)
}

// Terminated is a signal to the adapter: the run is being ended.
func (s *State) Terminated(signal string) {
	s.cancelTurn(cancelRun, signal)
	s.end(true)
}

// Fired is a timer that came to its end.
func (s *State) Fired(t Timer) {
	switch t {
	case TimerTurn:
		s.cancelTurn(cancelTimeout, "the turn did not end within "+s.cfg.TurnTimeout.String())
	case TimerIdle:
		s.cancelTurn(cancelTimeout, "the agent was silent for "+s.cfg.TurnIdle.String())
	case TimerCancel:
		s.cancelFailed()
	case TimerClose:
		s.sessionEnded()
	case TimerExit:
		s.climb()
	}
}
