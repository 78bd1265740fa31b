package disktest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMount: a file system has the room that was asked for, and while it is there
// nobody else sees it.
func TestMount(t *testing.T) {
	if !Apart(t) {
		return
	}
	dir := Mount(t, "size=64k")
	for process, want := range map[int]bool{os.Getpid(): true, os.Getppid(): false} {
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", process))
		if err != nil || bytes.Contains(mounts, []byte(dir)) != want {
			t.Errorf("%s is mounted for process %d: %v, want %v, %v", dir, process, !want, want, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 64<<10), 0o600); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "g"), make([]byte, 1), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("there is more room than was asked for: %v", err)
	}
}
