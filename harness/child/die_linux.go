package child

import (
	"errors"
	"syscall"
	"unsafe"
)

// kernelSigaction is large enough for the kernel's struct on every
// architecture. All zero is the default action, no flags and an empty mask.
type kernelSigaction [64]byte

// kernelSigset is the size of a signal set, in bytes (64 signals).
const kernelSigset = 8

// dieBy ends this process by a signal. Go answers most signals itself, so the
// default action is put back before.
func dieBy(sig syscall.Signal) error {
	if !kills(sig) {
		return errors.New("the signal does not end a process")
	}
	if sig != syscall.SIGKILL {
		var action kernelSigaction
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig),
			uintptr(unsafe.Pointer(&action)), 0, kernelSigset, 0, 0)
		if errno != 0 {
			return errno
		}
	}
	return syscall.Kill(syscall.Getpid(), sig)
}

// kills reports whether the default action of a signal ends a process.
func kills(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH,
		syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return false
	}
	return true
}
