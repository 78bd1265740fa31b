//go:build unix

package fake

import (
	"os"
	"syscall"
)

// escapeAttr starts a worker outside the fake's group. For a double fork it
// makes the session of the first half, in which the worker is no leader.
func escapeAttr(escape string) *syscall.SysProcAttr {
	switch escape {
	case EscapeSetpgid:
		return &syscall.SysProcAttr{Setpgid: true}
	case EscapeSetsid, EscapeDoubleFork:
		return &syscall.SysProcAttr{Setsid: true}
	}
	return nil
}

func stopSelf() error { return syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// dieBy ends this process by a signal. Go answers most signals itself (with a
// trace and exit status 2, or not at all), so their default action is put back
// before.
func dieBy(sig syscall.Signal) error {
	// A core file would litter the working directory of a test.
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return err
	}
	if err := defaultAction(sig); err != nil {
		return err
	}
	return syscall.Kill(os.Getpid(), sig)
}
