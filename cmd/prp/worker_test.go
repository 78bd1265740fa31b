package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prp/controller/worker"
)

// TestBeside: the small programs are taken where they are programs.
func TestBeside(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "prp.exe") // a name that Windows can start too
	for name, mode := range map[string]os.FileMode{"prp-runner.exe": 0o755, "notes.exe": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := beside(self, "prp-runner"), filepath.Join(dir, "prp-runner.exe"); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := beside(self, "prp-harness"); got != "" {
		t.Errorf("found %q, which is not there", got)
	}
	if got := shellQuoted("/a b/it's"); got != `'/a b/it'\''s'` {
		t.Errorf("quoted as %s", got)
	}
}

// TestReadBounded: a policy is bounded, also where it has no end.
func TestReadBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, ok := range map[int64]bool{4: false, 5: true} {
		if text, err := readBounded(path, most); (err == nil) != ok || ok && string(text) != "12345" {
			t.Errorf("at most %d: %q, %v", most, text, err)
		}
	}
	if _, err := readBounded(path+".none", 5); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}

// TestToolsInHelp: the help of prp devserver names every tool that can be sent.
func TestToolsInHelp(t *testing.T) {
	for _, tool := range worker.Tools() {
		if !strings.Contains(devserverCommand.long, tool) {
			t.Errorf("the help does not name %s", tool)
		}
	}
}
