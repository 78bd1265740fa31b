package taskrun

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"prp/controller"
	"prp/controller/bridge"
	"prp/protocol"
)

// veilRun feeds lines to a veil and keeps what comes out.
type veilRun struct {
	*veil
	seq    int64
	lines  []string
	events []*protocol.Event
}

func newVeilRun(secrets ...string) *veilRun {
	r := &veilRun{}
	r.veil = newVeil(bridge.NewMasker(secrets), func(line []byte, e *protocol.Event) {
		r.lines = append(r.lines, string(line))
		if e != nil {
			r.events = append(r.events, e)
		}
	})
	return r
}

func (r *veilRun) event(t protocol.EventType, item, payload string) {
	r.seq++
	line := protocol.AppendEvent(nil, &protocol.Event{
		RunID: "run", NormalizedSessionID: "session", SourceInstanceID: "runner", SourceSeq: r.seq,
		TurnID: "turn", ItemID: item, EventType: t, Priority: t.Priority(), EmittedAt: "2026-01-01T00:00:00.000Z",
		Payload: json.RawMessage(payload),
	})
	r.add(line[:len(line)-1])
}

func (r *veilRun) delta(item, text string) {
	r.event(protocol.EventItemDelta, item, fmt.Sprintf(`{"delta":%s}`, protocol.AppendString(nil, text)))
}

// texts are the texts of each item.
func (r *veilRun) texts() map[string]string {
	out := map[string]string{}
	for _, e := range r.events {
		if e.EventType == protocol.EventItemDelta {
			out[e.ItemID] += controller.DeltaText(e)
		}
	}
	return out
}

const secret = "s3cret-\u2603-value"

// TestVeil: remote.md rule 7. A secret is masked also where it is split over
// deltas, with others in between; what only looks like its beginning stays, and
// so does the order.
func TestVeil(t *testing.T) {
	r := newVeilRun(secret)
	r.event(protocol.EventItemStarted, "a", `{"title":"a `+secret+`"}`)
	r.delta("a", "one s3cr")
	r.delta("b", "two s3")
	r.delta("a", "et-\u2603-val")
	if len(r.events) != 2 || len(r.lines) != 2 {
		t.Errorf("%d lines are out before it is known what they hold", len(r.lines))
	}
	r.delta("b", "x")
	r.delta("a", "ue three s3cret-")
	r.event(protocol.EventItemCompleted, "a", `{"kind":"message"}`)
	r.event(protocol.EventRunTerminal, "", `{"a":"\u0073`+secret[1:]+`"}`)
	r.close()
	if got := r.texts(); got["a"] != "one [masked] three s3cret-" || got["b"] != "two s3x" {
		t.Errorf("the texts are %q", got)
	}
	for i, e := range r.events {
		if e.SourceSeq != int64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.SourceSeq)
		}
	}
	if all := strings.Join(r.lines, ""); len(r.lines) != 8 || strings.Contains(all, secret) || strings.Contains(all, "0073") {
		t.Errorf("the lines are %s", all)
	}
}

// TestVeilUnchanged: without a secret in it a line goes out byte for byte.
func TestVeilUnchanged(t *testing.T) {
	r := newVeilRun(secret)
	const line = `{"schema":"paperclip.runner.stream.v1", "message":{"kind":"diagnostic","level":"info","message":"\u0061","code":"x"}}`
	r.add([]byte(line))
	r.add([]byte("no line of the protocol"))
	r.add([]byte(`{"x":"` + secret + `"}`))
	r.close()
	if want := line + "\nno line of the protocol\n" + `{"x":"[masked]"}` + "\n"; strings.Join(r.lines, "") != want {
		t.Errorf("the lines are %q", r.lines)
	}
}

// TestVeilBounded: a text that stays open for too long is given up, masked.
func TestVeilBounded(t *testing.T) {
	r := newVeilRun(secret)
	r.delta("a", "x s3cret-")
	for i := 0; len(r.lines) == 0; i++ {
		if i > maxVeiled/500 {
			t.Fatal("nothing comes out")
		}
		r.event(protocol.EventItemStarted, "b", `{"title":"`+strings.Repeat("y", 1000)+`"}`)
	}
	r.delta("a", "\u2603-value")
	r.close()
	if got := r.texts()["a"]; got != "x [masked]\u2603-value" {
		t.Errorf("the text is %q", got)
	}
}

// TestVeilSplit cuts texts with secrets at every place and at random ones.
func TestVeilSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		v := newVeilRun(secret, "other-secret")
		want, text := "", ""
		for range 1 + r.IntN(5) {
			part := []string{"plain ", "s3cret", "s3cret-\u2603", "other-", "\u2603"}[r.IntN(5)]
			want += part
			text += part
			if r.IntN(2) == 0 {
				want += bridge.Masked
				text += []string{secret, "other-secret"}[r.IntN(2)]
			}
		}
		for runes := []rune(text); len(runes) > 0; {
			n := 1 + r.IntN(min(5, len(runes)))
			v.delta("a", string(runes[:n]))
			runes = runes[n:]
			if r.IntN(3) == 0 {
				v.delta("b", "s")
			}
		}
		v.close()
		if got := v.texts()["a"]; got != want {
			t.Fatalf("%q became %q, want %q", text, got, want)
		}
	}
}
