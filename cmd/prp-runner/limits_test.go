//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"prp/protocol"
)

// What bounds a run: the end of stdin, graces, timeouts and budgets.

// firstCommands are the commands of a run up to its turn; last ends them.
func firstCommands(last string) string {
	return commandLine("c1", 1, protocol.RunPrepare, "", "") + "\n" +
		commandLine("c2", 2, protocol.SessionOpen, "", "") + "\n" +
		commandLine("c3", 3, protocol.TurnStart, turn, "") + last
}

func TestEndOfStdin(t *testing.T) {
	t.Parallel()
	each(t, "finish", func(t *testing.T) {
		for _, last := range []string{"\n", ""} {
			r := start(t, setup{harness: script(t, `{"kind":"delay","milliseconds":300}`, turnDone, result, exit(0)), flags: []string{"--on-eof", "finish"}})
			r.write(firstCommands(last))
			r.hangUp()
			e := r.end().reason(protocol.ReasonSuccess)
			for _, id := range []string{"c1", "c2", "c3"} {
				if got := e.receipts()[id]; len(got) != 1 || got[0].Status != protocol.ReceiptAccepted {
					t.Errorf("%s: %+v", id, got)
				}
			}
		}
	})
	each(t, "finish, a request nobody can answer", func(t *testing.T) {
		r := start(t, setup{harness: script(t, request("q"), `{"kind":"await_resolution","request_id":"q"}`, result), flags: []string{"--on-eof", "finish"}})
		r.write(firstCommands("\n"))
		r.hangUp()
		r.end().reason(protocol.ReasonProcessFailed)
	})
	each(t, "cancel", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang)})
		r.write(firstCommands("\n"))
		r.hangUp()
		e := r.end().reason(protocol.ReasonControllerClosed)
		for _, id := range []string{"c1", "c2", "c3"} {
			if got := e.receipts()[id]; len(got) != 1 || got[0].Status != protocol.ReceiptAccepted {
				t.Errorf("%s: %+v", id, got)
			}
		}
	})
	each(t, "cancel before the end", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang), flags: []string{"--cancel-grace-ms", "100"}})
		r.write(firstCommands("\n") + commandLine("c4", 4, protocol.RunCancel, "", "") + "\n")
		r.hangUp()
		r.end().reason(protocol.ReasonRunCancelled)
	})
}

// Stdin and stdout may be any kind of file.
func TestStdinFiles(t *testing.T) {
	t.Parallel()
	each(t, "nothing at all", func(t *testing.T) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		e := start(t, setup{harness: "true", stdin: null}).end().reason(protocol.ReasonControllerClosed)
		if len(e.events) != 1 {
			t.Errorf("events %v", e.types())
		}
	})
	each(t, "a file, into a file", func(t *testing.T) {
		in, err := os.Open(file(t, "commands", firstCommands("\n")))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "out")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, setup{harness: script(t, turnDone, result, exit(0)), stdin: in, stdout: out, flags: []string{"--on-eof", "finish"}})
		r.waitExit()
		got, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		r.readFrom(got)
		r.end().reason(protocol.ReasonSuccess)
	})
	each(t, "closed descriptor", func(t *testing.T) {
		r := start(t, setup{words: []string{"sh", "-c", `exec "$@" <&-`, "sh"}, harness: "true"})
		r.end().reason(protocol.ReasonControllerClosed)
	})
}

func TestGraces(t *testing.T) {
	t.Parallel()
	each(t, "interrupt", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang), flags: []string{"--interrupt-grace-ms", "200", "--shutdown-grace-ms", longGrace}})
		r.begin()
		r.rejected(protocol.TurnInterrupt, `{"turnId":"other"}`, protocol.CodeTurnMismatch)
		r.accepted(protocol.TurnInterrupt, `{"turnId":"turn_1"}`)
		r.end().reason(protocol.ReasonTurnInterrupted).killed(15)
	})
	each(t, "interrupt, the turn ends", func(t *testing.T) {
		r := start(t, setup{
			harness: script(t, `{"kind":"await_interrupt"}`, `{"kind":"delay","milliseconds":1500}`, delta, exit(0)),
			flags:   []string{"--interrupt-grace-ms", "1000"},
		})
		r.begin()
		r.accepted(protocol.TurnInterrupt, "")
		e := r.end().reason(protocol.ReasonTurnInterrupted).code(0)
		if len(e.of(protocol.EventItemDelta)) != 1 {
			t.Error("the harness was ended though its turn had ended")
		}
	})
	each(t, "interrupt, then another turn", func(t *testing.T) {
		r := start(t, setup{harness: script(t, `{"kind":"await_interrupt"}`, `{"kind":"await_command","command_type":"turn.start"}`, turnDone, result, exit(0))})
		r.begin()
		r.accepted(protocol.TurnStop, "")
		r.event(protocol.EventTurnInterrupted)
		r.accepted(protocol.TurnStart, `{"turnId":"turn_2","text":"again"}`)
		r.end().reason(protocol.ReasonSuccess)
	})
	each(t, "cancel", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang), flags: []string{"--cancel-grace-ms", "200", "--shutdown-grace-ms", longGrace}})
		r.begin()
		r.accepted(protocol.RunCancel, "")
		r.end().reason(protocol.ReasonRunCancelled).killed(15)
	})
	each(t, "cancel is obeyed", func(t *testing.T) {
		r := start(t, setup{harness: script(t, `{"kind":"await_command","command_type":"run.cancel"}`, turnOver, exit(5)), flags: []string{"--cancel-grace-ms", longGrace}})
		r.begin()
		r.accepted(protocol.RunCancel, "")
		r.end().reason(protocol.ReasonRunCancelled).code(5)
	})
	each(t, "run timeout", func(t *testing.T) {
		r := start(t, setup{harness: script(t, stubborn, hang), flags: []string{"--run-timeout-ms", "700", "--shutdown-grace-ms", "300"}})
		r.begin()
		r.end().reason(protocol.ReasonRunTimedOut)
	})
	each(t, "a slow interrupt and then a cancel", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang), flags: []string{"--cancel-grace-ms", "100"}})
		r.begin()
		r.accepted(protocol.TurnInterrupt, "")
		r.accepted(protocol.RunCancel, "")
		// The first cause that happened decides.
		r.end().reason(protocol.ReasonTurnInterrupted)
	})
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	each(t, "events", func(t *testing.T) {
		// The handshake has three events of its own.
		r := start(t, setup{harness: script(t, manyDeltas), flags: []string{"--max-events", "10"}})
		r.beginUnread()
		e := r.end().reason(protocol.ReasonBudgetExceeded)
		if n := len(e.of(protocol.EventItemDelta)); n != 7 {
			t.Errorf("%d events item.delta, want 7", n)
		}
	})
	each(t, "exactly", func(t *testing.T) {
		r := start(t, setup{harness: script(t, delta, result, exit(0)), flags: []string{"--max-events", "5"}})
		r.beginUnread()
		r.end().reason(protocol.ReasonSuccess)
	})
	each(t, "bytes", func(t *testing.T) {
		r := start(t, setup{harness: script(t, manyDeltas), flags: []string{"--max-event-bytes", "4000"}})
		r.beginUnread()
		e := r.end().reason(protocol.ReasonBudgetExceeded)
		if n := len(e.of(protocol.EventItemDelta)); n < 5 || n > 40 {
			t.Errorf("%d events item.delta within 4000 bytes", n)
		}
	})
}

// Forged and unknown events are not passed on.
func TestForgedEvents(t *testing.T) {
	t.Parallel()
	s := ready()
	for _, typ := range []string{"run.terminal", "harness.exited", "runner.ready", "turn.submitted"} {
		s.event(typ, proposal)
	}
	s.event("no.such.type", `{}`)
	r := start(t, setup{harness: s.result().cat(t)})
	r.send(protocol.RunPrepare, "")
	e := r.end().reason(protocol.ReasonSuccess)
	if n := len(e.of(protocol.EventHarnessDiag)); n != 5 {
		t.Errorf("%d events harness.diagnostic, want 5", n)
	}
	for _, code := range []protocol.Code{protocol.CodeReservedEventType, protocol.CodeUnknownEventType} {
		if _, ok := e.diagnosed(code); !ok {
			t.Errorf("no diagnostic %s", code)
		}
	}
}

// A harness that dies by a signal has no exit code.
func TestDeathBySignal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGTERM} {
		each(t, sig.String(), func(t *testing.T) {
			r := start(t, setup{harness: script(t, result, fmt.Sprintf(`{"kind":"crash","signal":%d}`, sig))})
			r.beginUnread()
			r.end().reason(protocol.ReasonProcessFailed).killed(int(sig))
		})
	}
}
