package lifecycle

import (
	"fmt"
	"time"

	"prp/protocol"
)

// rejection is why a command is not taken; the zero value is none.
type rejection struct {
	code   protocol.Code
	detail string
}

func reject(code protocol.Code, format string, args ...any) rejection {
	return rejection{code, fmt.Sprintf(format, args...)}
}

// rule is what the runner knows of a command type.
type rule struct {
	// waits: the command needs the harness and waits while it is prepared.
	waits bool
	// check says whether the command is allowed now.
	check func(s *State, c *protocol.Command) rejection
	// apply makes the effects of an accepted command; nil where check has
	// started something whose end decides (run.prepare).
	apply func(s *State, c *protocol.Command)
}

// ruleFor is the table of spec section 2. It is a function since the rules and
// what calls them refer to each other.
func ruleFor(t protocol.CommandType) (rule, bool) {
	switch t {
	case protocol.RunPrepare:
		return rule{check: checkPrepare}, true
	case protocol.SessionOpen:
		return rule{waits: true, check: checkOpen, apply: applyOpen}, true
	case protocol.TurnStart:
		return rule{waits: true, check: checkTurnStart, apply: applyTurnStart}, true
	case protocol.TurnSteer:
		return rule{waits: true, check: checkSteer, apply: (*State).send}, true
	case protocol.TurnInterrupt, protocol.TurnStop:
		return rule{waits: true, check: checkInterrupt, apply: applyInterrupt}, true
	case protocol.RequestResolve:
		return rule{waits: true, check: checkResolve, apply: applyResolve}, true
	case protocol.SessionClose:
		return rule{waits: true, check: checkClose, apply: applyClose}, true
	case protocol.RunCancel:
		return rule{check: accept, apply: applyCancel}, true
	case protocol.RunnerDrain:
		return rule{check: accept, apply: applyDrain}, true
	case protocol.RunnerShutdown:
		return rule{check: accept, apply: applyShutdown}, true
	}
	return rule{}, false
}

// commandInvalid answers a line that failed check 1. It consumes nothing.
func (s *State) commandInvalid(f *protocol.CommandFault) {
	if !f.Answerable {
		s.diagnose(protocol.LevelError, f.Code, f.Detail)
		return
	}
	s.receipt(f.CommandID, f.ControllerSeq, protocol.ReceiptRejected, f.Code, f.Detail)
}

// commandReceived makes checks 2 and 3 at once; what comes after them waits
// while the harness is being prepared.
func (s *State) commandReceived(c *protocol.Command) {
	entry, seen := s.ledger.Lookup(c.CommandID, c.Digest)
	switch seen {
	case protocol.LookupOther:
		s.receipt(c.CommandID, c.ControllerSeq, protocol.ReceiptRejected, protocol.CodeCommandIDReused,
			fmt.Sprintf("command id %q was used before with other content", c.CommandID))
		return
	case protocol.LookupSame:
		s.repeated(c, entry)
		return
	}
	if next := s.ledger.Next(); c.ControllerSeq != next {
		s.receipt(c.CommandID, c.ControllerSeq, protocol.ReceiptRejected, protocol.CodeSequenceGap,
			fmt.Sprintf("expected controllerSeq %d, got %d", next, c.ControllerSeq))
		return
	}
	s.ledger.Consume(c.CommandID, c.ControllerSeq, c.Digest)
	r, _ := ruleFor(c.Type)
	if s.phase == phasePreparing && !s.over() && r.waits {
		s.wait(c)
		return
	}
	s.decide(c)
}

// repeated answers a command that came before: with the receipt it got, or
// after its original is decided.
func (s *State) repeated(c *protocol.Command, e protocol.Entry) {
	switch {
	case e.Undecided && s.phase == phasePreparing && !s.over() && len(s.waiting) < maxQueuedCommands:
		s.waiting = append(s.waiting, waiter{command: c, repeat: true})
	case e.Undecided:
		s.receipt(c.CommandID, c.ControllerSeq, protocol.ReceiptRejected, protocol.CodeHarnessBackpressure,
			"the command before it with this id is not decided yet")
	case e.Accepted:
		s.receipt(c.CommandID, c.ControllerSeq, protocol.ReceiptDuplicate, "", "the command was accepted before; nothing was repeated")
	default:
		s.receipt(c.CommandID, c.ControllerSeq, protocol.ReceiptRejected, e.Code, e.Detail)
	}
}

// wait keeps a command until the harness is ready.
func (s *State) wait(c *protocol.Command) {
	size := commandSize(c)
	if len(s.waiting) >= maxQueuedCommands || tooMuch(s.waitSize, size) {
		s.conclude(c, reject(protocol.CodeHarnessBackpressure,
			"%d commands wait for the harness to be ready; wait for the receipt of run.prepare", len(s.waiting)))
		return
	}
	s.waitSize += size
	s.waiting = append(s.waiting, waiter{command: c})
}

// releaseWaiting decides the commands that waited, in order, and then the end
// of stdin that came after them.
func (s *State) releaseWaiting() {
	waiting := s.waiting
	s.waiting, s.waitSize = nil, 0
	for _, w := range waiting {
		if !w.repeat {
			s.decide(w.command)
			continue
		}
		s.commandReceived(w.command)
	}
	if s.eof {
		s.endOfCommands()
	}
}

// decide makes check 4 and carries an accepted command out. The events come
// before the receipt.
func (s *State) decide(c *protocol.Command) {
	r, known := ruleFor(c.Type)
	if no := s.admit(c, known); no.code != "" {
		s.conclude(c, no)
		return
	}
	if no := r.check(s, c); no.code != "" {
		s.conclude(c, no)
		return
	}
	if r.apply == nil {
		return
	}
	r.apply(s, c)
	s.conclude(c, rejection{})
	s.afterAccept(c)
}

// admit makes the checks of step 4 that are the same for every type.
func (s *State) admit(c *protocol.Command, known bool) rejection {
	switch {
	case s.over():
		return reject(protocol.CodeRunEnding, "the run is ending")
	case c.DeadlineAt != nil && s.at.After(*c.DeadlineAt):
		return reject(protocol.CodeDeadlinePassed, "deadlineAt %s passed %s ago",
			c.DeadlineAt.UTC().Format(time.RFC3339Nano), s.at.Sub(*c.DeadlineAt).Round(time.Millisecond))
	}
	if no := s.checkPrecondition(c.Precondition); no.code != "" {
		return no
	}
	if !known {
		return reject(protocol.CodeUnsupportedType, "command type %q is not known", string(c.Type))
	}
	return rejection{}
}

// conclude records what became of a command and writes its receipt.
func (s *State) conclude(c *protocol.Command, no rejection) {
	s.ledger.Decide(c.CommandID, no.code == "", no.code, no.detail)
	if no.code == "" {
		s.receipt(c.CommandID, c.ControllerSeq, protocol.ReceiptAccepted, "", "")
		return
	}
	s.receipt(c.CommandID, c.ControllerSeq, protocol.ReceiptRejected, no.code, no.detail)
}

func (s *State) receipt(id string, seq int64, status protocol.ReceiptStatus, code protocol.Code, detail string) {
	s.fx = append(s.fx, Effect{Kind: Answer, Receipt: &protocol.Receipt{
		CommandID: id, ControllerSeq: seq, Status: status, Detail: detail, Code: code,
	}})
}

// checkPrecondition reports the first member that does not hold.
func (s *State) checkPrecondition(p *protocol.Precondition) rejection {
	if p == nil {
		return rejection{}
	}
	if no := oneOf("runnerState", p.RunnerState, s.runnerState()); no.code != "" {
		return no
	}
	if no := oneOf("runState", p.RunState, s.runState()); no.code != "" {
		return no
	}
	if no := oneOf("sessionState", p.SessionState, s.session); no.code != "" {
		return no
	}
	if p.ActiveTurnID != nil && *p.ActiveTurnID != s.turn {
		return reject(protocol.CodePreconditionFailed, "activeTurnId: expected %s, is %s",
			orNull(*p.ActiveTurnID), orNull(s.turn))
	}
	return rejection{}
}

func orNull(id string) string {
	if id == "" {
		return "null"
	}
	return fmt.Sprintf("%q", id)
}

// oneOf checks one list of a precondition; an absent list (nil) holds.
func oneOf[T ~string](name string, want []T, is T) rejection {
	if want == nil {
		return rejection{}
	}
	for _, w := range want {
		if w == is {
			return rejection{}
		}
	}
	return reject(protocol.CodePreconditionFailed, "%s: expected one of %q, is %q", name, want, string(is))
}

// commandSize is what a command counts while it waits for the harness.
func commandSize(c *protocol.Command) int { return len(c.Payload) + commandOverhead }

// tooMuch says whether a command is too large to wait behind others; alone it
// may be as large as a line may be, or it could never be sent.
func tooMuch(waits, size int) bool { return waits > 0 && waits+size > maxQueuedBytes }

// sendable says whether a command can be queued for the harness now.
func (s *State) sendable(c *protocol.Command) rejection {
	switch {
	case s.inputClosed:
		return reject(protocol.CodeHarnessInputClosed, "the harness's stdin is closed")
	case s.queued >= maxQueuedCommands || tooMuch(s.queuedSize, commandSize(c)):
		return reject(protocol.CodeHarnessBackpressure,
			"%d commands (%d bytes) wait for the harness to read its stdin", s.queued, s.queuedSize)
	}
	return rejection{}
}

// send queues an accepted command for the harness.
func (s *State) send(c *protocol.Command) {
	size := commandSize(c)
	s.queued++
	s.queuedSize += size
	s.fx = append(s.fx, Effect{Kind: SendHarness, Command: c, Family: s.family, Size: size})
}

// inputBroken tells which accepted commands never reached the harness.
func (s *State) inputBroken(undelivered []string) {
	s.inputClosed = true
	for _, id := range undelivered {
		s.requests.undelivered(id)
		s.diagnose(protocol.LevelWarning, protocol.CodeHarnessInputClosed,
			fmt.Sprintf("command %q was accepted but not delivered: the harness's stdin is closed", id))
	}
	s.queued, s.queuedSize = 0, 0
}
