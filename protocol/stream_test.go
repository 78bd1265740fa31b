package protocol

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func sampleEvent() *Event {
	return &Event{
		Schema: SchemaEvent, SourceEventID: "event_run-1_007", SourceSeq: 7, SourceInstanceID: "runner-1",
		SourceKind: SourceKindRunner, RunID: "run-1", NormalizedSessionID: "session-1", TurnID: "turn_1", ItemID: "item_1",
		EventType: EventItemDelta, SchemaVersion: EventSchemaVersion, Priority: PriorityBulk,
		EmittedAt: "2026-01-02T03:04:05.678Z", Payload: []byte(`{"delta":"a\/b", "n":1.0}`),
	}
}

const sampleEventLine = `{"schema":"paperclip.runner.stream.v1","message":{"kind":"event","event":{"schema":"paperclip.prp.event.v1",` +
	`"sourceEventId":"event_run-1_007","sourceSeq":7,"sourceInstanceId":"runner-1","sourceKind":"runner","runId":"run-1",` +
	`"normalizedSessionId":"session-1","turnId":"turn_1","itemId":"item_1","eventType":"item.delta","schemaVersion":1,"priority":2,` +
	`"emittedAt":"2026-01-02T03:04:05.678Z","payload":{"delta":"a\/b", "n":1.0}}}}` + "\n"

// The lines as spec section 3 has them, members in its order.
func TestAppendStream(t *testing.T) {
	if got := string(AppendEvent(nil, sampleEvent())); got != sampleEventLine {
		t.Errorf("event:\n got %swant %s", got, sampleEventLine)
	}
	bare := sampleEvent()
	bare.Schema, bare.SourceKind, bare.SchemaVersion, bare.TurnID, bare.ItemID, bare.Payload = "", "", 0, "", "", nil
	want := strings.Replace(sampleEventLine, `"turnId":"turn_1","itemId":"item_1",`, "", 1)
	want = strings.Replace(want, `{"delta":"a\/b", "n":1.0}`, "{}", 1)
	if got := string(AppendEvent(nil, bare)); got != want {
		t.Errorf("event with defaults:\n got %swant %s", got, want)
	}
	for _, c := range []struct {
		receipt Receipt
		want    string
	}{
		{
			Receipt{CommandID: "c", ControllerSeq: 2, Status: ReceiptAccepted, Detail: "d", Code: "never"},
			`{"schema":"paperclip.runner.stream.v1","message":{"kind":"command_receipt","commandId":"c","controllerSeq":2,"status":"accepted","detail":"d"}}` + "\n",
		},
		{
			Receipt{CommandID: "c", ControllerSeq: 2, Status: ReceiptRejected, Detail: `say "no"`, Code: CodeDraining},
			`{"schema":"paperclip.runner.stream.v1","message":{"kind":"command_receipt","commandId":"c","controllerSeq":2,"status":"rejected","detail":"say \"no\"","code":"draining"}}` + "\n",
		},
	} {
		if got := string(AppendReceipt(nil, &c.receipt)); got != c.want {
			t.Errorf("receipt:\n got %swant %s", got, c.want)
		}
	}
	d := &Diagnostic{Level: LevelError, Message: "m", Code: CodeInvalidJSON}
	want = `{"schema":"paperclip.runner.stream.v1","message":{"kind":"diagnostic","level":"error","message":"m","code":"invalid_json"}}` + "\n"
	if got := string(AppendDiagnostic(nil, d)); got != want {
		t.Errorf("diagnostic:\n got %swant %s", got, want)
	}
}

func TestAppendHarnessLines(t *testing.T) {
	want := `{"schema":"paperclip.fake_harness.command.v1","commandId":"c","type":"turn.start","payload":{"a": 1}}` + "\n"
	if got := string(AppendHarnessCommand(nil, FamilyFake, "c", TurnStart, []byte(`{"a": 1}`))); got != want {
		t.Errorf("got %swant %s", got, want)
	}
	want = `{"schema":"paperclip.harness.message.v1","messageSeq":3,"type":"log","payload":{}}` + "\n"
	if got := string(AppendMessage(nil, FamilyHarness, 3, MessageLog, nil)); got != want {
		t.Errorf("got %swant %s", got, want)
	}
	want = `{"eventType":"item.delta","turnId":"t","itemId":"é","payload":{"a": 1}}`
	if got := string(AppendHarnessEvent(nil, EventItemDelta, "t", "é", []byte(`{"a": 1}`))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want = `{"eventType":"session.closed","payload":{}}`
	if got := string(AppendHarnessEvent(nil, EventSessionClosed, "", "", nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Append adds to what is there and allocates nothing where there is room.
func TestAppendAllocatesNothing(t *testing.T) {
	e, r, d := sampleEvent(), &Receipt{CommandID: "é", Status: ReceiptRejected}, &Diagnostic{Message: "m\n"}
	buf := make([]byte, 0, 4096)
	n := testing.AllocsPerRun(50, func() {
		out := AppendDiagnostic(AppendReceipt(AppendEvent(buf, e), r), d)
		out = AppendHarnessCommand(out, FamilyFake, "c", TurnStart, e.Payload)
		AppendMessage(out, FamilyFake, 1, MessageLog, e.Payload)
	})
	if n > 0 {
		t.Errorf("five lines cost %v allocations", n)
	}
	if got := string(AppendEvent([]byte("x\n"), e)); got != "x\n"+sampleEventLine {
		t.Errorf("what stood before has become %.20q", got)
	}
}

func TestStream(t *testing.T) {
	d := NewDecoder()
	line := []byte(sampleEventLine)
	m, err := d.Stream(line)
	if err != nil {
		t.Fatal(err)
	}
	clear(line)
	if want := (StreamMessage{Kind: KindEvent, Event: sampleEvent()}); !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, want %+v; it must not be part of the line", m.Event, want.Event)
	}
	for _, r := range []*Receipt{
		{CommandID: "c", ControllerSeq: 1, Status: ReceiptDuplicate},
		{CommandID: "c", ControllerSeq: 1, Status: ReceiptRejected, Code: CodeDraining, Detail: "d"},
	} {
		m, err := d.Stream(AppendReceipt(nil, r))
		if err != nil || !reflect.DeepEqual(m, StreamMessage{Kind: KindReceipt, Receipt: r}) {
			t.Errorf("got %+v, %v; want %+v", m.Receipt, err, r)
		}
	}
	diag := &Diagnostic{Level: LevelInfo, Message: "é\x00", Code: "x"}
	m, err = d.Stream(AppendDiagnostic(nil, diag))
	if err != nil || !reflect.DeepEqual(m, StreamMessage{Kind: KindDiagnostic, Diagnostic: diag}) {
		t.Errorf("got %+v, %v; want %+v", m.Diagnostic, err, diag)
	}
	extra := strings.Replace(sampleEventLine, `"turnId"`, `"turnID":7,"new":{},"turnId"`, 1)
	if m, err := d.Stream([]byte(extra)); err != nil || !reflect.DeepEqual(m.Event, sampleEvent()) {
		t.Errorf("unknown members: got %+v, %v", m.Event, err)
	}
}

func TestStreamFaults(t *testing.T) {
	receipt := string(AppendReceipt(nil, &Receipt{CommandID: "c", ControllerSeq: 1, Status: ReceiptRejected, Code: CodeDraining}))
	accepted := string(AppendReceipt(nil, &Receipt{CommandID: "c", ControllerSeq: 1, Status: ReceiptAccepted}))
	diag := string(AppendDiagnostic(nil, &Diagnostic{Level: LevelInfo}))
	for _, c := range []struct{ line, old, with, path string }{
		{sampleEventLine, "stream.v1", "stream.v2", "schema"},
		{sampleEventLine, `"message":{`, `"message":null,"x":{`, "message"},
		{sampleEventLine, `"kind":"event"`, `"kind":"other"`, "message.kind"},
		{sampleEventLine, `"event":{`, `"Event":{`, "message.event"},
		{sampleEventLine, "event.v1", "event.v2", "message.event.schema"},
		{sampleEventLine, `"event_run-1_007"`, `""`, "message.event.sourceEventId"},
		{sampleEventLine, `:7,`, `:0,`, "message.event.sourceSeq"},
		{sampleEventLine, `:7,`, `:7.5,`, "message.event.sourceSeq"},
		{sampleEventLine, `"runner-1"`, `"` + strings.Repeat("r", MaxRunIDLen+1) + `"`, "message.event.sourceInstanceId"},
		{sampleEventLine, `"runner"`, `"harness"`, "message.event.sourceKind"},
		{sampleEventLine, `"run-1"`, `null`, "message.event.runId"},
		{sampleEventLine, `"session-1"`, `""`, "message.event.normalizedSessionId"},
		{sampleEventLine, `"turn_1"`, `null`, "message.event.turnId"},
		{sampleEventLine, `"item.delta"`, `""`, "message.event.eventType"},
		{sampleEventLine, `"schemaVersion":1`, `"schemaVersion":2`, "message.event.schemaVersion"},
		{sampleEventLine, `"priority":2`, `"priority":3`, "message.event.priority"},
		{sampleEventLine, `.678Z`, `Z`, "message.event.emittedAt"},
		{sampleEventLine, `"payload":{`, `"payload":[],"x":{`, "message.event.payload"},
		{receipt, `"code":"draining"`, `"more":1`, "message.code"},
		{receipt, `"draining"`, `null`, "message.code"},
		{receipt, `"rejected"`, `"refused"`, "message.status"},
		{receipt, `"rejected"`, `"accepted"`, "message.code"},
		{receipt, `"detail"`, `"details"`, "message.detail"},
		{accepted, `"controllerSeq":1`, `"controllerSeq":"1"`, "message.controllerSeq"},
		{diag, `"info"`, `"fatal"`, "message.level"},
		{diag, `"message":""`, `"message":7`, "message.message"},
		{diag, `"code"`, `"Code"`, "message.code"},
	} {
		m, err := NewDecoder().Stream([]byte(strings.Replace(c.line, c.old, c.with, 1)))
		var shape *FieldError
		if !errors.As(err, &shape) || shape.Path != c.path {
			t.Errorf("%s instead of %s: got %v, want a fault at %s", c.with, c.old, err, c.path)
		}
		if m != (StreamMessage{}) {
			t.Errorf("%s instead of %s: a fault and a message as well", c.with, c.old)
		}
	}
	for _, line := range append(invalidJSON(), "null", "[]", sampleEventLine+sampleEventLine) {
		if _, err := NewDecoder().Stream([]byte(line)); err == nil {
			t.Errorf("%.60q was taken", line)
		}
	}
}

func TestHarnessCommand(t *testing.T) {
	line := AppendHarnessCommand(nil, FamilyHarness, "c1", TurnStart, []byte(`{"a":[1]}`))
	c, family, err := NewDecoder().HarnessCommand(line)
	if err != nil {
		t.Fatal(err)
	}
	clear(line)
	want := HarnessCommand{Schema: "paperclip.harness.command.v1", CommandID: "c1", Type: TurnStart, Payload: []byte(`{"a":[1]}`)}
	if family != FamilyHarness || !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v of %v, want %+v; it must not be part of the line", c, family, want)
	}
	good := string(AppendHarnessCommand(nil, FamilyFake, "c1", TurnStart, nil))
	if c, family, err := NewDecoder().HarnessCommand([]byte(strings.Replace(good, `,"payload":{}`, "", 1))); err != nil || family != FamilyFake || string(c.Payload) != "{}" {
		t.Errorf("without a payload: got %+v, %v, %v", c, family, err)
	}
	for _, c := range [][2]string{
		{"command.v1", "message.v1"}, {`"c1"`, `""`}, {`"commandId"`, `"id"`}, {`"turn.start"`, `7`}, {`{}`, `null`}, {`{}`, `1`}, {"}\n", ""},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if got, family, err := NewDecoder().HarnessCommand([]byte(bad)); err == nil || family != FamilyNone || !reflect.DeepEqual(got, HarnessCommand{}) {
			t.Errorf("%s: got %+v, %v, %v", bad, got, family, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(sampleEventLine))
	f.Add(AppendReceipt(nil, &Receipt{CommandID: "c", ControllerSeq: 1, Status: ReceiptRejected, Code: CodeDraining}))
	f.Add(AppendDiagnostic(nil, &Diagnostic{Level: LevelInfo, Message: "\u2028"}))
	f.Fuzz(func(t *testing.T, line []byte) {
		d := NewDecoder()
		m, err := d.Stream(line)
		if err != nil {
			if m != (StreamMessage{}) {
				t.Fatalf("a fault and a message as well: %+v", m)
			}
			return
		}
		var printed []byte
		switch m.Kind {
		case KindEvent:
			printed = AppendEvent(nil, m.Event)
		case KindReceipt:
			printed = AppendReceipt(nil, m.Receipt)
		case KindDiagnostic:
			printed = AppendDiagnostic(nil, m.Diagnostic)
		}
		again, err := d.Stream(printed)
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%q is printed as %q: %v", line, printed, err)
		}
	})
}

// AppendString gives valid JSON for any bytes, and back the same text.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c/", "\x00\x1f\x7f\b\f\n\r\t", "é€😀\u2028", "a\xffb\xc3", "\xed\xa0\x80", "<>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := AppendString(nil, s)
		if err := CheckJSON(quoted); err != nil {
			t.Fatalf("%q is printed as %q: %v", s, quoted, err)
		}
		if got, want := string(appendUnquoted(nil, quoted)), string([]rune(s)); got != want {
			t.Fatalf("%q is printed as %q, which is %q", s, quoted, got)
		}
		if utf8.ValidString(s) && len(quoted) > 2+6*len(s) {
			t.Fatalf("%q is printed as %q", s, quoted)
		}
	})
}

func TestAppendStringEscapes(t *testing.T) {
	want := `"\"\\/\b\t\n\f\r\u0000\u001f` + "\x7f<>&\u2028\ufffd" + `"`
	if got := string(AppendString(nil, "\"\\/\b\t\n\f\r\x00\x1f\x7f<>&\u2028\xff")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
