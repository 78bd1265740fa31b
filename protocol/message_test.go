package protocol

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func eventLine(seq int, text string) []byte {
	return fmt.Appendf(nil, `{"schema":"paperclip.fake_harness.message.v1","messageSeq":%d,"type":"event","payload":{"eventType":"item.delta","turnId":"turn_1","itemId":"item_7","payload":{"delta":%q}}}`, seq, text)
}

func BenchmarkHarnessMessage(b *testing.B) {
	for _, c := range []struct {
		name string
		line []byte
	}{
		{"event200", eventLine(1234567, "some words of the model")},
		{"log", []byte(`{"schema":"paperclip.fake_harness.message.v1","messageSeq":17,"type":"log","payload":{"stream":"stdout","text":"compiling package one of many more to come"}}`)},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := NewDecoder()
			var m HarnessMessage
			b.ReportAllocs()
			b.SetBytes(int64(len(c.line)))
			for b.Loop() {
				if fault := d.HarnessMessage(c.line, &m); fault != nil {
					b.Fatal(fault)
				}
			}
		})
	}
}

func BenchmarkAppendEvent(b *testing.B) {
	e := &Event{
		SourceEventID: "event_run-1_1234567", SourceSeq: 1234567, SourceInstanceID: "runner-1", RunID: "run-1",
		NormalizedSessionID: "session-1", TurnID: "turn_1", ItemID: "item_7", EventType: EventItemDelta,
		Priority: PriorityBulk, EmittedAt: "2026-01-02T03:04:05.678Z", Payload: []byte(`{"delta":"some words of the model"}`),
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendEvent(dst[:0], e)
	}
}

// head is a line of a harness up to its payload.
func head(t MessageType) string {
	return `{"schema":"paperclip.harness.message.v1","messageSeq":7,"type":"` + string(t) + `","payload":`
}

func decodeMessage(t *testing.T, line string) HarnessMessage {
	t.Helper()
	var m HarnessMessage
	if fault := NewDecoder().HarnessMessage([]byte(line), &m); fault != nil {
		t.Fatalf("%.200s: %v", line, fault)
	}
	return m
}

const sampleRequest = `{"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":"r1","type":"permission","status":"pending","prompt":"May I?","choices":[{"key":"allow"}],"expiresAt":"2026-01-02T03:04:05Z","more":1}`

func TestHarnessMessage(t *testing.T) {
	expires := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		line string
		want HarnessMessage
	}{
		{head("event") + `{"eventType":"item.delta","turnId":"t","itemId":"i","payload":{"delta":"x"},"extra":[]}}`, HarnessMessage{
			Type: MessageEvent, Event: HarnessEvent{EventType: EventItemDelta, TurnID: "t", ItemID: "i", Payload: []byte(`{"delta":"x"}`)},
		}},
		{head("event") + `{"eventType":"mcp_app.\u0061"}}`, HarnessMessage{
			Type: MessageEvent, Event: HarnessEvent{EventType: "mcp_app.a", Payload: []byte(`{}`)},
		}},
		{head("event") + `{"payload":{"requestId":"r\u0031"},"eventType":"runtime_request.resolved"}}`, HarnessMessage{
			Type: MessageEvent, RequestID: "r1", Event: HarnessEvent{EventType: EventRequestResolved, Payload: []byte(`{"requestId":"r\u0031"}`)},
		}},
		{head("event") + `{"payload":{"requestId":7},"eventType":"runtime_request.expired"}}`, HarnessMessage{
			Type: MessageEvent, Event: HarnessEvent{EventType: EventRequestExpired, Payload: []byte(`{"requestId":7}`)},
		}},
		{head("event") + `{"payload":{"requestId":"r1"},"eventType":"item.started"}}`, HarnessMessage{
			Type: MessageEvent, Event: HarnessEvent{EventType: EventItemStarted, Payload: []byte(`{"requestId":"r1"}`)},
		}},
		{head("log") + `{"stream":"stderr","text":"a\tb"}}`, HarnessMessage{Type: MessageLog, Log: Log{Stream: "stderr", Text: "a\tb"}}},
		{head("log") + `{"text":"","stream":"stdout"}}`, HarnessMessage{Type: MessageLog, Log: Log{Stream: "stdout"}}},
		{head("ready") + `{"version":"1.2","driverKind":"acp","capabilities":["steer"]}}`, HarnessMessage{
			Type: MessageReady, Ready: &Ready{Version: "1.2", DriverKind: "acp", Capabilities: []byte(`["steer"]`)},
		}},
		{head("ready") + `{"version":""}}`, HarnessMessage{Type: MessageReady, Ready: &Ready{}}},
		{head("request") + `{"request":` + sampleRequest + `}}`, HarnessMessage{
			Type: MessageRequest, Raw: []byte(sampleRequest), Request: &Request{
				Schema: SchemaRequest, RequestKind: "runtime", RequestID: "r1", Type: RequestPermission, Status: "pending",
				Prompt: "May I?", Choices: []byte(`[{"key":"allow"}]`), ExpiresAt: &expires,
			},
		}},
		{head("result") + `{"result":{"anything":[1]}}}`, HarnessMessage{Type: MessageResult, Raw: []byte(`{"anything":[1]}`)}},
		{head("terminal") + `{"terminal":{}}}`, HarnessMessage{Type: MessageTerminal, Raw: []byte(`{}`)}},
		{head("diagnostic") + ` { "a" : 1 } }`, HarnessMessage{Type: MessageDiagnostic, Raw: []byte(`{ "a" : 1 }`)}},
		{`{"payload":{"text":"x","stream":"stdout"},"type":"log","messageSeq":70e-1,"\u0073chema":"paperclip.harness.message.v1","x":{"y":1}}`, HarnessMessage{
			Type: MessageLog, Log: Log{Stream: "stdout", Text: "x"},
		}},
	} {
		c.want.Family, c.want.Seq = FamilyHarness, 7
		if got := decodeMessage(t, c.line); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s\n got %+v\nwant %+v", c.line, got, c.want)
		}
	}
	fake := strings.Replace(head("diagnostic")+`{}}`, "paperclip.harness", "paperclip.fake_harness", 1)
	if m := decodeMessage(t, fake); m.Family != FamilyFake {
		t.Errorf("the family is %v, want the fake", m.Family)
	}
}

func TestHarnessMessageFaults(t *testing.T) {
	long := strings.Repeat("é", MaxIDLen+1)
	request := func(old, with string) string {
		return head("request") + `{"request":` + strings.Replace(sampleRequest, old, with, 1) + `}}`
	}
	for _, c := range []struct {
		line string
		code Code
	}{
		{`{}`, CodeHarnessSchema},
		{strings.Replace(head("log"), ".v1", ".v2", 1) + `{"stream":"stdout","text":""}}`, CodeHarnessSchema},
		{strings.Replace(head("log"), "schema", "Schema", 1) + `{"stream":"stdout","text":""}}`, CodeHarnessSchema},
		{strings.Replace(head("diagnostic"), ":7", ":0", 1) + `{}}`, CodeHarnessMessage},
		{strings.Replace(head("diagnostic"), ":7", ":7.5", 1) + `{}}`, CodeHarnessMessage},
		{strings.Replace(head("diagnostic"), ":7", `:"7"`, 1) + `{}}`, CodeHarnessMessage},
		{strings.Replace(head("diagnostic"), ":7", `:9007199254740992`, 1) + `{}}`, CodeHarnessMessage},
		{strings.Replace(head("diagnostic"), "messageSeq", `messageseq`, 1) + `{}}`, CodeHarnessMessage},
		{head("shout") + `{}}`, CodeHarnessMessage},
		{head("") + `{}}`, CodeHarnessMessage},
		{head("diagnostic") + `null}`, CodeHarnessMessage},
		{head("diagnostic") + `[]}`, CodeHarnessMessage},
		{strings.Replace(head("diagnostic"), "payload", "Payload", 1) + `{}}`, CodeHarnessMessage},
		{head("event") + `{}}`, CodeHarnessMessage},
		{head("event") + `{"eventType":""}}`, CodeHarnessMessage},
		{head("event") + `{"eventType":"` + long + `"}}`, CodeHarnessMessage},
		{head("event") + `{"eventType":"item.delta","turnId":""}}`, CodeHarnessMessage},
		{head("event") + `{"eventType":"item.delta","turnId":null}}`, CodeHarnessMessage},
		{head("event") + `{"eventType":"item.delta","itemId":"` + long + `"}}`, CodeHarnessMessage},
		{head("event") + `{"eventType":"item.delta","payload":null}}`, CodeHarnessMessage},
		{head("event") + `{"eventType":"item.delta","payload":[]}}`, CodeHarnessMessage},
		{head("log") + `{"stream":"stdin","text":""}}`, CodeHarnessMessage},
		{head("log") + `{"stream":"stdout"}}`, CodeHarnessMessage},
		{head("log") + `{"stream":"stdout","text":1}}`, CodeHarnessMessage},
		{head("ready") + `{}}`, CodeHarnessMessage},
		{head("ready") + `{"version":1}}`, CodeHarnessMessage},
		{head("ready") + `{"version":"1","driverKind":""}}`, CodeHarnessMessage},
		{head("ready") + `{"version":"1","capabilities":"steer"}}`, CodeHarnessMessage},
		{head("ready") + `{"version":"1","capabilities":null}}`, CodeHarnessMessage},
		{head("result") + `{"result":null}}`, CodeHarnessMessage},
		{head("result") + `{}}`, CodeHarnessMessage},
		{head("terminal") + `{"terminal":[]}}`, CodeHarnessMessage},
		{head("request") + `{"request":7}}`, CodeHarnessMessage},
		{request(`"runtime"`, `"other"`), CodeHarnessMessage},
		{request(`"r1"`, `""`), CodeHarnessMessage},
		{request(`"permission"`, `"wish"`), CodeHarnessMessage},
		{request(`"pending"`, `"resolved"`), CodeHarnessMessage},
		{request(`"May I?"`, `null`), CodeHarnessMessage},
		{request(`[{"key":"allow"}]`, `{}`), CodeHarnessMessage},
		{request(`"2026-01-02T03:04:05Z"`, `"soon"`), CodeHarnessMessage},
		{request(`request.v1`, `request.v2`), CodeHarnessMessage},
		{head("event") + `{"eventType":"item.delta","eventType":"item.delta"}}`, CodeHarnessInvalidJSON},
		{head("event") + `{"eventType":"item.delta","payload":{"a":{"b":1,"b":1}}}}`, CodeHarnessInvalidJSON},
		{head("event") + `{"eventType":"item.delta","payload":{"n":1e999}}}`, CodeHarnessInvalidJSON},
		{head("event") + `{"eventType":"item.delta","payload":{"n":` + nested(MaxDepth-2) + `}}}`, CodeHarnessInvalidJSON},
	} {
		m := HarnessMessage{Seq: 99, RequestID: "stale"}
		fault := NewDecoder().HarnessMessage([]byte(c.line), &m)
		if fault == nil || fault.Code != c.code || fault.Detail == "" {
			t.Errorf("%.200s: got %v, want %s", c.line, fault, c.code)
		}
		if !reflect.DeepEqual(m, HarnessMessage{}) {
			t.Errorf("%.200s: a fault and a message as well: %+v", c.line, m)
		}
	}
	decodeMessage(t, head("event")+`{"eventType":"item.delta","payload":{"n":`+nested(MaxDepth-3)+`}}}`)
}

// F12: numbers are passed on digit for digit.
func TestF12Numbers(t *testing.T) {
	payload := `{"a":9007199254740993,"b":18446744073709551615,"c":1234567890123456789012345678901234567890,"d":1.10,"e":1E5,"f":-0}`
	m := decodeMessage(t, head("event")+`{"eventType":"item.delta","payload":`+payload+`}}`)
	line := AppendEvent(nil, &Event{EventType: m.Event.EventType, Payload: m.Event.Payload})
	if !strings.Contains(string(line), `"payload":`+payload+`}}}`) {
		t.Errorf("%s is not in %s", payload, line)
	}
}

// F22: what is no message is a violation and never a message of zeros.
func TestF22NoMessage(t *testing.T) {
	d := NewDecoder()
	for _, line := range []string{"npm WARN deprecated", "undefined", "123", "[]", "null", `"text"`, "true", "{", ""} {
		m := HarnessMessage{Type: MessageLog}
		fault := d.HarnessMessage([]byte(line), &m)
		if fault == nil || fault.Code != CodeHarnessInvalidJSON || !reflect.DeepEqual(m, HarnessMessage{}) {
			t.Errorf("%q: got %v and %+v", line, fault, m)
		}
	}
	var m HarnessMessage
	if fault := d.HarnessMessage([]byte("{}"), &m); fault == nil || fault.Code != CodeHarnessSchema {
		t.Errorf("{}: got %v", fault)
	}
}

// F23: unusual code points stay what they are, in a payload byte for byte.
func TestF23CodePoints(t *testing.T) {
	text := "\u2028\u2029\u0085<>&\ufeff\x7f😀"
	payload := `{"t":"` + text + `\u0000\ud83d\ude00\/"}`
	m := decodeMessage(t, head("event")+`{"eventType":"item.delta","payload":`+payload+`}}`)
	if string(m.Event.Payload) != payload {
		t.Errorf("got %q, want %q", m.Event.Payload, payload)
	}
	m = decodeMessage(t, head("log")+`{"stream":"stdout","text":"`+text+`\u0000"}}`)
	if m.Log.Text != text+"\x00" {
		t.Errorf("got %q, want %q", m.Log.Text, text+"\x00")
	}
}

// F24: text that is not one strict object is a violation whose detail gives
// the length of the line and none of its content.
func TestF24Violations(t *testing.T) {
	good := head("log") + `{"stream":"stdout","text":"hush"}}`
	for _, line := range []string{
		strings.Replace(good, "hush", "hu\nsh", 1), strings.Replace(good, "hush", "hu\x00sh", 1), strings.Replace(good, "hush", "hu\xffsh", 1),
		strings.Replace(good, "hush", `hush\ud800`, 1), good + good, good + " hush", good + ",", good[:len(good)-1],
	} {
		var m HarnessMessage
		fault := NewDecoder().HarnessMessage([]byte(line), &m)
		if fault == nil || fault.Code != CodeHarnessInvalidJSON {
			t.Errorf("%q: got %v", line, fault)
			continue
		}
		if strings.Contains(fault.Detail, "hush") || !strings.Contains(fault.Detail, fmt.Sprint(len(line))) {
			t.Errorf("the detail is %q, want the length %d and no content", fault.Detail, len(line))
		}
	}
	for _, line := range []string{strings.Replace(good, "stdout", "hush", 1), strings.Replace(good, `"log"`, `"hush"`, 1), head("request") + `{"request":{"schema":"hush"}}}`} {
		var m HarnessMessage
		if fault := NewDecoder().HarnessMessage([]byte(line), &m); fault == nil || strings.Contains(fault.Detail, "hush") {
			t.Errorf("got %v, want a fault without content", fault)
		}
	}
}

// The hot path costs no allocation, also while ids take turns.
func TestHarnessMessageAllocatesNothing(t *testing.T) {
	var lines [][]byte
	for i := range 8 {
		lines = append(lines,
			fmt.Appendf(nil, `%s{"eventType":"item.delta","turnId":"turn_%d","itemId":"item_%d","payload":{"delta":"x","requestId":"r"}}}`, head("event"), i/4, i),
			fmt.Appendf(nil, `%s{"eventType":"mcp_app.progress","payload":{"n":[1.5,{"a":{}}]}}}`, head("event")),
			fmt.Appendf(nil, `%s{"stream":"stdout","text":"line %d"}}`, head("log"), i))
	}
	d := NewDecoder()
	var m HarnessMessage
	pass := func() {
		for _, line := range lines {
			if fault := d.HarnessMessage(line, &m); fault != nil {
				t.Fatal(fault)
			}
		}
	}
	pass()
	if n := testing.AllocsPerRun(50, pass); n > 0 {
		t.Errorf("%d lines cost %v allocations", len(lines), n)
	}
}

// What was decoded does not change when the decoder goes on, but for what is
// documented to be a slice of the line.
func TestHarnessMessageOwnsItsIDs(t *testing.T) {
	d := NewDecoder()
	line := []byte(head("event") + `{"eventType":"runtime_request.resolved","turnId":"turn_1","itemId":"item\u005f1","payload":{"requestId":"r1"}}}`)
	var m, other HarnessMessage
	if fault := d.HarnessMessage(line, &m); fault != nil {
		t.Fatal(fault)
	}
	ready := []byte(head("ready") + `{"version":"v1","driverKind":"kind","capabilities":["steer"]}}`)
	var r HarnessMessage
	if fault := d.HarnessMessage(ready, &r); fault != nil {
		t.Fatal(fault)
	}
	clear(line)
	clear(ready)
	for i := range 3 * internSlots {
		next := fmt.Appendf(nil, `%s{"eventType":"item.delta","turnId":"other_%d","itemId":"\u0078%d"}}`, head("event"), i, i)
		if fault := d.HarnessMessage(next, &other); fault != nil {
			t.Fatal(fault)
		}
	}
	if m.Event.TurnID != "turn_1" || m.Event.ItemID != "item_1" || m.RequestID != "r1" || m.Event.EventType != EventRequestResolved {
		t.Errorf("the message has become %+v", m)
	}
	if r.Ready.Version != "v1" || r.Ready.DriverKind != "kind" || string(r.Ready.Capabilities) != `["steer"]` {
		t.Errorf("ready has become %+v", r.Ready)
	}
}

func FuzzHarnessMessage(f *testing.F) {
	f.Add([]byte(head("event") + `{"eventType":"item.delta","turnId":"t","payload":{"a":[1,"\u0000"]}}}`))
	f.Add([]byte(head("log") + `{"stream":"stdout","text":"x"}}`))
	f.Add([]byte(head("request") + `{"request":` + sampleRequest + `}}`))
	f.Add([]byte(head("ready") + `{"version":"1","capabilities":{"steer":true}}}`))
	f.Add([]byte(head("result") + `{"result":{}}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		d := NewDecoder()
		var m HarnessMessage
		fault := d.HarnessMessage(line, &m)
		if fault != nil {
			if !reflect.DeepEqual(m, HarnessMessage{}) {
				t.Fatalf("a fault and a message as well: %+v", m)
			}
			if invalid := fault.Code == CodeHarnessInvalidJSON; !invalid && CheckJSON(line) != nil {
				t.Fatalf("%q is no JSON, but the fault is %v", line, fault)
			}
			return
		}
		if err := CheckJSON(line); err != nil {
			t.Fatalf("%q was taken: %v", line, err)
		}
		printed := AppendMessage(nil, m.Family, m.Seq, m.Type, payloadOf(&m))
		var again HarnessMessage
		if fault := d.HarnessMessage(printed[:len(printed)-1], &again); fault != nil {
			t.Fatalf("%q is printed as %q: %v", line, printed, fault)
		}
		if !reflect.DeepEqual(m, again) {
			t.Fatalf("%q is printed as %q\n got %+v\nwant %+v", line, printed, again, m)
		}
	})
}

// payloadOf prints the payload of a message that was decoded.
func payloadOf(m *HarnessMessage) []byte {
	switch m.Type {
	case MessageEvent:
		return AppendHarnessEvent(nil, m.Event.EventType, m.Event.TurnID, m.Event.ItemID, m.Event.Payload)
	case MessageLog:
		return append(appendText(appendText(nil, `{"stream":`, m.Log.Stream), `,"text":`, m.Log.Text), '}')
	case MessageReady:
		out := appendText(nil, `{"version":`, m.Ready.Version)
		if m.Ready.DriverKind != "" {
			out = appendText(out, `,"driverKind":`, m.Ready.DriverKind)
		}
		if m.Ready.Capabilities != nil {
			out = fmt.Appendf(out, `,"capabilities":%s`, m.Ready.Capabilities)
		}
		return append(out, '}')
	case MessageDiagnostic:
		return m.Raw
	}
	return fmt.Appendf(nil, `{%q:%s}`, m.Type, m.Raw)
}
