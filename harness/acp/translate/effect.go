package translate

import (
	"time"

	"prp/harness/fields"
	"prp/protocol"
)

// EffectKind says what an [Effect] orders.
type EffectKind uint8

const (
	// Say is a message to the runner: Type and Data, its payload.
	Say EffectKind = iota
	// Write is a line to the agent's stdin: Data, without its end.
	Write
	// SetTimer starts Timer anew; it fires after Delay.
	SetTimer
	// ClearTimer stops Timer.
	ClearTimer
	// CloseStdin closes the agent's stdin, after what was written to it.
	CloseStdin
	// Terminate sends SIGTERM to the agent.
	Terminate
	// Kill sends SIGKILL to the agent.
	Kill
	// Note is a line for a person on stderr: Data.
	Note
	// Finish ends the adapter with Exit, once all that was said is written.
	Finish
)

// Effect is one order to the caller.
type Effect struct {
	Kind  EffectKind
	Type  protocol.MessageType
	Data  []byte
	Timer Timer
	Delay time.Duration
	Exit  Exit
}

// Timer names a timer of the conversation.
type Timer uint8

const (
	// TimerTurn bounds a turn, TimerIdle the silence in it.
	TimerTurn Timer = iota
	TimerIdle
	// TimerCancel bounds the wait for the end of a turn that was cancelled.
	TimerCancel
	// TimerClose bounds the wait for the answer to session/close.
	TimerClose
	// TimerExit bounds the wait for the agent's exit after each step to end it.
	TimerExit
	// Timers is how many there are.
	Timers
)

// String is the timer's name.
func (t Timer) String() string { return [...]string{"turn", "idle", "cancel", "close", "exit"}[t] }

// Exit is how a process ended: by a status, or by a signal where Signal is not
// 0.
type Exit struct {
	Status int
	Signal int
}

// event says an event. The turn is that of the conversation, where there is
// one and the type belongs to a turn.
func (s *State) event(t protocol.EventType, turn, item string, payload *fields.Fields) {
	s.say(protocol.MessageEvent, protocol.AppendHarnessEvent(nil, t, turn, item, payload.Object()))
}

// say says a message. What comes before ready is held back until then, since
// ready is the first message of all; of much, the first is kept.
func (s *State) say(t protocol.MessageType, payload []byte) {
	e := Effect{Kind: Say, Type: t, Data: payload}
	switch {
	case t == protocol.MessageReady:
		s.saidReady = true
		s.effects = append(append(s.effects, e), s.held...)
		s.held = nil
	case s.saidReady:
		s.effects = append(s.effects, e)
	case len(s.held) < maxHeld:
		s.held = append(s.held, e)
	}
}

func (s *State) write(line []byte) {
	s.effects = append(s.effects, Effect{Kind: Write, Data: line})
}

func (s *State) setTimer(t Timer, d time.Duration) {
	s.effects = append(s.effects, Effect{Kind: SetTimer, Timer: t, Delay: d})
}

func (s *State) clearTimer(t Timer) {
	s.effects = append(s.effects, Effect{Kind: ClearTimer, Timer: t})
}

func (s *State) do(k EffectKind) { s.effects = append(s.effects, Effect{Kind: k}) }

// diagnose tells what is odd about the agent. The first of a code and name is
// an event, the others stand in the log tail only: an agent that is odd a
// thousand times does not fill the run.
func (s *State) diagnose(code, name, message string, more *fields.Fields) {
	f := fields.New().Text("code", code).Short("name", name).Short("message", message).With(more)
	key := code + " " + name
	if s.told[key] || len(s.told) >= maxNames {
		s.say(protocol.MessageDiagnostic, f.Object())
		return
	}
	s.told[key] = true
	s.event(protocol.EventHarnessDiag, s.turnID(), "", f)
}

func size(n int) *fields.Fields { return fields.New().Number("bytes", int64(n)) }
