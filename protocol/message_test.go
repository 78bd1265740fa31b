package protocol

import (
	"fmt"
	"testing"
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
