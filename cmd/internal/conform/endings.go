package conform

import (
	"errors"
	"fmt"
	"os"

	"prp/protocol"
)

// midAnswer brings a turn to the middle of its answer.
func midAnswer(b *bench) error {
	err := b.begin()
	if err == nil {
		err = b.turn(turn1, "go [[slow:400]]")
	}
	if err == nil {
		err = b.awaitType(protocol.EventItemDelta)
	}
	return err
}

// interruptNow interrupts the turn and waits for its end.
func interruptNow(b *bench) error {
	if err := b.client.Interrupt(b.ctx, "enough"); err != nil {
		return err
	}
	end, err := b.turnEnd(turn1)
	if err == nil && end != interrupted {
		err = fmt.Errorf("the turn ended with %s", end)
	}
	return err
}

func interruptedRun(b *bench) error {
	return b.finish(protocol.RunCancelled, protocol.ReasonTurnInterrupted, protocol.DispositionYielded)
}

func cancelAnswer(b *bench) error {
	err := midAnswer(b)
	if err == nil {
		err = interruptNow(b)
	}
	if err != nil {
		return err
	}
	return interruptedRun(b)
}

func cancelTool(b *bench) error {
	err := b.begin()
	if err == nil {
		err = b.turn(turn1, "go [[tool:echo x > running; sleep 300]]")
	}
	if err == nil {
		err = b.exists("running")
	}
	if err == nil {
		err = interruptNow(b)
	}
	if err != nil {
		return err
	}
	return interruptedRun(b)
}

func cancelPermission(b *bench) error {
	err := b.begin()
	if err == nil {
		err = b.turn(turn1, "go [[tool:echo made > made.txt]]")
	}
	if err == nil {
		err = b.awaitType(protocol.EventRequestCreated)
	}
	if err == nil {
		err = interruptNow(b)
	}
	if err == nil && b.count(protocol.EventRequestCancelled) == 0 {
		err = errors.New("the request was not closed")
	}
	if err == nil {
		err = b.absent("made.txt")
	}
	if err != nil {
		return err
	}
	return interruptedRun(b)
}

func turnAfterCancel(b *bench) error {
	err := midAnswer(b)
	if err == nil {
		err = interruptNow(b)
	}
	if err == nil {
		_, err = b.ends(turn2, "again [[text]]", completed)
	}
	if err != nil {
		return err
	}
	return succeeds(b, protocol.DispositionDone)
}

func runCancel(b *bench) error {
	err := midAnswer(b)
	if err == nil {
		err = b.client.Cancel(b.ctx)
	}
	if err != nil {
		return err
	}
	return b.terminal(protocol.RunCancelled, protocol.ReasonRunCancelled, protocol.DispositionYielded)
}

// agentKilled kills the agent itself; the adapter dies by the same signal.
func agentKilled(b *bench) error {
	if err := midAnswer(b); err != nil {
		return err
	}
	if err := killAgent(b); err != nil {
		return err
	}
	end, err := b.turnEnd(turn1)
	if err == nil && end != failed {
		err = fmt.Errorf("the turn ended with %s", end)
	}
	if err != nil {
		return err
	}
	return b.terminal(protocol.RunFailed, protocol.ReasonProcessFailed, protocol.DispositionYielded)
}

// sessionStarted is what the adapter tells about a session.
type sessionStarted struct {
	AgentPID       int
	AgentSessionID string
}

func killAgent(b *bench) error {
	var started sessionStarted
	if err := b.payload(protocol.EventSessionStarted, &started); err != nil {
		return err
	}
	if started.AgentPID < 2 {
		return errors.New("session.started tells no agentPid")
	}
	agent, err := os.FindProcess(started.AgentPID)
	if err != nil {
		return err
	}
	return agent.Kill()
}

// restored: a session goes on in another run though its agent was killed, where
// the agent says that it can.
func restored(b *bench) error {
	err := b.begin()
	if err == nil {
		_, err = b.ends(turn1, "hi [[text]]", completed)
	}
	var ready struct{ Capabilities struct{ Load, Resume bool } }
	var started sessionStarted
	if err == nil {
		err = errors.Join(b.payload(protocol.EventHarnessReady, &ready), b.payload(protocol.EventSessionStarted, &started))
	}
	switch {
	case err != nil:
		return err
	case !ready.Capabilities.Load && !ready.Capabilities.Resume:
		return errSkip{"the agent can neither load nor resume a session"}
	}
	if err := killAgent(b); err != nil {
		return err
	}
	if err := b.awaitType(protocol.EventRunTerminal); err != nil {
		return err
	}
	next, err := b.again()
	if err != nil {
		return err
	}
	err = next.open(map[string]any{"agentSessionId": started.AgentSessionID}, protocol.EventSessionResumed)
	if err != nil && next.count(protocol.EventSessionFailed) > 0 {
		// Not every agent writes a session down at once. The run has to say so.
		b.detail = "the killed agent had not kept the session"
		err = next.terminal(protocol.RunFailed, protocol.ReasonProcessFailed, protocol.DispositionYielded)
		return errors.Join(err, next.close())
	}
	if err == nil {
		_, err = next.ends(turn2, "again [[text]]", completed)
	}
	if err == nil {
		err = succeeds(next, protocol.DispositionDone)
	}
	var resumed struct{ RestoredBy string }
	if err == nil {
		err = next.payload(protocol.EventSessionResumed, &resumed)
		b.detail = "restored by " + resumed.RestoredBy
	}
	return errors.Join(err, next.close())
}

func stdinClosed(b *bench) error {
	if err := midAnswer(b); err != nil {
		return err
	}
	if err := b.client.Close(); err != nil {
		return err
	}
	return b.terminal(protocol.RunCancelled, protocol.ReasonControllerClosed, protocol.DispositionYielded)
}
