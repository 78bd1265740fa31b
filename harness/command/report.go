package command

import (
	"fmt"

	"prp/harness/child"
	"prp/harness/fields"
	"prp/harness/text"
	"prp/protocol"
)

// itemID is the one item of a run.
const itemID = "item_command"

// itemKind is its kind.
const itemKind = "command"

// provenance says who claims a result: the adapter, not the program.
const provenance = "adapter:command"

// event sends an event of the turn; false where the runner is gone.
func (a *adapter) event(t protocol.EventType, item string, payload *fields.Fields) bool {
	return a.conn.Send(protocol.MessageEvent, a.encode(t, item, payload)) == nil
}

// queue has an event go out with the next one.
func (a *adapter) queue(t protocol.EventType, item string, payload *fields.Fields) {
	a.conn.Queue(protocol.MessageEvent, a.encode(t, item, payload))
}

func (a *adapter) encode(t protocol.EventType, item string, payload *fields.Fields) []byte {
	turn := a.turn.id
	if t == protocol.EventSessionClosed {
		turn = ""
	}
	var object []byte // nothing stands for {}
	if payload != nil {
		object = payload.Object()
	}
	return protocol.AppendHarnessEvent(nil, t, turn, item, object)
}

func diagnosis(code, message string) *fields.Fields {
	return fields.New().Text("code", code).Text("message", message)
}

// refuse ends a turn whose program did not run.
func (a *adapter) refuse(code string, err error, exit child.Exit) child.Exit {
	// It can quote a name that the turn gave.
	message, _ := text.Head(err.Error(), maxLine)
	a.queue(protocol.EventHarnessDiag, "", diagnosis(code, message))
	a.result(protocol.DispositionYielded, "Nothing was run: "+message, exit)
	a.queue(protocol.EventTurnFailed, "", diagnosis(code, message))
	a.event(protocol.EventSessionClosed, "", nil)
	return exit
}

// report tells the end of the program: the item, the result, the turn.
func (a *adapter) report(exit child.Exit) child.Exit {
	if a.why == byTimeout && exit.Success() {
		exit.Status = StatusTimedOut
	}
	end := fields.New().Text("kind", itemKind)
	outcome(end, exit)
	end.Number("stdoutBytes", a.streams[0].bytes).Number("stderrBytes", a.streams[1].bytes)
	if n := a.streams[0].replaced + a.streams[1].replaced; n > 0 {
		end.Number("replacedBytes", n)
	}
	done := exit.Success() && a.why == byItself
	item, disposition := protocol.EventItemFailed, protocol.DispositionYielded
	if done {
		item, disposition = protocol.EventItemCompleted, protocol.DispositionDone
	}
	a.queue(item, itemID, end)
	a.result(disposition, fmt.Sprintf("The command ended with %s: %s", exit, a.turn.title()), exit)
	a.queue(a.turnEnd(exit))
	a.event(protocol.EventSessionClosed, "", nil)
	return exit
}

func outcome(f *fields.Fields, exit child.Exit) {
	if exit.Signal != 0 {
		f.Number("signal", int64(exit.Signal))
	} else {
		f.Number("exitCode", int64(exit.Status))
	}
}

// turnEnd is the event that ends the turn.
func (a *adapter) turnEnd(exit child.Exit) (protocol.EventType, string, *fields.Fields) {
	f := fields.New()
	outcome(f, exit)
	switch {
	case a.why == byInterrupt:
		return protocol.EventTurnInterrupted, "", f.Text("reason", a.reason)
	case a.why == byCancel:
		return protocol.EventTurnCancelled, "", f.Text("reason", a.reason)
	case a.why == byTimeout:
		return protocol.EventTurnFailed, "", f.Text("code", "timed_out").
			Text("message", fmt.Sprintf("the command did not end within %s", a.turn.timeout))
	case exit.Success():
		return protocol.EventTurnCompleted, "", f
	}
	return protocol.EventTurnFailed, "", f.Text("code", "command_failed")
}

// result queues the semantic result: what the adapter can claim from an exit.
func (a *adapter) result(disposition protocol.Disposition, summary string, exit child.Exit) {
	f := fields.New().Text("kind", "process_exit").Text("provenance", provenance)
	outcome(f, exit)
	none := []byte("[]")
	claim := fields.New().Text("contractRevision", "1").Truth("objectiveSatisfied", disposition == protocol.DispositionDone).
		Own("criteria", none).Own("remainingWork", none)
	r := fields.New().Text("schema", protocol.SchemaResult).Text("reportedWorkDisposition", string(disposition)).
		Text("summary", summary).Own("completionClaim", claim.Object()).
		Own("evidence", append(f.Append([]byte{'['}), ']')).
		Own("verification", none).Own("attentionRequests", none).Own("artifacts", none)
	if disposition == protocol.DispositionYielded {
		key := a.turn.id
		if key == "" {
			key = itemID
		}
		r.Own("continuation", fields.New().Text("kind", "run_again").Text("summary", summary).Text("idempotencyKey", key).Object())
	}
	a.conn.Queue(protocol.MessageResult, fields.New().Own("result", r.Object()).Object())
}
