package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Decoder decodes the lines of one stream, one after the other. It keeps
// scratch memory and recently seen ids between lines; it is not safe for
// concurrent use. Every method checks the whole line strictly before it returns
// anything: valid JSON under [CheckJSON], one object and nothing after it,
// names compared exactly. Members that the protocol does not have are
// tolerated. A member that it has with the value null is a fault, but for those
// that may be null.
type Decoder struct {
	msg   messageScan
	canon canonicalizer
	text  []byte
}

// NewDecoder returns a decoder for one stream.
func NewDecoder() *Decoder { return new(Decoder) }

// keepScratch is how much scratch memory a decoder keeps after a line: what is
// needed for an ordinary one. A command may be of 1 MiB.
const keepScratch = 64 << 10

// Command decodes a line of the controller: check 1 of spec section 2. Payload
// is a slice of line ("{}" where it was absent), the strings are copies. Types
// that the protocol does not have pass; they are rejected later. Args are read
// for known types.
//
// The fault's code is [CodeInvalidJSON] for a line that is not exactly one JSON
// object, [CodeUnsupportedSchema] for another schema, and [CodeInvalidCommand]
// for a member that is missing or of another shape.
func (d *Decoder) Command(line []byte) (Command, *CommandFault) {
	f, err := readFields("", line)
	if err != nil {
		return Command{}, &CommandFault{Code: CodeInvalidJSON, Detail: err.Error()}
	}
	fault := addressOf(f)
	c := Command{Schema: f.word("schema", SchemaCommand, SchemaCommandShort)}
	if f.err != nil {
		return Command{}, fault.with(CodeUnsupportedSchema, f.err)
	}
	c.CommandID = f.id("commandId")
	c.ControllerSeq = f.integer("controllerSeq", 1)
	c.Type = CommandType(f.bounded("type", 1, MaxIDLen))
	c.IssuedAt = f.time("issuedAt")
	c.DeadlineAt = f.optionalTime("deadlineAt")
	if f.has("precondition") {
		c.Precondition = readPrecondition(f)
	}
	c.Payload = f.payload("payload")
	if f.err == nil {
		c.Args, f.err = readArgs(c.Type, c.Payload)
	}
	if f.err != nil {
		return Command{}, fault.with(CodeInvalidCommand, f.err)
	}
	if c.Digest, err = d.digest(line); err != nil {
		return Command{}, fault.with(CodeInvalidJSON, err) // cannot be: the line was checked
	}
	return c, nil
}

// addressOf reads what an answer needs; it is not Answerable where one of the
// two cannot be read.
func addressOf(f *fields) *CommandFault {
	probe := fields{members: f.members}
	fault := &CommandFault{CommandID: probe.id("commandId"), ControllerSeq: probe.integer("controllerSeq", 1)}
	if fault.Answerable = probe.err == nil; !fault.Answerable {
		fault.CommandID, fault.ControllerSeq = "", 0
	}
	return fault
}

func (f *CommandFault) with(code Code, err error) *CommandFault {
	f.Code, f.Detail = code, err.Error()
	return f
}

func (d *Decoder) digest(line []byte) (Digest, error) {
	text, err := d.canon.append(d.text[:0], line)
	if err != nil {
		return Digest{}, err
	}
	sum := digestOfText(text)
	if d.text = text[:0]; cap(text) > keepScratch {
		// Also the tokenizer's memory for names, which cannot be seen here.
		d.text, d.canon = nil, canonicalizer{}
	}
	d.canon.s.release()
	return sum, nil
}

func readPrecondition(f *fields) *Precondition {
	in := f.nested("precondition")
	p := &Precondition{
		RunnerState:  states(in, "runnerState", RunnerIdle, RunnerPreparing, RunnerReady, RunnerDraining, RunnerEnding),
		RunState:     states(in, "runState", RunQueued, RunPreparing, RunRunning, RunEnding),
		SessionState: states(in, "sessionState", SessionNotStarted, SessionStarting, SessionRunning, SessionClosed, SessionFailed),
	}
	if in.has("activeTurnId") {
		none := ""
		p.ActiveTurnID = &none
		if kindOf(in.raw("activeTurnId")) != kindNull {
			none = in.id("activeTurnId")
		}
	}
	f.adopt(in)
	return p
}

// states is an optional list of states, nil where it is absent. A word that is
// no state is a fault: a typing error would be a condition that never holds.
func states[T ~string](in *fields, name string, known ...T) []T {
	words := in.words(name)
	if words == nil {
		return nil
	}
	out := make([]T, len(words))
	for i, word := range words {
		out[i] = T(word)
		if !slices.Contains(known, out[i]) {
			in.fail(fmt.Sprintf("%s[%d]", name, i), fmt.Sprintf("one of %q", known), "another word")
		}
	}
	return out
}

// readArgs reads the members of a payload that the runner needs, and checks
// those that the command must have.
func readArgs(t CommandType, payload json.RawMessage) (CommandArgs, error) {
	f, err := readFields("payload.", payload)
	if err != nil {
		return CommandArgs{}, err
	}
	var a CommandArgs
	switch t {
	case TurnStart:
		a.TurnID, a.Text = f.id("turnId"), f.text("text")
	case TurnSteer:
		a.TurnID, a.Text = f.optionalID("turnId"), f.text("text")
	case TurnInterrupt, TurnStop:
		a.TurnID, a.Reason = f.optionalID("turnId"), f.optionalText("reason")
	case RequestResolve:
		a.RequestID = f.id("requestId")
		if !f.has("response") {
			f.fail("response", "a value", "nothing")
		}
	}
	if f.err != nil {
		return CommandArgs{}, f.err
	}
	return a, nil
}

// Stream decodes a line that a runner writes (spec section 3). Nothing in the
// result is a slice of line. The error is a [*FieldError] where a member is
// wrong.
func (d *Decoder) Stream(line []byte) (StreamMessage, error) {
	f, err := readFields("", line)
	if err != nil {
		return StreamMessage{}, err
	}
	f.word("schema", SchemaStream)
	m := f.nested("message")
	f.adopt(m)
	out := StreamMessage{}
	if f.err == nil {
		out.Kind = MessageKind(m.word("kind", string(KindEvent), string(KindReceipt), string(KindDiagnostic)))
		switch out.Kind {
		case KindEvent:
			out.Event = readEvent(m)
		case KindReceipt:
			out.Receipt = readReceipt(m)
		case KindDiagnostic:
			out.Diagnostic = &Diagnostic{
				Level:   Level(m.word("level", string(LevelInfo), string(LevelWarning), string(LevelError))),
				Message: m.text("message"),
				Code:    Code(m.text("code")),
			}
		}
		f.adopt(m)
	}
	if f.err != nil {
		return StreamMessage{}, f.err
	}
	return out, nil
}

func readEvent(m *fields) *Event {
	f := m.nested("event")
	e := &Event{
		Schema:              f.word("schema", SchemaEvent),
		SourceEventID:       f.id("sourceEventId"),
		SourceSeq:           f.integer("sourceSeq", 1),
		SourceInstanceID:    f.bounded("sourceInstanceId", 1, MaxRunIDLen),
		SourceKind:          f.word("sourceKind", SourceKindRunner),
		RunID:               f.bounded("runId", 1, MaxRunIDLen),
		NormalizedSessionID: f.bounded("normalizedSessionId", 1, MaxRunIDLen),
		TurnID:              f.optionalID("turnId"),
		ItemID:              f.optionalID("itemId"),
		EventType:           EventType(f.id("eventType")),
		SchemaVersion:       int(f.integer("schemaVersion", 1)),
		Priority:            int(f.integer("priority", PriorityEnd)),
		EmittedAt:           f.text("emittedAt"),
	}
	payload := f.object("payload")
	switch {
	case f.err != nil:
	case e.SchemaVersion != EventSchemaVersion:
		f.fail("schemaVersion", fmt.Sprint(EventSchemaVersion), fmt.Sprint(e.SchemaVersion))
	case e.Priority > PriorityBulk:
		f.fail("priority", "an integer from 0 to 2", fmt.Sprint(e.Priority))
	case !isStamp(e.EmittedAt):
		f.fail("emittedAt", "a UTC time with three decimals and Z", "another string")
	}
	m.adopt(f)
	e.Payload = append(json.RawMessage(nil), payload...)
	return e
}

func readReceipt(m *fields) *Receipt {
	r := &Receipt{
		CommandID:     m.id("commandId"),
		ControllerSeq: m.integer("controllerSeq", 1),
		Status:        ReceiptStatus(m.word("status", string(ReceiptAccepted), string(ReceiptDuplicate), string(ReceiptRejected))),
		Detail:        m.text("detail"),
	}
	if r.Status == ReceiptRejected {
		r.Code = Code(m.id("code"))
	} else if m.has("code") {
		m.fail("code", "nothing where the status is not rejected", kindName(kindOf(m.raw("code"))))
	}
	return r
}

// HarnessCommand decodes a line that a harness reads, of either family.
// Nothing in the result is a slice of line.
func (d *Decoder) HarnessCommand(line []byte) (HarnessCommand, Family, error) {
	f, err := readFields("", line)
	if err != nil {
		return HarnessCommand{}, FamilyNone, err
	}
	c := HarnessCommand{
		Schema:    f.word("schema", FamilyFake.CommandSchema(), FamilyHarness.CommandSchema()),
		CommandID: f.id("commandId"),
		Type:      CommandType(f.bounded("type", 1, MaxIDLen)),
		Payload:   append(json.RawMessage(nil), f.payload("payload")...),
	}
	if f.err != nil {
		return HarnessCommand{}, FamilyNone, f.err
	}
	if c.Schema == FamilyFake.CommandSchema() {
		return c, FamilyFake, nil
	}
	return c, FamilyHarness, nil
}
