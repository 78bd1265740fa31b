package lifecycle

import (
	"encoding/json"
	"strconv"

	"prp/protocol"
)

// Payloads of the runner's own events. They are written member by member, as the
// types in package protocol name them: what reflection has to learn of a type costs
// a short run more than all of its own events.

// object is a JSON object that is being written, without its last bracket.
type object []byte

func (o object) name(name string) object {
	if len(o) == 0 {
		o = append(o, '{')
	} else {
		o = append(o, ',')
	}
	return append(protocol.AppendString(o, name), ':')
}

func (o object) text(name, s string) object {
	return protocol.AppendString(o.name(name), s)
}

// some is text where there is any.
func (o object) some(name, s string) object {
	if s == "" {
		return o
	}
	return o.text(name, s)
}

func (o object) number(name string, n int64) object {
	return strconv.AppendInt(o.name(name), n, 10)
}

// maybe is a number, or null.
func (o object) maybe(name string, n *int) object {
	if n == nil {
		return append(o.name(name), "null"...)
	}
	return o.number(name, int64(*n))
}

func (o object) truth(name string, b bool) object {
	return strconv.AppendBool(o.name(name), b)
}

func (o object) texts(name string, list []string) object {
	return o.list(name, len(list), func(o object, i int) object { return protocol.AppendString(o, list[i]) })
}

// list is an array of n elements, each appended by add.
func (o object) list(name string, n int, add func(o object, i int) object) object {
	o = append(o.name(name), '[')
	for i := range n {
		if i > 0 {
			o = append(o, ',')
		}
		o = add(o, i)
	}
	return append(o, ']')
}

func (o object) raw(name string, value []byte) object { return append(o.name(name), value...) }

func (o object) end() json.RawMessage { return json.RawMessage(append(o, '}')) }

func exitFact(e *protocol.ExitFact) json.RawMessage {
	if e == nil {
		return json.RawMessage("null")
	}
	return object(nil).maybe("exitCode", e.ExitCode).truth("success", e.Success).maybe("signal", e.Signal).end()
}

func exitedPayload(e protocol.HarnessExited) json.RawMessage {
	logs := object(nil).texts("lines", e.Logs.Lines).number("retainedLines", int64(e.Logs.RetainedLines)).
		number("retainedBytes", int64(e.Logs.RetainedBytes)).number("droppedLines", e.Logs.DroppedLines)
	c := e.Containment
	contained := object(nil).texts("means", c.Means).number("swept", int64(c.Swept)).
		list("survivors", len(c.Survivors), func(o object, i int) object {
			s := c.Survivors[i]
			return append(o, object(nil).number("pid", int64(s.PID)).text("name", s.Name).text("state", s.State).end()...)
		})
	return object(nil).raw("processExit", exitFact(&e.ProcessExit)).truth("semanticResultObserved", e.SemanticResultObserved).
		raw("logs", logs.end()).raw("containment", contained.end()).end()
}

// terminalPayload writes a terminal with the harness's proposal byte for byte; nil
// is null.
func terminalPayload(t protocol.Terminal, proposal []byte) json.RawMessage {
	if proposal == nil {
		proposal = []byte("null")
	}
	r := t.Reconciliation
	reconciled := object(nil).text("authority", r.Authority).text("reason", string(r.Reason)).
		truth("proposalValid", r.ProposalValid).truth("proposalContradicted", r.ProposalContradicted).
		raw("processExit", exitFact(r.ProcessExit)).truth("semanticResultObserved", r.SemanticResultObserved)
	return object(nil).text("schema", t.Schema).text("turnTerminalState", string(t.TurnTerminalState)).
		text("runTerminalState", string(t.RunTerminalState)).text("reportedWorkDisposition", string(t.ReportedWorkDisposition)).
		raw("harnessTerminalProposal", proposal).raw("reconciliation", reconciled.end()).end()
}
