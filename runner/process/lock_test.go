package process

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestLock: one has it at a time, and it can be had again.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		release, err := Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Lock(path); !errors.Is(err, ErrLocked) {
			t.Errorf("a second time: %v", err)
		}
		release()
	}
	if _, err := Lock(filepath.Join(path, "none")); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("no folder: %v", err)
	}
}
