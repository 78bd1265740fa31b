//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"prp/protocol"
)

// Commands that are repeated, reused, malformed: F10, F11, F13, F36, and the
// requests of F26 and F31.

func TestF10Repeated(t *testing.T) {
	t.Parallel()
	const original = `{"schema":"paperclip.prp.command.v1","commandId":"a/b","controllerSeq":3,"type":"turn.start","issuedAt":"2026-01-01T00:00:00Z","payload":{"turnId":"t","text":"a/b","more":{"x":[1,{"k":"v","l":null}],"y":1e2}}}`
	repeats := []string{
		original,
		`{"payload":{"more":{"y":1e2,"x":[1,{"l":null,"k":"v"}]},"text":"a/b","turnId":"t"},"issuedAt":"2026-01-01T00:00:00Z","type":"turn.start","controllerSeq":3,"commandId":"a/b","schema":"paperclip.prp.command.v1"}`,
		" \t" + strings.ReplaceAll(strings.ReplaceAll(original, ":{", " : { "), ",", " ,\t") + " \r",
		strings.ReplaceAll(original, `"a/b"`, `"\u0061\/b"`),
		strings.ReplaceAll(original, `"turnId"`, `"turn\u0049d"`),
		strings.ReplaceAll(original, "1e2", "100"),
		strings.ReplaceAll(original, "1e2", "100.0"),
		strings.ReplaceAll(original, "1e2", "0.1e+3"),
		strings.ReplaceAll(original, `"controllerSeq":3`, `"controllerSeq":3.0`),
	}
	r := start(t, setup{harness: script(t, delta, hang)})
	r.accepted(protocol.RunPrepare, "")
	r.accepted(protocol.SessionOpen, "")
	r.write(original + "\n")
	r.event(protocol.EventItemDelta)
	for _, line := range repeats {
		r.write(line + "\n")
	}
	for i, got := range r.answers("a/b", 1+len(repeats)) {
		want := protocol.ReceiptDuplicate
		if i == 0 {
			want = protocol.ReceiptAccepted
		}
		if got.Status != want {
			t.Errorf("receipt %d is %+v, want %s", i, got, want)
		}
	}
	r.seq++
	r.accepted(protocol.RunCancel, "")
	e := r.end().reason(protocol.ReasonRunCancelled)
	if n := len(e.of(protocol.EventTurnSubmitted)); n != 1 {
		t.Errorf("%d events turn.submitted, want 1", n)
	}
}

func TestF11Reused(t *testing.T) {
	t.Parallel()
	original := commandLine("c1", 1, protocol.RunnerDrain, `{"a":{"b":[1,2]},"n":9007199254740993,"s":"x"}`, "")
	r := start(t, setup{harness: script(t, hang)})
	r.seq = 1
	r.write(original + "\n")
	changed := []string{
		strings.Replace(original, `[1,2]`, `[1,3]`, 1),
		strings.Replace(original, `[1,2]`, `[2,1]`, 1),
		strings.Replace(original, `"s":"x"`, `"s":"x","z":null`, 1),
		strings.Replace(original, `"s":"x"`, `"s":"X"`, 1),
		strings.Replace(original, `"s":"x"`, `"S":"x"`, 1),
		strings.Replace(original, `[1,2]`, `["1",2]`, 1),
		strings.Replace(original, `9007199254740993`, `9007199254740992`, 1),
		strings.Replace(original, `runner.drain`, `run.cancel`, 1),
		strings.Replace(original, `runner.drain`, `runner.shutdown`, 1),
		strings.Replace(original, `00:00:00Z`, `00:00:01Z`, 1),
		strings.Replace(original, `"controllerSeq":1`, `"controllerSeq":2`, 1),
		strings.Replace(original, `prp.command.v1`, `prp.command.v1","extra":"1`, 1),
	}
	for _, line := range changed {
		if line == original {
			t.Fatalf("nothing was changed in %s", line)
		}
		r.write(line + "\n")
	}
	for i, got := range r.answers("c1", 1+len(changed)) {
		if i == 0 && got.Status != protocol.ReceiptAccepted || i > 0 && (got.Status != protocol.ReceiptRejected || got.Code != protocol.CodeCommandIDReused) {
			t.Errorf("receipt %d is %+v", i, got)
		}
	}
	r.accepted(protocol.RunPrepare, "")
	r.rejected(protocol.TurnStart, turn, protocol.CodeSessionNotOpen)
	r.hangUp()
	r.end().reason(protocol.ReasonControllerClosed)
}

func TestF13CommandKeys(t *testing.T) {
	t.Parallel()
	r := start(t, setup{harness: script(t, hang)})
	next := func(more string) string { return commandLine("x", 1, protocol.RunnerDrain, "", more) }
	for _, line := range []string{
		next(`,"commandId":"x"`), next(`,"\u0063ommandId":"y"`), next(`,"type":"run.cancel"`), next(`,"e":{"a":1,"a":2}`),
	} {
		r.write(line + "\n")
	}
	for _, line := range []string{
		strings.Replace(next(""), "controllerSeq", "controllerſeq", 1),
		strings.Replace(next(""), "controllerSeq", "ControllerSeq", 1),
		strings.Replace(next(""), "commandId", "commandID", 1),
	} {
		r.write(line + "\n")
	}
	// Names that only look like those of the protocol are extra members.
	r.write(next(`,"CommandId":"z","controllerſeq":7,"TYPE":"run.cancel","Payload":1`) + "\n")
	if got := r.answer("x"); got.Status != protocol.ReceiptAccepted {
		t.Errorf("the command with extra members got %+v, want accepted", got)
	}
	r.hangUp()
	e := r.end().reason(protocol.ReasonControllerClosed)
	diagnostics := map[protocol.Code]int{}
	for _, m := range r.msgs {
		if m.Diagnostic != nil {
			diagnostics[m.Diagnostic.Code]++
		}
	}
	if diagnostics[protocol.CodeInvalidJSON] != 4 || diagnostics[protocol.CodeInvalidCommand] != 3 {
		t.Errorf("diagnostics %v, want 4 invalid_json and 3 invalid_command", diagnostics)
	}
	if all := e.receipts(); len(all) != 1 || len(all["x"]) != 1 {
		t.Errorf("receipts %+v, want one", all)
	}
}

func TestF36CommandAndMore(t *testing.T) {
	t.Parallel()
	good := commandLine("x", 1, protocol.RunPrepare, "", "")
	lines := []string{
		good + "garbage", good + " " + good, good + good, good + ",", "[" + good + "]", good[:len(good)-1],
		"// comment", "null", "1", `"x"`, good + "\x00", "\x00" + good, "\xff" + good, "\ufeff" + good,
	}
	r := start(t, setup{harness: script(t, hang)})
	r.write("\n \n\r\n") // skipped; the byte order mark above is not the first of all bytes
	for _, line := range lines {
		r.write(line + "\n")
	}
	r.write(commandLine("last", 1, protocol.RunnerDrain, "", "") + "\n")
	if got := r.answer("last"); got.Status != protocol.ReceiptAccepted {
		t.Errorf("got %+v: a rejected line has consumed the sequence number", got)
	}
	r.hangUp()
	e := r.end().reason(protocol.ReasonControllerClosed)
	if len(e.events) != 1 {
		t.Errorf("events %v: a rejected line had an effect", e.types())
	}
	n := 0
	for _, m := range r.msgs {
		if m.Diagnostic != nil && m.Diagnostic.Code == protocol.CodeInvalidJSON || m.Receipt != nil && m.Receipt.Code == protocol.CodeInvalidJSON {
			n++
		}
	}
	if n != len(lines) {
		t.Errorf("%d lines were rejected as invalid_json, want %d\n%s", n, len(lines), r.tail())
	}
}

func TestByteOrderMarkAtTheStart(t *testing.T) {
	t.Parallel()
	r := start(t, setup{harness: "true"})
	r.write("\ufeff" + commandLine("x", 1, protocol.RunnerDrain, "", "") + "\n")
	if got := r.answer("x"); got.Status != protocol.ReceiptAccepted {
		t.Errorf("got %+v, want accepted", got)
	}
	r.hangUp()
	r.end().reason(protocol.ReasonControllerClosed)
}

func resolve(id string) string {
	return fmt.Sprintf(`{"requestId":%q,"response":{"text":"yes"}}`, id)
}

func TestF26Answers(t *testing.T) {
	t.Parallel()
	s := ready()
	for _, id := range []string{"a", "b", "late"} {
		s.say("request", `{"request":`+requestObject(id)+`}`)
	}
	s.event("runtime_request.expired", `{"requestId":"late"}`)
	r := start(t, setup{harness: echo(t, s.event("item.started", `{}`).result())})
	r.rejected(protocol.RequestResolve, resolve("a"), protocol.CodeNotPrepared)
	r.accepted(protocol.RunPrepare, "")
	r.event(protocol.EventItemStarted)
	r.rejected(protocol.RequestResolve, resolve("unknown"), protocol.CodeUnknownRequest)
	r.rejected(protocol.RequestResolve, resolve("late"), protocol.CodeRequestAlreadyResolved)
	r.accepted(protocol.RequestResolve, resolve("b"))
	r.accepted(protocol.RequestResolve, resolve("a"))
	r.rejected(protocol.RequestResolve, resolve("a"), protocol.CodeRequestAlreadyResolved)
	r.rejected(protocol.RequestResolve, resolve("b"), protocol.CodeRequestAlreadyResolved)
	r.accepted(protocol.SessionOpen, "")
	r.accepted(protocol.SessionClose, "")
	e := r.end().reason(protocol.ReasonSuccess)
	var got []string
	for _, ev := range e.of(protocol.EventItemDelta) {
		for _, id := range []string{"a", "b", "late", "unknown"} {
			if strings.Contains(string(ev.Payload), fmt.Sprintf(`"requestId":%q`, id)) {
				got = append(got, id)
			}
		}
	}
	if strings.Join(got, " ") != "b a" {
		t.Errorf("the harness got answers to %q, want b and a", got)
	}
}

// notDelivered checks that a command which the harness never got was rejected,
// is named by a diagnostic, or came too late to be answered.
func (e ending) notDelivered(id string) {
	e.r.t.Helper()
	got := e.receipts()[id]
	if len(got) == 0 || got[0].Status == protocol.ReceiptRejected {
		return
	}
	for _, m := range e.r.msgs {
		if m.Diagnostic != nil && m.Diagnostic.Code == protocol.CodeHarnessInputClosed && strings.Contains(m.Diagnostic.Message, fmt.Sprintf("%q", id)) {
			return
		}
	}
	e.r.t.Errorf("%s: nothing says that it was not delivered\n%s", id, e.r.tail())
}

func TestF31HarnessInputClosed(t *testing.T) {
	t.Parallel()
	each(t, "closes its stdin", func(t *testing.T) {
		r := start(t, setup{harness: bare(t, `{"kind":"ready"}`, `{"kind":"close_stdin"}`, delta, result, hang)})
		r.accepted(protocol.RunPrepare, "")
		r.event(protocol.EventItemDelta)
		open := r.send(protocol.SessionOpen, "")
		r.await("diagnostic", func(m protocol.StreamMessage) bool {
			return m.Diagnostic != nil && m.Diagnostic.Code == protocol.CodeHarnessInputClosed
		})
		r.rejected(protocol.TurnStart, turn, protocol.CodeHarnessInputClosed)
		r.accepted(protocol.RunCancel, "")
		e := r.end().reason(protocol.ReasonRunCancelled)
		e.notDelivered(open)
	})
	each(t, "exits meanwhile", func(t *testing.T) {
		for range times(10, 300) {
			r := start(t, setup{harness: bare(t, `{"kind":"ready"}`, `{"kind":"close_stdin"}`, delta, result, exit(0))})
			r.accepted(protocol.RunPrepare, "")
			r.event(protocol.EventItemDelta)
			open := r.send(protocol.SessionOpen, "")
			start := r.send(protocol.TurnStart, turn)
			e := r.end()
			e.notDelivered(open)
			e.notDelivered(start)
		}
	})
	// What waits in the queue when the run is stopped was not delivered.
	each(t, "stopped with a full queue", func(t *testing.T) {
		r := start(t, setup{harness: bare(t, `{"kind":"ready"}`, hang)})
		r.begin()
		text := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 100_000))
		ids := []string{r.send(protocol.TurnSteer, text), r.send(protocol.TurnSteer, text), r.send(protocol.TurnSteer, text)}
		for _, id := range ids {
			if got := r.answer(id); got.Status != protocol.ReceiptAccepted {
				t.Fatalf("got %+v, want accepted", got)
			}
		}
		r.accepted(protocol.RunnerShutdown, "")
		e := r.end().reason(protocol.ReasonRunnerShutdown)
		for _, id := range ids {
			e.notDelivered(id)
		}
	})
}

// One command may be as long as a line may be: where nothing waits before it,
// it is delivered.
func TestLargestCommandIsDelivered(t *testing.T) {
	t.Parallel()
	line := func(seq int64, pad int) string {
		return commandLine(fmt.Sprintf("c%d", seq), seq, protocol.TurnStart, `{"turnId":"t","text":"`+strings.Repeat("x", pad)+`"}`, "")
	}
	r := start(t, setup{harness: script(t, result, exit(0)), flags: []string{"--harness-max-line-bytes", "2097152"}})
	r.accepted(protocol.RunPrepare, "")
	r.accepted(protocol.SessionOpen, "")
	r.event(protocol.EventSessionStarted)
	for try := 1; ; try++ {
		r.seq++
		r.write(line(r.seq, 1<<20-len(line(r.seq, 0))) + "\n")
		got := r.answer(fmt.Sprintf("c%d", r.seq))
		if got.Status == protocol.ReceiptAccepted {
			break
		}
		// session.open may count as waiting for a moment after it was read.
		if got.Code != protocol.CodeHarnessBackpressure || try > 100 {
			t.Fatalf("got %+v, want accepted", got)
		}
	}
	r.end().reason(protocol.ReasonSuccess)
}

func TestEventsComeBeforeTheReceipt(t *testing.T) {
	t.Parallel()
	r := start(t, setup{harness: script(t, hang)})
	r.begin()
	r.hangUp()
	r.end().reason(protocol.ReasonControllerClosed)
	at := map[string]int{}
	for i, m := range r.msgs {
		if m.Event != nil {
			at[string(m.Event.EventType)] = i
		}
		if m.Receipt != nil {
			at[m.Receipt.CommandID] = i
		}
	}
	for _, c := range [][2]string{{"harness.ready", "c1"}, {"session.starting", "c2"}, {"turn.submitted", "c3"}} {
		if at[c[0]] >= at[c[1]] {
			t.Errorf("%s is line %d, the receipt of %s line %d", c[0], at[c[0]], c[1], at[c[1]])
		}
	}
}

func TestDeadlineAndPrecondition(t *testing.T) {
	t.Parallel()
	r := start(t, setup{harness: script(t, hang)})
	r.begin()
	for _, c := range []struct {
		more string
		want protocol.Code
	}{
		{`,"deadlineAt":"2020-01-01T00:00:00Z"`, protocol.CodeDeadlinePassed},
		{`,"deadlineAt":"2200-01-01T00:00:00Z"`, ""},
		{`,"precondition":{"activeTurnId":null}`, protocol.CodePreconditionFailed},
		{`,"precondition":{"activeTurnId":"turn_1"}`, ""},
		{`,"precondition":{"runnerState":["idle"]}`, protocol.CodePreconditionFailed},
		{`,"precondition":{"runnerState":["draining"],"runState":["running"]}`, ""},
		{`,"precondition":{"sessionState":[]}`, protocol.CodePreconditionFailed},
		{`,"precondition":{"runnerState":["draining"],"activeTurnId":"other"},"deadlineAt":"2020-01-01T00:00:00Z"`, protocol.CodeDeadlinePassed},
	} {
		r.seq++
		id := fmt.Sprintf("c%d", r.seq)
		line := commandLine(id, r.seq, protocol.RunnerDrain, "", c.more) + "\n"
		r.write(line + line) // what was decided is said again when it is repeated
		for i, got := range r.answers(id, 2) {
			want := protocol.ReceiptRejected
			if c.want == "" && i == 0 {
				want = protocol.ReceiptAccepted
			} else if c.want == "" {
				want = protocol.ReceiptDuplicate
			}
			if got.Code != c.want || got.Status != want {
				t.Errorf("%s, receipt %d: got %+v, want %s %s", c.more, i, got, want, c.want)
			}
		}
	}
	r.hangUp()
	r.end().reason(protocol.ReasonControllerClosed)
}
