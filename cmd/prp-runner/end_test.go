//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"prp/protocol"
)

// ending is what a run said, after it has ended.
type ending struct {
	r        *run
	events   []*protocol.Event
	terminal protocol.Terminal
	exited   *protocol.HarnessExited // nil where there was no process
}

// end waits for the exit with status 0 and checks what holds of every run.
func (r *run) end() ending {
	r.t.Helper()
	r.until("the end of stdout", func() bool { return r.ended })
	if status := r.waitExit(); status != 0 {
		r.t.Errorf("exit status %d, want 0\n%s", status, r.tail())
	}
	return r.check()
}

// check looks at everything that was read until the end of stdout.
func (r *run) check() ending {
	r.t.Helper()
	r.nothingLeft()
	if text := r.complaints(); text != "" {
		r.t.Errorf("the runner wrote to stderr: %.2000s", text)
	}
	for _, bad := range r.bad {
		r.t.Error(bad)
	}
	e := ending{r: r}
	for _, m := range r.msgs {
		if m.Event != nil {
			e.events = append(e.events, m.Event)
		}
	}
	e.checkEvents()
	last := r.msgs[len(r.msgs)-1]
	if last.Event == nil || last.Event.EventType != protocol.EventRunTerminal {
		r.t.Fatalf("%v at the end\n%s", errNoTerminal, r.tail())
	}
	if err := json.Unmarshal(last.Event.Payload, &e.terminal); err != nil {
		r.t.Fatal(err)
	}
	if exits := e.of(protocol.EventHarnessExited); len(exits) > 0 {
		if err := json.Unmarshal(exits[0].Payload, &e.exited); err != nil {
			r.t.Fatal(err)
		}
		if n := len(e.exited.Containment.Survivors); n > 0 {
			r.t.Errorf("%d survivors: %+v", n, e.exited.Containment.Survivors)
		}
	}
	return e
}

// checkEvents checks numbers, bindings, times and the one terminal.
func (e ending) checkEvents() {
	t := e.r.t
	t.Helper()
	lastTime := ""
	for i, ev := range e.events {
		if want := int64(i + 1); ev.SourceSeq != want || ev.SourceEventID != fmt.Sprintf("event_%s_%03d", testRun, want) {
			t.Fatalf("event %d has number %d and id %q", want, ev.SourceSeq, ev.SourceEventID)
		}
		if ev.RunID != testRun || ev.NormalizedSessionID != testSession || ev.SourceInstanceID != testRunner {
			t.Errorf("event %d belongs to %q, %q, %q", i+1, ev.RunID, ev.NormalizedSessionID, ev.SourceInstanceID)
		}
		if _, err := time.Parse(protocol.TimeLayout, ev.EmittedAt); err != nil || ev.EmittedAt < lastTime {
			t.Errorf("event %d: emittedAt %q after %q: %v", i+1, ev.EmittedAt, lastTime, err)
		}
		lastTime = ev.EmittedAt
	}
	if n := len(e.of(protocol.EventRunTerminal)); n != 1 {
		t.Errorf("%d events run.terminal, want 1\n%s", n, e.r.tail())
	}
	if n := len(e.of(protocol.EventHarnessExited)); n > 1 {
		t.Errorf("%d events harness.exited", n)
	}
}

// nothingLeft waits until nothing of the run lives: the guardian may take a
// moment longer than the runner.
func (r *run) nothingLeft() {
	r.t.Helper()
	var left []proc
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		left = left[:0]
		for _, p := range alive() {
			if p.pid != r.cmd.Process.Pid && (isGuardian(p, r.cmd.Process.Pid) || marked(p.pid, r.mark)) {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	r.t.Errorf("alive after the runner's exit: %v", left)
}

// of lists the events of a type.
func (e ending) of(t protocol.EventType) []*protocol.Event {
	var list []*protocol.Event
	for _, ev := range e.events {
		if ev.EventType == t {
			list = append(list, ev)
		}
	}
	return list
}

// types lists the types of all events.
func (e ending) types() []protocol.EventType {
	var list []protocol.EventType
	for _, ev := range e.events {
		list = append(list, ev.EventType)
	}
	return list
}

// reason checks how the run ended.
func (e ending) reason(want protocol.Reason) ending {
	e.r.t.Helper()
	states := map[protocol.Reason][2]string{
		protocol.ReasonTurnInterrupted:   {"interrupted", "cancelled"},
		protocol.ReasonRunCancelled:      {"cancelled", "cancelled"},
		protocol.ReasonRunnerShutdown:    {"cancelled", "cancelled"},
		protocol.ReasonControllerClosed:  {"cancelled", "cancelled"},
		protocol.ReasonRunnerTerminated:  {"cancelled", "cancelled"},
		protocol.ReasonStartFailed:       {"failed", "failed"},
		protocol.ReasonNotReady:          {"failed", "failed"},
		protocol.ReasonProtocolViolation: {"failed", "failed"},
		protocol.ReasonRunTimedOut:       {"failed", "failed"},
		protocol.ReasonBudgetExceeded:    {"failed", "failed"},
		protocol.ReasonSuccess:           {"completed", "succeeded"},
		protocol.ReasonProcessFailed:     {"failed", "failed"},
		protocol.ReasonResultMissing:     {"failed", "failed"},
	}
	got := e.terminal
	if got.Reconciliation.Reason != want || string(got.TurnTerminalState) != states[want][0] || string(got.RunTerminalState) != states[want][1] {
		e.r.t.Errorf("got %s, %s, %s; want %s, %v\n%s", got.TurnTerminalState, got.RunTerminalState, got.Reconciliation.Reason,
			want, states[want], e.r.tail())
	}
	if got.Reconciliation.Authority != protocol.AuthorityRunner {
		e.r.t.Errorf("authority %q, want the runner", got.Reconciliation.Authority)
	}
	return e
}

// code checks the exit code of the harness.
func (e ending) code(want int) ending {
	e.r.t.Helper()
	if e.exited == nil || e.exited.ProcessExit.ExitCode == nil || *e.exited.ProcessExit.ExitCode != want || e.exited.ProcessExit.Signal != nil {
		e.r.t.Errorf("harness.exited %s, want exit code %d", show(e.exited), want)
	}
	return e
}

// killed checks the signal that ended the harness.
func (e ending) killed(want int) ending {
	e.r.t.Helper()
	if e.exited == nil || e.exited.ProcessExit.Signal == nil || *e.exited.ProcessExit.Signal != want || e.exited.ProcessExit.ExitCode != nil {
		e.r.t.Errorf("harness.exited %s, want signal %d", show(e.exited), want)
	}
	return e
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// diagnosed reports whether the stream has a diagnostic or a harness.diagnostic
// event with a code, and its message.
func (e ending) diagnosed(code protocol.Code) (string, bool) {
	for _, m := range e.r.msgs {
		if m.Diagnostic != nil && m.Diagnostic.Code == code {
			return m.Diagnostic.Message, true
		}
	}
	for _, ev := range e.of(protocol.EventHarnessDiag) {
		var p struct {
			Code    protocol.Code `json:"code"`
			Message string        `json:"message"`
		}
		if json.Unmarshal(ev.Payload, &p) == nil && p.Code == code {
			return p.Message, true
		}
	}
	return "", false
}

// violated checks for a protocol violation with a code and returns its message.
func (e ending) violated(code protocol.Code) string {
	e.r.t.Helper()
	e.reason(protocol.ReasonProtocolViolation)
	message, ok := e.diagnosed(code)
	if !ok {
		e.r.t.Errorf("no harness.diagnostic %s\n%s", code, e.r.tail())
	}
	return message
}

// receipts maps each command id to its receipts.
func (e ending) receipts() map[string][]protocol.Receipt {
	all := map[string][]protocol.Receipt{}
	for _, m := range e.r.msgs {
		if m.Receipt != nil {
			all[m.Receipt.CommandID] = append(all[m.Receipt.CommandID], *m.Receipt)
		}
	}
	return all
}

// logged reports whether the log tail has a line.
func (e ending) logged(line string) bool {
	return e.exited != nil && slices.Contains(e.exited.Logs.Lines, line)
}

// raw is the line of the nth event as it was read.
func (e ending) raw(ev *protocol.Event) string {
	n := 0
	for i, m := range e.r.msgs {
		if m.Event != nil {
			if n++; int64(n) == ev.SourceSeq {
				return string(e.r.lines[i])
			}
		}
	}
	return ""
}

// each runs a case as a parallel subtest.
func each(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		f(t)
	})
}
