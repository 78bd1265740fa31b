package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prp/controller"
	"prp/protocol"
)

// fixtures is where the recorded runs are.
const fixtures = "../../fixtures"

// TestRecord records the runs of fixtures anew, with the real chain, and makes
// the damaged ones from them. It does so only with -update; the records are
// read by the tests of package controller.
func TestRecord(t *testing.T) {
	if !*update {
		t.Skip("the recorded runs are written with -update")
	}
	happy := record(t, "happy", "happy-path")
	record(t, "failed", "error")
	record(t, "interrupted", "interrupted")
	record(t, "permission", "permission-input")

	lines := strings.SplitAfter(strings.TrimSuffix(string(happy), "\n"), "\n")
	delta := -1
	for i, line := range lines {
		if strings.Contains(line, `"eventType":"item.delta"`) {
			delta = i
		}
	}
	if delta < 0 {
		t.Fatal("the happy run has no item.delta")
	}
	save(t, "duplicate-event", join(lines[:delta+1], lines[delta:delta+1], lines[delta+1:]))
	save(t, "source-gap", join(lines[:delta], lines[delta+1:]))
	strange := strings.ReplaceAll(string(happy), `"message":{`, `"message":{"later":{"a":[1,2]},`)
	strange = strings.ReplaceAll(strange, `"payload":{`, `"traceparent":"00-1","payload":{"extra":null,`)
	save(t, "unknown-fields", strings.ReplaceAll(strange, `"extra":null,}`, `"extra":null}`))
	save(t, "invalid/unsupported-version", strings.ReplaceAll(join(lines), `"schemaVersion":1`, `"schemaVersion":2`))
	save(t, "invalid/torn", strings.TrimSuffix(join(lines[:delta+1]), "\"}}}}\n"))
}

func join(parts ...[]string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(strings.Join(p, ""))
	}
	return b.String()
}

func save(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(fixtures, name+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// record plays a script with fixed ids and a fixed clock, and saves its stream.
func record(t *testing.T, name, script string) []byte {
	t.Helper()
	var buf bytes.Buffer
	c := chain(t, script, func(line []byte) { fmt.Fprintf(&buf, "%s\n", line) }, "--clock", "deterministic")
	n := 0
	send := func(kind protocol.CommandType, payload any) {
		t.Helper()
		n++
		if _, err := c.Send(t.Context(), controller.Command{Type: kind, Payload: payload, ID: fmt.Sprintf("c%d", n)}); err != nil {
			t.Fatal(err)
		}
	}
	send(protocol.RunPrepare, nil)
	send(protocol.SessionOpen, nil)
	send(protocol.TurnStart, map[string]any{"turnId": "turn_1", "text": "Fix the greeting."})
	for e, err := range c.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.EventType == protocol.EventItemStarted && script == "interrupted" {
			send(protocol.TurnInterrupt, map[string]any{"reason": "enough for today"})
		}
		if e.EventType == protocol.EventRequestCreated {
			r, _ := controller.RequestOf(&e)
			response := controller.InputResponse("Please read it twice.")
			if r.Type == protocol.RequestPermission {
				response = controller.PermissionResponse("allow")
			}
			send(protocol.RequestResolve, map[string]any{"requestId": r.RequestID, "response": response})
		}
		if e.EventType == protocol.EventRunTerminal {
			break
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	save(t, name, buf.String())
	return buf.Bytes()
}
