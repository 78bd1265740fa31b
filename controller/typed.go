package controller

import (
	"encoding/json"

	"prp/protocol"
)

// typed reads the members of payloads whose shape is known. It compares names
// exactly (spec section 1), which package json does not: there a member Prompt
// would take the place of prompt, and a person would answer another question
// than the one that was asked. What is null counts as absent. The page of
// package console reads in the same way.
type typed struct {
	bad bool // a member had another type
}

// member reads one value; the zero value where it is absent or of another type.
func member[T any](t *typed, raw json.RawMessage) T {
	var v, none T
	if raw == nil {
		return none
	}
	if json.Unmarshal(raw, &v) != nil {
		t.bad = true
		return none
	}
	return v
}

// object reads the members of an object.
func (t *typed) object(raw json.RawMessage) payload {
	if raw == nil || string(raw) == "null" {
		return payload{}
	}
	p, ok := parsePayload(raw)
	t.bad = t.bad || !ok
	return p
}

func (t *typed) exit(raw json.RawMessage) protocol.ExitFact {
	m := t.object(raw)
	return protocol.ExitFact{
		ExitCode: member[*int](t, m["exitCode"]), Success: member[bool](t, m["success"]), Signal: member[*int](t, m["signal"]),
	}
}

// readExited is the payload of harness.exited as far as it can be read; false
// where a member has another type.
func readExited(raw json.RawMessage) (*protocol.HarnessExited, bool) {
	t := &typed{}
	m := t.object(raw)
	logs, contained := t.object(m["logs"]), t.object(m["containment"])
	x := &protocol.HarnessExited{
		ProcessExit:            t.exit(m["processExit"]),
		SemanticResultObserved: member[bool](t, m["semanticResultObserved"]),
		Logs: protocol.LogTail{
			Lines:         member[[]string](t, logs["lines"]),
			RetainedLines: member[int](t, logs["retainedLines"]),
			RetainedBytes: member[int](t, logs["retainedBytes"]),
			DroppedLines:  member[int64](t, logs["droppedLines"]),
		},
		Containment: protocol.Containment{
			Means: member[[]string](t, contained["means"]), Swept: member[int](t, contained["swept"]),
		},
	}
	if list := member[[]json.RawMessage](t, contained["survivors"]); list != nil {
		x.Containment.Survivors = make([]protocol.Survivor, len(list))
		for i, one := range list {
			s := t.object(one)
			x.Containment.Survivors[i] = protocol.Survivor{
				PID: member[int](t, s["pid"]), Name: member[string](t, s["name"]), State: member[string](t, s["state"]),
			}
		}
	}
	return x, !t.bad
}

// readTerminal is the same for run.terminal.
func readTerminal(raw json.RawMessage) (*protocol.Terminal, bool) {
	t := &typed{}
	m := t.object(raw)
	r := t.object(m["reconciliation"])
	x := &protocol.Terminal{
		TerminalProposal: protocol.TerminalProposal{
			Schema:                  member[string](t, m["schema"]),
			TurnTerminalState:       member[protocol.TurnTerminalState](t, m["turnTerminalState"]),
			RunTerminalState:        member[protocol.RunTerminalState](t, m["runTerminalState"]),
			ReportedWorkDisposition: member[protocol.Disposition](t, m["reportedWorkDisposition"]),
		},
		HarnessTerminalProposal: m["harnessTerminalProposal"],
		Reconciliation: protocol.Reconciliation{
			Authority:              member[string](t, r["authority"]),
			Reason:                 member[protocol.Reason](t, r["reason"]),
			ProposalValid:          member[bool](t, r["proposalValid"]),
			ProposalContradicted:   member[bool](t, r["proposalContradicted"]),
			SemanticResultObserved: member[bool](t, r["semanticResultObserved"]),
		},
	}
	if exit := r.raw("processExit"); exit != nil {
		fact := t.exit(exit)
		x.Reconciliation.ProcessExit = &fact
	}
	return x, !t.bad
}

// readQuestion is what a person is asked by a request, as far as it can be
// read; false where it has no id or a member of another type.
func readQuestion(raw json.RawMessage) (RequestState, bool) {
	t := &typed{}
	m := t.object(raw)
	for _, name := range []string{"schema", "requestKind", "status"} {
		member[string](t, m[name])
	}
	q := RequestState{
		ID: member[string](t, m["requestId"]), Type: member[protocol.RequestType](t, m["type"]),
		Prompt: member[string](t, m["prompt"]), Status: protocol.RequestStatusPending,
	}
	return q, !t.bad && q.ID != ""
}
