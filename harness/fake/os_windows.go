package fake

import (
	"errors"
	"os"
	"syscall"
)

// detachedProcess is DETACHED_PROCESS, which package syscall does not name: no
// console is inherited, the nearest thing to a session of its own.
const detachedProcess = 0x8

// escapeAttr makes a process group of its own; Windows has no sessions and no
// orphans in the sense of Unix.
func escapeAttr(escape string) *syscall.SysProcAttr {
	switch escape {
	case EscapeSetpgid:
		return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	case EscapeSetsid, EscapeDoubleFork:
		return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
	}
	return nil
}

func stopSelf() error { return errors.New("windows cannot stop a process") }

// dieBy ends this process at once, as near to a signal as Windows has it.
func dieBy(syscall.Signal) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Kill()
}
