package main

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestKilledAdapterLeavesNoHome: an adapter that was killed could not remove its
// private home; the next one that starts does.
func TestKilledAdapterLeavesNoHome(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whether an adapter is dead is known on Linux only")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	homes := func() []string {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(tmp, "prp-home-*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	adapter := harness(t, "acp", "--", "sh", "-c", "cat >/dev/null")
	stdin, err := adapter.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := adapter.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(hang); len(homes()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the adapter makes no home")
		}
	}
	if err := adapter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	adapter.Wait()
	if len(homes()) != 1 {
		t.Fatalf("the killed adapter has left %q: there is nothing to show", homes())
	}
	run(t, "acp", "--", "true")
	if left := homes(); len(left) > 0 {
		t.Errorf("there is left %q", left)
	}
}
