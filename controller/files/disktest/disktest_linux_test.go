package disktest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMount: a file system has the room that was asked for, and nobody else sees
// it.
func TestMount(t *testing.T) {
	before, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if !Apart(t) {
		after, err := os.ReadFile("/proc/self/mounts")
		if err != nil || bytes.Contains(after, []byte(t.Name())) && !bytes.Contains(before, []byte(t.Name())) {
			t.Errorf("the mounts of the test are seen here: %s, %v", after, err)
		}
		return
	}
	dir := Mount(t, "size=64k")
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || !bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("%s is not mounted: %s, %v", dir, mounts, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 64<<10), 0o600); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "g"), make([]byte, 1), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("there is more room than was asked for: %v", err)
	}
}
