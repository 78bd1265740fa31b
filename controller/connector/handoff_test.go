//go:build unix

package connector

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prp/controller/devserver"
)

// handing is a script that hands its work over and goes on until it is ended.
func handing(bundle string) string {
	return `[{"kind":"event","event_type":"interaction.handoff","payload":{"to_agent_id":"happy","bundle":` + bundle + `}},{"kind":"await_interrupt"}]`
}

// TestHandoff: the source goes on until the handoff is accepted, and then ends;
// the other agent gets the bundle in its turn (row 13).
func TestHandoff(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("hands", handing(`{"objective":"the rest","decisions":["d"],"open_questions":["q"]}`))
	w.start()
	run := w.create("hands")
	var ask devserver.ConnectorFrame
	w.until("the handoff", func() bool {
		i := w.order(func(f devserver.ConnectorFrame) bool { return f.Type == "handoff" })
		if i >= 0 {
			ask = w.server.Frames()[i]
		}
		return i >= 0
	})
	m := object(t, ask.Raw)
	if m["from_run_id"] != run || m["to_agent_id"] != "happy" || m["handoff_id"] == "" || m["bundle"].(map[string]any)["objective"] != "the rest" {
		t.Errorf("handoff is %s", ask.Raw)
	}
	_, end := w.over(run)
	next := "run_" + m["handoff_id"].(string)
	if end["status"] != "cancelled" || end["cause"] != reasonHandedOff || end["new_run_id"] != next || end["error"] != nil {
		t.Errorf("the completion is %v", end)
	}
	if _, end := w.over(next); end["status"] != "succeeded" {
		t.Errorf("the completion of the new run is %v", end)
	}
}

// TestHandoffIn: a run that goes on with the work of another has its bundle.
func TestHandoffIn(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	file := filepath.Join(t.TempDir(), "turn")
	script := filepath.Join(t.TempDir(), "harness")
	text := `#!/bin/sh
echo '{"schema":"paperclip.harness.message.v1","messageSeq":1,"type":"ready","payload":{"version":"1"}}'
while read -r line; do case "$line" in *turn.start*) printf '%s\n' "$line" > ` + file + `; exit 0;; esac; done
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	w.agent("takes", "happy-path", func(a *Agent) { a.Harness = script })
	w.start()
	w.over(w.create("takes", `,"handoff":{"handoff_id":"h","from_run_id":"r","bundle":{"progress":"half"}}`))
	raw, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(raw), `"bundle":{"progress":"half"}`) {
		t.Errorf("the turn is %s, %v", raw, err)
	}
}

// TestHandoffNotAccepted: whatever the answer is but accepted, the source goes on
// (row 13).
func TestHandoffNotAccepted(t *testing.T) {
	t.Parallel()
	big := `{"objective":"` + strings.Repeat("x", 50_000) + `"}`
	for _, c := range []struct {
		name, bundle, code string
		rules              []devserver.Rule
	}{
		{"an error", `{}`, "handoff_failed", []devserver.Rule{rule("handoff", 0, "error-4003")}},
		{"no answer", `{}`, "handoff_failed", []devserver.Rule{rule("handoff", 0, devserver.Mute)}},
		{"no bundle", `7`, "handoff_invalid", nil},
		{"too large", big, "", nil}, // what fits into a line of a harness fits into a handoff
	} {
		w := settle(t, devserver.ConnectorConfig{Rules: c.rules})
		w.agent("hands", handing(c.bundle))
		if c.rules != nil && c.rules[0].Do == devserver.Mute {
			w.cfg.Times.Handoff = 300 * time.Millisecond
		}
		w.start()
		run := w.create("hands")
		if c.code == "" {
			w.over(run)
			continue
		}
		w.until(c.name+": a warning", func() bool {
			events, _, _ := w.server.Delivered(run)
			return slices.ContainsFunc(events, func(f devserver.ConnectorFrame) bool { return strings.Contains(string(f.Raw), c.code) })
		})
		if _, over, _ := w.server.Delivered(run); over {
			t.Errorf("%s: the source has ended", c.name)
		}
	}
}

// TestHandoffRejected: a refusal in words is told in the events.
func TestHandoffRejected(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("handoff", 0, devserver.Mute)}})
	w.agent("hands", handing(`{}`))
	w.start()
	run := w.create("hands")
	w.until("the handoff", func() bool { return w.order(func(f devserver.ConnectorFrame) bool { return f.Type == "handoff" }) >= 0 })
	ask := w.server.Frames()[w.order(func(f devserver.ConnectorFrame) bool { return f.Type == "handoff" })]
	w.frame(`{"type":"handoff_ack","handoff_id":%q,"status":"rejected","reason":"busy"}`, object(t, ask.Raw)["handoff_id"])
	w.until("a warning", func() bool {
		events, over, _ := w.server.Delivered(run)
		return !over && slices.ContainsFunc(events, func(f devserver.ConnectorFrame) bool { return strings.Contains(string(f.Raw), "handoff_rejected") })
	})
}
