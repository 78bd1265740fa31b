package process

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestHide: the kernel has the process as one that others cannot look into.
func TestHide(t *testing.T) {
	dumpable := func() int {
		n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := dumpable()
	defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(before), 0, 0, 0) }()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := Hide(); err != nil || dumpable() != 0 {
		t.Errorf("dumpable is %d, %v", dumpable(), err)
	}
}
