//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prp/protocol"
)

// TestTerminalFile: --terminal has the one terminal and no word of the harness,
// and has it before stdout, so that it outlives the controller.
func TestTerminalFile(t *testing.T) {
	t.Parallel()
	kept := func(t *testing.T, path string) *protocol.Event {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil || bytes.Count(text, []byte("\n")) != 1 {
			t.Fatalf("the file has %q, %v, want one line", text, err)
		}
		m, err := protocol.NewDecoder().Stream(bytes.TrimSuffix(text, []byte("\n")))
		if err != nil || m.Event == nil || m.Event.EventType != protocol.EventRunTerminal {
			t.Fatalf("the file has %q, %v", text, err)
		}
		return m.Event
	}
	each(t, "before stdout, without the proposal", func(t *testing.T) {
		path := file(t, "terminal", "of another run")
		said := ready().result().terminal()
		r := start(t, setup{harness: said.cat(t), flags: []string{"--terminal", path}})
		r.send(protocol.RunPrepare, "")
		r.event(protocol.EventRunTerminal)
		got := kept(t, path) // stdout has it: so has the file
		r.end().reason(protocol.ReasonSuccess)
		want := r.event(protocol.EventRunTerminal)
		var a, b protocol.Terminal
		if err := json.Unmarshal(got.Payload, &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(want.Payload, &b); err != nil {
			t.Fatal(err)
		}
		if string(b.HarnessTerminalProposal) == "null" || string(a.HarnessTerminalProposal) != "null" {
			t.Errorf("the proposal is %s, in the file %s", b.HarnessTerminalProposal, a.HarnessTerminalProposal)
		}
		b.HarnessTerminalProposal = a.HarnessTerminalProposal
		left, _ := json.Marshal(a)
		right, _ := json.Marshal(b)
		if !bytes.Equal(left, right) || got.SourceSeq != want.SourceSeq || got.SourceEventID != want.SourceEventID || got.EmittedAt != want.EmittedAt {
			t.Errorf("the file has\n%+v %s\nwant\n%+v %s", got, left, want, right)
		}
	})
	each(t, "without a reader", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "terminal")
		r := start(t, setup{harness: ready().then(t, "cat >/dev/null"), flags: []string{"--terminal", path}})
		r.begin()
		r.stdout.Close()
		r.hangUp()
		if status := r.waitExit(); status != 1 {
			t.Errorf("exit status %d, want 1", status)
		}
		if reason := string(kept(t, path).Payload); !strings.Contains(reason, string(protocol.ReasonControllerClosed)) {
			t.Errorf("the terminal is %s", reason)
		}
	})
	each(t, "cannot be written", func(t *testing.T) {
		misused(t, setup{harness: "true", flags: []string{"--terminal", "/no/such/folder/terminal"}}, "/no/such/folder/terminal")
		misused(t, setup{harness: "true", flags: []string{"--terminal", "/"}}, "terminal")
		journal := filepath.Join(t.TempDir(), "journal")
		misused(t, setup{harness: "true", flags: []string{"--journal", journal, "--terminal", filepath.Dir(journal) + "/./journal"}}, "another file")
	})
	each(t, "takes the place of nothing but a file", func(t *testing.T) {
		dir := t.TempDir()
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, link} {
			misused(t, setup{harness: "true", flags: []string{"--terminal", path}}, "expected a plain file or none")
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("it is gone: %v", err)
			}
		}
	})
	each(t, "cannot be written at the end", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "folder")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		r := start(t, setup{harness: ready().then(t, "cat >/dev/null"), flags: []string{"--terminal", filepath.Join(dir, "terminal")}})
		r.begin()
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		r.hangUp()
		r.end().reason(protocol.ReasonControllerClosed)
		r.await("a diagnostic about the file", func(m protocol.StreamMessage) bool {
			return m.Diagnostic != nil && m.Diagnostic.Code == "terminal_not_kept"
		})
	})
}
