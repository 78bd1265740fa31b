package fake

import (
	"syscall"
	"unsafe"
)

// kernelSigaction is large enough for the kernel's struct on every
// architecture. All zero is the default action, no flags and an empty mask.
type kernelSigaction [64]byte

// kernelSigset is the size of a signal set, in bytes (64 signals).
const kernelSigset = 8

// defaultAction puts the default action of a signal back. Package os/signal
// cannot: what it resets is Go's own handling.
func defaultAction(sig syscall.Signal) error {
	if sig == syscall.SIGKILL || sig == syscall.SIGSTOP {
		return nil // never handled
	}
	var action kernelSigaction
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(&action)), 0, kernelSigset, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
