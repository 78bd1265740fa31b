package protocol

import "encoding/json"

// DecodeRequest decodes a request of a harness (spec section 4). Choices, where
// given, is an array of anything and a slice of raw. The error names the
// member.
func DecodeRequest(raw []byte) (Request, error) {
	f, err := readFields("", raw)
	if err != nil {
		return Request{}, err
	}
	return readRequest(f)
}

func readRequest(f *fields) (Request, error) {
	r := Request{
		Schema:      f.word("schema", SchemaRequest),
		RequestKind: f.word("requestKind", RequestKindRuntime),
		RequestID:   f.id("requestId"),
		Type:        RequestType(f.word("type", string(RequestPermission), string(RequestInput))),
		Status:      f.word("status", RequestStatusPending),
		Prompt:      f.text("prompt"),
		ExpiresAt:   f.optionalTime("expiresAt"),
	}
	if f.has("choices") {
		r.Choices = f.kinded("choices", kindArray)
	}
	if f.err != nil {
		return Request{}, f.err
	}
	return r, nil
}

// DecodeResult decodes a semantic result (spec section 4). The contract
// revision may be a string or a number; elements of the lists may be anything.
// A blocker is an object and required with the disposition blocked; a
// continuation is required with yielded; each is checked wherever it is given.
// Raw members are slices of raw. The error names the member.
func DecodeResult(raw []byte) (Result, error) {
	f, err := readFields("", raw)
	if err != nil {
		return Result{}, err
	}
	r := Result{
		Schema:                  f.word("schema", SchemaResult),
		ReportedWorkDisposition: readDisposition(f),
		Summary:                 f.bounded("summary", 1, MaxSummaryLen),
		CompletionClaim:         readClaim(f),
		Evidence:                f.list("evidence"),
		Verification:            f.list("verification"),
		AttentionRequests:       f.list("attentionRequests"),
		Artifacts:               f.list("artifacts"),
	}
	if f.has("blocker") || r.ReportedWorkDisposition == DispositionBlocked {
		r.Blocker = f.object("blocker")
	}
	if f.has("continuation") || r.ReportedWorkDisposition == DispositionYielded {
		r.Continuation = readContinuation(f)
	}
	if f.err != nil {
		return Result{}, f.err
	}
	return r, nil
}

func readDisposition(f *fields) Disposition {
	return Disposition(f.word("reportedWorkDisposition", string(DispositionDone),
		string(DispositionBlocked), string(DispositionNeedsReview), string(DispositionYielded)))
}

func readClaim(f *fields) CompletionClaim {
	in := f.nested("completionClaim")
	c := CompletionClaim{
		ContractRevision:   readRevision(in),
		ObjectiveSatisfied: in.boolean("objectiveSatisfied"),
		Criteria:           in.list("criteria"),
		RemainingWork:      in.list("remainingWork"),
	}
	f.adopt(in)
	return c
}

// readRevision takes a string or a number: contracts are numbered by some and
// named by others.
func readRevision(f *fields) json.RawMessage {
	raw := f.raw("contractRevision")
	kind := kindOf(raw)
	if kind != kindString && kind != kindNumber {
		f.fail("contractRevision", "a string or a number", kindName(kind))
	}
	return raw
}

func readContinuation(f *fields) *Continuation {
	in := f.nested("continuation")
	c := &Continuation{
		Kind:           in.bounded("kind", 1, MaxSummaryLen),
		Summary:        in.bounded("summary", 1, MaxSummaryLen),
		IdempotencyKey: in.bounded("idempotencyKey", 1, MaxSummaryLen),
	}
	f.adopt(in)
	return c
}

// DecodeTerminalProposal decodes a terminal as a harness proposes it (spec
// section 4). The error names the member.
func DecodeTerminalProposal(raw []byte) (TerminalProposal, error) {
	f, err := readFields("", raw)
	if err != nil {
		return TerminalProposal{}, err
	}
	t := readTerminal(f)
	if f.err != nil {
		return TerminalProposal{}, f.err
	}
	return t, nil
}

func readTerminal(f *fields) TerminalProposal {
	return TerminalProposal{
		Schema: f.word("schema", SchemaTerminal),
		TurnTerminalState: TurnTerminalState(f.word("turnTerminalState", string(TurnCompleted),
			string(TurnFailed), string(TurnInterrupted), string(TurnCancelled))),
		RunTerminalState: RunTerminalState(f.word("runTerminalState", string(RunSucceeded),
			string(RunFailed), string(RunCancelled))),
		ReportedWorkDisposition: readDisposition(f),
	}
}

// HasCapability reports whether the capabilities that a harness gave in ready
// have the name: as an element of a list, or as a member of an object whose
// value is true or an object. Elements of other kinds are ignored, absent
// capabilities have no name.
func HasCapability(raw json.RawMessage, name string) bool {
	if CheckJSON(raw) != nil {
		return false
	}
	var s scanner
	var scratch []byte
	s.reset(raw)
	if s.next() != nil {
		return false
	}
	switch s.kind {
	case kindArray:
		for s.next() == nil && s.kind != ']' {
			if s.kind == kindString && string(s.text(s.span, &scratch)) == name {
				return true
			}
			if s.rest() != nil {
				return false
			}
		}
	case kindObject:
		for {
			got, more, err := s.member()
			if err != nil || !more {
				return false
			}
			found := string(got) == name
			if s.value() != nil {
				return false
			}
			if found {
				return s.kind == kindTrue || s.kind == kindObject
			}
		}
	}
	return false
}
