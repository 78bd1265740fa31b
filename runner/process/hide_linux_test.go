package process

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestHide: the kernel gives memory and environment of this process to no other
// one of the same user.
func TestHide(t *testing.T) {
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(before), 0, 0, 0) }()
	if err := Hide(); err != nil {
		t.Fatal(err)
	}
	if now, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || now != 0 {
		t.Errorf("dumpable is %d, %v", now, err)
	}
}
