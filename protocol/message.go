package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"unicode/utf8"
)

// messageScan is what one pass over a line of a harness finds: where the
// members of the envelope, of its payload, and of an event's payload stand.
// Type and payload may come in any order, so the members of every type are
// noted and judged afterwards.
type messageScan struct {
	s       scanner
	scratch []byte
	seen    interner
	messageSpans
}

type messageSpans struct {
	schema, seq, typ, payload span // of the envelope

	eventType, turnID, itemID, content    span // of an event
	stream, text                          span // of a log
	version, driverKind, capabilities     span // of ready
	request, result, terminal, answeredID span // of the rest; answeredID is inside content
}

// HarnessMessage decodes a line of a harness into m, all of which it sets. Raw,
// an event's Payload and the text of a log are slices of line; everything else
// is not, also not what Ready and Request point to. It
// costs no allocation for event and log messages whose strings have no escapes
// once their ids have been seen. The content of a result or a terminal is not
// judged, only that it is an object; a request is checked completely. On a
// fault m is zero.
func (d *Decoder) HarnessMessage(line []byte, m *HarnessMessage) *MessageFault {
	*m = HarnessMessage{}
	x := &d.msg
	if err := x.scan(line); err != nil {
		return &MessageFault{Code: CodeHarnessInvalidJSON, Detail: err.Error()}
	}
	fault := x.read(m)
	if fault != nil {
		*m = HarnessMessage{}
	}
	return fault
}

// scan checks the whole line and finds the members.
func (x *messageScan) scan(line []byte) error {
	x.messageSpans = messageSpans{}
	s := &x.s
	s.reset(line)
	if err := s.next(); err != nil {
		return err
	}
	if s.kind != kindObject {
		got := kindName(s.kind)
		if err := s.rest(); err != nil {
			return err
		}
		if err := s.finish(); err != nil {
			return err
		}
		return &FieldError{Want: "an object", Got: got}
	}
	for {
		name, more, err := s.member()
		if err != nil {
			return err
		}
		if !more {
			return s.finish()
		}
		switch string(name) {
		case "schema":
			err = x.take(&x.schema)
		case "messageSeq":
			err = x.take(&x.seq)
		case "type":
			err = x.take(&x.typ)
		case "payload":
			err = x.scanPayload()
		default:
			err = s.value()
		}
		if err != nil {
			return err
		}
	}
}

func (x *messageScan) take(into *span) error {
	err := x.s.value()
	*into = x.s.span
	return err
}

// scanPayload finds the members of the payload of every type.
func (x *messageScan) scanPayload() error {
	return x.scanObject(&x.payload, func(name []byte) error {
		switch string(name) {
		case "eventType":
			return x.take(&x.eventType)
		case "turnId":
			return x.take(&x.turnID)
		case "itemId":
			return x.take(&x.itemID)
		case "payload":
			return x.scanContent()
		case "stream":
			return x.take(&x.stream)
		case "text":
			return x.take(&x.text)
		case "version":
			return x.take(&x.version)
		case "driverKind":
			return x.take(&x.driverKind)
		case "capabilities":
			return x.take(&x.capabilities)
		case "request":
			return x.take(&x.request)
		case "result":
			return x.take(&x.result)
		case "terminal":
			return x.take(&x.terminal)
		}
		return x.s.value()
	})
}

// scanContent finds the request that an event's payload may name.
func (x *messageScan) scanContent() error {
	return x.scanObject(&x.content, func(name []byte) error {
		if string(name) == "requestId" {
			return x.take(&x.answeredID)
		}
		return x.s.value()
	})
}

// scanObject reads a value into sp; where it is an object, member reads each of
// its values.
func (x *messageScan) scanObject(sp *span, member func(name []byte) error) error {
	s := &x.s
	if err := s.next(); err != nil {
		return err
	}
	*sp = s.span
	if s.kind != kindObject {
		err := s.rest()
		sp.end = s.end
		return err
	}
	for {
		name, more, err := s.member()
		if err != nil {
			return err
		}
		if !more {
			sp.end = s.end
			return nil
		}
		if err := member(name); err != nil {
			return err
		}
	}
}

// read judges what was found, in the order of the envelope.
func (x *messageScan) read(m *HarnessMessage) *MessageFault {
	switch string(x.word(x.schema)) {
	case schemaMessageFake:
		m.Family = FamilyFake
	case schemaMessageHarness:
		m.Family = FamilyHarness
	default:
		return x.fault(CodeHarnessSchema, "schema", fmt.Sprintf("%q or %q", schemaMessageFake, schemaMessageHarness), x.schema)
	}
	seq, ok := int64(0), false
	if x.seq.kind == kindNumber {
		seq, ok = integer(x.raw(x.seq))
	}
	if !ok || seq < 1 {
		return x.fault(CodeHarnessMessage, "messageSeq", "an integer from 1 to 2^53-1", x.seq)
	}
	m.Seq = seq
	m.Type = messageTypes[string(x.word(x.typ))]
	if m.Type == "" {
		return x.fault(CodeHarnessMessage, "type", "a message type of the protocol", x.typ)
	}
	if x.payload.kind != kindObject {
		return x.fault(CodeHarnessMessage, "payload", "an object", x.payload)
	}
	switch m.Type {
	case MessageEvent:
		return x.readEvent(m)
	case MessageLog:
		return x.readLog(m)
	case MessageReady:
		return x.readReady(m)
	case MessageRequest:
		return x.readRequest(m)
	case MessageResult:
		return x.readRaw(m, "payload.result", x.result)
	case MessageTerminal:
		return x.readRaw(m, "payload.terminal", x.terminal)
	}
	m.Raw = x.raw(x.payload)
	return nil
}

func (x *messageScan) readEvent(m *HarnessMessage) *MessageFault {
	id, ok := x.id(x.eventType)
	if !ok {
		return x.fault(CodeHarnessMessage, "payload.eventType", idShape, x.eventType)
	}
	m.Event.EventType = EventType(id)
	if m.Event.TurnID, ok = x.optionalID(x.turnID); !ok {
		return x.fault(CodeHarnessMessage, "payload.turnId", idShape, x.turnID)
	}
	if m.Event.ItemID, ok = x.optionalID(x.itemID); !ok {
		return x.fault(CodeHarnessMessage, "payload.itemId", idShape, x.itemID)
	}
	switch x.content.kind {
	case kindObject:
		m.Event.Payload = x.raw(x.content)
	case kindNone:
		m.Event.Payload = emptyObject
	default:
		return x.fault(CodeHarnessMessage, "payload.payload", "an object", x.content)
	}
	if m.Event.EventType.EndsRequest() && x.answeredID.kind == kindString {
		m.RequestID = string(x.word(x.answeredID))
	}
	return nil
}

func (x *messageScan) readLog(m *HarnessMessage) *MessageFault {
	switch string(x.word(x.stream)) {
	case LogStdout:
		m.Log.Stream = LogStdout
	case LogStderr:
		m.Log.Stream = LogStderr
	default:
		return x.fault(CodeHarnessMessage, "payload.stream", `"stdout" or "stderr"`, x.stream)
	}
	if x.text.kind != kindString {
		return x.fault(CodeHarnessMessage, "payload.text", "a string", x.text)
	}
	var own []byte // not the shared scratch: the text outlives this line's decoding
	m.Log.Text = alias(x.s.text(x.text, &own))
	return nil
}

func (x *messageScan) readReady(m *HarnessMessage) *MessageFault {
	r := &Ready{}
	if x.version.kind != kindString {
		return x.fault(CodeHarnessMessage, "payload.version", "a string", x.version)
	}
	r.Version = string(x.word(x.version))
	var ok bool
	if r.DriverKind, ok = x.optionalID(x.driverKind); !ok {
		return x.fault(CodeHarnessMessage, "payload.driverKind", idShape, x.driverKind)
	}
	switch x.capabilities.kind {
	case kindNone:
	case kindObject, kindArray:
		r.Capabilities = bytes.Clone(x.raw(x.capabilities))
	default:
		return x.fault(CodeHarnessMessage, "payload.capabilities", "an array or an object", x.capabilities)
	}
	m.Ready = r
	return nil
}

func (x *messageScan) readRequest(m *HarnessMessage) *MessageFault {
	if x.request.kind != kindObject {
		return x.fault(CodeHarnessMessage, "payload.request", "an object", x.request)
	}
	raw := x.raw(x.request)
	f, err := readFields("payload.request.", raw)
	if err != nil {
		return &MessageFault{Code: CodeHarnessInvalidJSON, Detail: err.Error()} // cannot be: the line was checked
	}
	f.hush = true
	r, err := readRequest(f)
	if err != nil {
		return &MessageFault{Code: CodeHarnessMessage, Detail: err.Error()}
	}
	r.Choices = bytes.Clone(r.Choices)
	m.Request, m.Raw = &r, raw
	return nil
}

func (x *messageScan) readRaw(m *HarnessMessage, path string, sp span) *MessageFault {
	if sp.kind != kindObject {
		return x.fault(CodeHarnessMessage, path, "an object", sp)
	}
	m.Raw = x.raw(sp)
	return nil
}

func (x *messageScan) raw(sp span) json.RawMessage { return x.s.src[sp.start:sp.end:sp.end] }

// word is the content of a string, nil for another value; valid until the
// next call.
func (x *messageScan) word(sp span) []byte {
	if sp.kind != kindString {
		return nil
	}
	return x.s.text(sp, &x.scratch)
}

// id is a string of 1 to MaxIDLen characters, kept for the next time.
func (x *messageScan) id(sp span) (string, bool) {
	if sp.kind != kindString {
		return "", false
	}
	b := x.word(sp)
	if len(b) == 0 || len(b) > MaxIDLen && utf8.RuneCount(b) > MaxIDLen {
		return "", false
	}
	return x.seen.string(b), true
}

func (x *messageScan) optionalID(sp span) (string, bool) {
	if sp.kind == kindNone {
		return "", true
	}
	return x.id(sp)
}

// fault says what was expected and, without any content, what was seen.
func (x *messageScan) fault(code Code, path, want string, sp span) *MessageFault {
	got := kindName(sp.kind)
	switch sp.kind {
	case kindString:
		got = fmt.Sprintf("a string of %d characters", utf8.RuneCount(x.word(sp)))
	case kindNumber:
		got = "another number"
	}
	return &MessageFault{Code: code, Detail: (&FieldError{Path: path, Want: want, Got: got}).Error()}
}

const idShape = "a string of 1 to 160 characters"

var emptyObject = json.RawMessage("{}")

var messageTypes = map[string]MessageType{
	string(MessageReady):      MessageReady,
	string(MessageEvent):      MessageEvent,
	string(MessageRequest):    MessageRequest,
	string(MessageResult):     MessageResult,
	string(MessageTerminal):   MessageTerminal,
	string(MessageLog):        MessageLog,
	string(MessageDiagnostic): MessageDiagnostic,
}

const (
	// internWays is how many ids may have the same hash before one of them is
	// forgotten.
	internWays = 4
	// internSlots is how many recently seen ids an interner keeps: more than
	// the items that are usually in progress at a time. With ids of the
	// largest length it holds 320 KiB.
	internSlots = 512
)

// interner gives equal bytes the same string, so that an id that comes again
// and again costs no allocation. It forgets the oldest id when another one
// needs its place.
type interner struct {
	seed  maphash.Seed
	slots [][internWays]string
}

func (n *interner) string(b []byte) string {
	if t, ok := knownEventTypes[string(b)]; ok {
		return string(t)
	}
	if n.slots == nil {
		n.seed = maphash.MakeSeed()
		n.slots = make([][internWays]string, internSlots/internWays)
	}
	ways := &n.slots[maphash.Bytes(n.seed, b)%(internSlots/internWays)]
	for _, s := range ways {
		if s == string(b) {
			return s
		}
	}
	copy(ways[1:], ways[:])
	ways[0] = string(b)
	return ways[0]
}
