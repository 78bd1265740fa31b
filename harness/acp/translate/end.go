package translate

import (
	"fmt"
	"time"

	"prp/harness/fields"
	"prp/protocol"
)

// end closes the session and the agent, once the active turn is over. Hurried
// is for a run that is being ended from outside: every wait is short then.
func (s *State) end(hurried bool) {
	s.hurried = s.hurried || hurried
	s.wantEnd = true
	if s.turn != nil {
		if s.hurried {
			s.setTimer(TimerCancel, min(hurriedWait, s.cfg.CancelWait))
		}
		return // the end of the turn comes back here
	}
	switch {
	case s.phase == phaseOpen && s.agent.close && !s.hurried && !s.failed:
		s.phase = phaseClosing
		s.call(callClose, "session/close", fields.New().Text("sessionId", s.sessionID).Object())
		s.setTimer(TimerClose, s.cfg.CloseWait)
	case s.phase == phaseClosing && !s.hurried:
	case s.phase < phaseEnding:
		s.sessionEnded()
	case s.phase == phaseEnding && s.hurried:
		s.setTimer(TimerExit, s.exitWait())
	}
}

// sessionEnded reports the session's end and begins to end the agent.
func (s *State) sessionEnded() {
	if s.phase >= phaseEnding {
		return
	}
	s.clearTimer(TimerClose)
	s.endReplay()
	s.dropQueued(protocol.EventTurnCancelled, "", "the session is ending")
	s.reportEnd(protocol.EventSessionClosed, fields.New())
	s.phase = phaseEnding
	s.climb()
}

// reportEnd says the result and the end of the session, once.
func (s *State) reportEnd(t protocol.EventType, f *fields.Fields) {
	s.sendResult()
	if s.closedOut || s.phase < phaseOpening {
		return
	}
	s.closedOut = true
	s.event(t, "", "", f.Short("agentSessionId", s.sessionID).Own("agentMetadata", s.metadataFields()))
}

// sessionFailed ends a run that has no session.
func (s *State) sessionFailed(f *fields.Fields) {
	s.failed = true
	o := outcome{set: true, failed: true, summary: "The agent opened no session."}
	for _, c := range s.queue {
		if payload, _ := parse(c.Payload); c.Type == protocol.TurnStart {
			o.turnID = payload["turnId"].text()
			s.event(protocol.EventTurnFailed, o.turnID, "", fields.New().Text("code", "session_failed"))
		}
	}
	s.queue, s.last = nil, o
	s.reportEnd(protocol.EventSessionFailed, f)
	s.phase = phaseEnding
	s.climb()
}

// giveUp ends an agent that cannot be talked to; the runner hears no ready.
func (s *State) giveUp(why string) {
	s.failed = true
	s.note(why)
	s.phase = phaseEnding
	s.climb()
}

func (s *State) note(text string) {
	s.effects = append(s.effects, Effect{Kind: Note, Data: []byte(text)})
}

func (s *State) exitWait() time.Duration {
	if s.hurried {
		return min(hurriedWait, s.cfg.CloseWait)
	}
	return s.cfg.CloseWait
}

// climb takes the next step to end the agent: the end of its stdin, SIGTERM,
// SIGKILL. What the agent leaves behind is swept by the runner.
func (s *State) climb() {
	s.rung++
	switch s.rung {
	case 1:
		s.do(CloseStdin)
	case 2:
		s.ours = true
		s.do(Terminate)
	default:
		s.do(Kill)
		return
	}
	s.setTimer(TimerExit, s.exitWait())
}

// Exited is the agent's exit, after every line that it wrote. It is told once
// and is the last input.
func (s *State) Exited(e Exit) {
	if s.phase == phaseOver {
		return
	}
	s.gone = true
	clean := s.phase == phaseEnding
	switch {
	case !s.saidReady:
		if !clean {
			s.failed = true
			s.note(fmt.Sprintf("the agent ended with %s before it answered initialize", e))
		}
	case !clean:
		s.agentLost(e)
	}
	s.phase = phaseOver
	for t := range Timers {
		s.clearTimer(t)
	}
	s.effects = append(s.effects, Effect{Kind: Finish, Exit: s.exit(e)})
}

// agentLost reports an agent that ended by itself.
func (s *State) agentLost(e Exit) {
	how := fields.New().Text("code", "agent_exited").Text("message", "the agent ended with "+e.String()).Own("agentExit", e.json())
	if s.turn != nil {
		if s.turn.cancelled != cancelNone {
			s.finishCancelled(fields.New().Own("agentExit", e.json()), "")
		} else {
			s.failed = true
			s.finishTurn(protocol.EventTurnFailed, fields.New().Own("agentExit", e.json()).Text("code", "agent_exited"),
				outcome{failed: true, summary: fmt.Sprintf("The agent ended with %s in the middle of the turn.", e)})
		}
	}
	s.dropQueued(protocol.EventTurnFailed, "", "the agent ended")
	s.failed = s.failed || s.phase == phaseOpening
	s.endReplay()
	if s.phase == phaseClosing {
		s.reportEnd(protocol.EventSessionClosed, fields.New())
		return
	}
	s.reportEnd(protocol.EventSessionFailed, how)
}

// exit is how the adapter ends: as the agent did, unless a signal of ours
// ended it. A turn that failed, or work that could not be done, is never a
// success, though the agent's process was one.
func (s *State) exit(e Exit) Exit {
	if s.ours {
		e = Exit{}
	}
	if e == (Exit{}) && (s.failed || s.last.failed) {
		e.Status = 1
	}
	return e
}

// String is "status 3" or "signal 9".
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("signal %d", e.Signal)
	}
	return fmt.Sprintf("status %d", e.Status)
}

func (e Exit) json() []byte {
	if e.Signal != 0 {
		return fields.New().Number("signal", int64(e.Signal)).Object()
	}
	return fields.New().Number("exitCode", int64(e.Status)).Object()
}

// OutputEnded is an agent that closed its stdout and stays: nothing can be
// heard from it any more, so it is ended.
func (s *State) OutputEnded() {
	if s.phase >= phaseEnding {
		return
	}
	const why = "the agent closed its stdout and went on"
	if !s.saidReady {
		s.giveUp(why)
		return
	}
	s.failed = true
	if s.turn != nil {
		s.wantEnd = false // the session fails with the turn
		s.finishTurn(protocol.EventTurnFailed, fields.New().Text("code", "agent_closed_stdout"),
			outcome{failed: true, summary: "The agent closed its output in the middle of the turn."})
	}
	s.dropQueued(protocol.EventTurnFailed, "", why)
	s.endReplay()
	s.reportEnd(protocol.EventSessionFailed, fields.New().Text("code", "agent_closed_stdout").Text("message", why))
	s.phase = phaseEnding
	s.climb()
}
