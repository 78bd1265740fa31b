package taskrun

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"prp/protocol"
)

// TestReport enumerates what is known of a run: cancel wins over everything,
// then the run's own success, then the signal, then the failures; another end at
// the server is not reported over.
func TestReport(t *testing.T) {
	succeeded, failed := &protocol.Terminal{}, &protocol.Terminal{}
	succeeded.RunTerminalState, succeeded.Reconciliation.Reason = protocol.RunSucceeded, protocol.ReasonSuccess
	failed.RunTerminalState, failed.Reconciliation.Reason = protocol.RunFailed, protocol.ReasonProcessFailed
	both := []bool{false, true}
	for _, taken := range both {
		for _, cancelled := range both {
			for _, signalled := range both {
				for _, fault := range []string{"", "a step failed"} {
					for _, terminal := range []*protocol.Terminal{nil, failed, succeeded} {
						f := facts{taken: taken, cancelled: cancelled, signalled: signalled, fault: fault, terminal: terminal, seen: newWatched(), ended: time.Now()}
						want, text := "FAILED", "The harness process failed."
						switch {
						case cancelled:
							want, text = "CANCELED", "<none>"
						case fault == "" && terminal == succeeded:
							want, text = "SUCCEEDED", "<none>"
						case signalled:
							text = textSignalled
						case fault != "":
							text = fault
						case terminal == nil:
							text = "The runner ended without saying how the run ended."
						}
						r, tell := f.report()
						got := "<none>"
						if r.ErrorMessage != nil {
							got = *r.ErrorMessage
						}
						if tell == taken || tell && (r.Status != want || got != text || (r.Output != nil) != (want == "SUCCEEDED")) {
							t.Errorf("%+v: %s %q, want %s %q", f, r.Status, got, want, text)
						}
					}
				}
			}
		}
	}
}

// TestBounds: what a run says is bounded, and never cut inside a character.
func TestBounds(t *testing.T) {
	f := facts{fault: "x" + strings.Repeat("\u2603", 3000)}
	r, _ := f.report()
	if m := *r.ErrorMessage; len(m) > maxErrorMessage+30 || !utf8.ValidString(m) || !strings.HasSuffix(m, "more bytes]") {
		t.Errorf("the message has %d bytes and ends with %q", len(m), m[len(m)-30:])
	}
	w := newWatched()
	event := func(kind protocol.EventType, payload string) string {
		return w.apply(&protocol.Event{EventType: kind, TurnID: "t", ItemID: "m", Payload: []byte(payload)})
	}
	streamed := 0
	piece := strings.Repeat("\u2603", 10_000)
	for range 40 {
		streamed += len(event(protocol.EventItemDelta, fmt.Sprintf(`{"kind":"message","delta":%q}`, piece)))
	}
	event(protocol.EventItemCompleted, `{"kind":"message"}`)
	if out := w.answer(); streamed != 40*len(piece) || len(out) > maxOutput+30 || !utf8.ValidString(out) || !strings.HasSuffix(out, "more bytes]") {
		t.Errorf("%d bytes were streamed, the output has %d", streamed, len(out))
	}
	for i := range maxItems + 10 {
		w.apply(&protocol.Event{EventType: protocol.EventItemStarted, ItemID: fmt.Sprint(i), Payload: []byte(`{"kind":"command"}`)})
	}
	if len(w.items) > maxItems {
		t.Errorf("%d items are followed", len(w.items))
	}
}

// TestNames: a member in other letters is not the one that is meant (prp.md
// section 1), and one of another type takes nothing else away.
func TestNames(t *testing.T) {
	w := newWatched()
	for _, e := range []struct {
		kind    protocol.EventType
		payload string
	}{
		{protocol.EventHarnessDiag, `{"code":"c","message":"m","Message":"x"}`},
		{protocol.EventResultProposed, `{"Result":{"summary":"x"},"text":7,"result":{"summary":"s","Summary":"x","StructuredOutput":1}}`},
		{protocol.EventItemCompleted, `{"kind":"message","Kind":"command","text":"t","TEXT":"x","replay":false,"Replay":true}`},
	} {
		w.apply(&protocol.Event{EventType: e.kind, ItemID: "i", Payload: []byte(e.payload)})
	}
	if w.complaint != "c: m" || w.summary != "s" || w.structured != "" || w.output == nil || *w.output != "t" {
		t.Errorf("the complaint is %q, the summary %q, structured %q, the output %v", w.complaint, w.summary, w.structured, w.output)
	}
}
