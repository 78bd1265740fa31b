package conform

import (
	"errors"
	"fmt"
	"strings"

	"prp/cmd/internal/fakemodel"
	"prp/protocol"
)

// testCase is one row of the table.
type testCase struct {
	name string
	// needsModel is a case that a marker to the fake model scripts.
	needsModel bool
	// answer is the decision about every permission; none where it is empty.
	answer string
	// flags are further flags of the adapter.
	flags []string
	play  func(*bench) error
}

const (
	allow = "allow"
	deny  = "deny"
)

// Short names of what the cases expect.
const (
	completed   = protocol.EventTurnCompleted
	interrupted = protocol.EventTurnInterrupted
	failed      = protocol.EventTurnFailed
	turn1       = "turn_1"
	turn2       = "turn_2"
)

// cases is the one table for all agents.
var cases = []testCase{
	{name: "text turn", answer: allow, play: textTurn},
	{name: "permission allowed", answer: allow, play: permissionAllowed},
	{name: "permission denied", answer: deny, play: permissionDenied},
	{name: "two turns", answer: allow, play: twoTurns},
	{name: "cancel in mid-answer", answer: allow, play: cancelAnswer},
	{name: "cancel in mid-tool", needsModel: true, answer: allow, play: cancelTool},
	{name: "cancel while a permission waits", play: cancelPermission},
	{name: "a turn after a cancelled one", answer: allow, play: turnAfterCancel},
	{name: "run.cancel", answer: allow, play: runCancel},
	{name: "agent killed", answer: allow, play: agentKilled},
	{name: "stdin closed", answer: allow, play: stdinClosed},
	{name: "session restored after a kill", answer: allow, play: restored},
	{name: "model error once", needsModel: true, answer: allow, play: errorOnce},
	{name: "model error always", needsModel: true, answer: allow, flags: []string{"--turn-timeout-ms", "20000"}, play: errorAlways},
	{name: "silent model", needsModel: true, answer: allow, flags: []string{"--turn-idle-ms", "4000"}, play: silentModel},
	{name: "answer of 2 MB", needsModel: true, answer: allow, play: longAnswer},
	{name: "awkward Unicode", needsModel: true, answer: allow, play: unicodeAnswer},
	{name: "background processes", needsModel: true, answer: allow, play: background},
}

func succeeds(b *bench, d protocol.Disposition) error {
	return b.finish(protocol.RunSucceeded, protocol.ReasonSuccess, d)
}

func textTurn(b *bench) error {
	err := b.begin()
	if err == nil {
		_, err = b.ends(turn1, "hi [[text]]", completed)
	}
	if err == nil && b.cfg.Agent.UsesModel() && !strings.Contains(b.said(), fakemodel.Hello) {
		err = fmt.Errorf("the answer is %.200q", b.said())
	}
	if err != nil {
		return err
	}
	return succeeds(b, protocol.DispositionDone)
}

func permissionAllowed(b *bench) error {
	err := b.begin()
	if err == nil {
		_, err = b.ends(turn1, "go [[tool:echo made > made.txt]]", completed)
	}
	if err == nil && b.count(protocol.EventRequestResolved) == 0 {
		err = errors.New("no permission was asked for")
	}
	if err == nil && b.cfg.Agent.UsesModel() {
		err = b.exists("made.txt")
	}
	if err != nil {
		return err
	}
	return succeeds(b, protocol.DispositionDone)
}

// permissionDenied: the tool does not run. Some agents go on and tell so, some
// end the whole turn as cancelled, which is work that is not done.
func permissionDenied(b *bench) error {
	if err := b.begin(); err != nil {
		return err
	}
	end, err := b.ends(turn1, "go [[tool:echo made > made.txt]]", completed, interrupted)
	if err == nil && b.count(protocol.EventRequestResolved) == 0 {
		err = errors.New("no permission was asked for")
	}
	if err == nil {
		err = b.absent("made.txt")
	}
	if err != nil {
		return err
	}
	b.detail = "the turn went on"
	if end == interrupted {
		b.detail = "the agent ended the turn"
		return succeeds(b, protocol.DispositionYielded)
	}
	return succeeds(b, protocol.DispositionDone)
}

func twoTurns(b *bench) error {
	err := b.begin()
	if err == nil {
		_, err = b.ends(turn1, "hi [[text]]", completed)
	}
	if err == nil {
		_, err = b.ends(turn2, "again [[text]]", completed)
	}
	if err != nil {
		return err
	}
	return succeeds(b, protocol.DispositionDone)
}

// told checks that the terminal fits the end of the turn, whichever it was.
func told(b *bench, end protocol.EventType) error {
	b.detail = "the turn ended with " + string(end)
	if end == failed {
		return b.finish(protocol.RunFailed, protocol.ReasonProcessFailed, protocol.DispositionYielded)
	}
	if err := b.client.CloseSession(b.ctx); err != nil {
		return err
	}
	if err := b.awaitType(protocol.EventRunTerminal); err != nil {
		return err
	}
	t, err := b.readTerminal()
	if err == nil && t.RunTerminalState != protocol.RunSucceeded {
		err = fmt.Errorf("the turn ended with %s and the run with %s", end, t.RunTerminalState)
	}
	return err
}

func errorOnce(b *bench) error {
	if err := b.begin(); err != nil {
		return err
	}
	end, err := b.ends(turn1, "go [[error:500:1]]", completed, failed)
	if err != nil {
		return err
	}
	return told(b, end)
}

func errorAlways(b *bench) error {
	if err := b.begin(); err != nil {
		return err
	}
	end, err := b.ends(turn1, "go [[error:500]]", completed, failed)
	if err != nil {
		return err
	}
	return told(b, end)
}

// silentModel: the adapter's own timer ends a turn in which nothing comes.
func silentModel(b *bench) error {
	if err := b.begin(); err != nil {
		return err
	}
	end, err := b.ends(turn1, "go [[hang]]", failed)
	if err != nil {
		return err
	}
	return told(b, end)
}

func longAnswer(b *bench) error {
	const size = 2_000_000
	err := b.begin()
	if err == nil {
		_, err = b.ends(turn1, fmt.Sprintf("go [[one:%d]]", size), completed)
	}
	if err == nil && !strings.Contains(b.said(), fakemodel.Filler(size)) {
		err = fmt.Errorf("the answer of %d bytes is not among the %d that arrived", size, len(b.said()))
	}
	if err != nil {
		return err
	}
	return succeeds(b, protocol.DispositionDone)
}

// unicodeAnswer: control characters an agent may drop, the others not.
func unicodeAnswer(b *bench) error {
	err := b.begin()
	if err == nil {
		_, err = b.ends(turn1, "go [[utf8]]", completed)
	}
	for _, part := range []string{"\u2603", "\U0001F600", "\u2028", "\u201cq\u201d", `\ "x"`, "</script>"} {
		if err == nil && !strings.Contains(b.said(), part) {
			err = fmt.Errorf("%q is not in the answer %q", part, b.said())
		}
	}
	if err != nil {
		return err
	}
	return succeeds(b, protocol.DispositionDone)
}

// background: what a tool leaves running is gone with the run.
func background(b *bench) error {
	err := b.begin()
	if err == nil {
		_, err = b.ends(turn1, "go [[tool:(setsid sleep 300 </dev/null >/dev/null 2>&1 &) ; (nohup sleep 300 </dev/null >/dev/null 2>&1 &) ; echo x > left]]", completed)
	}
	if err == nil {
		err = b.exists("left")
	}
	if err != nil {
		return err
	}
	return succeeds(b, protocol.DispositionDone)
}
