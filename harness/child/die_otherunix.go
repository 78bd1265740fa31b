//go:build unix && !linux

package child

import (
	"errors"
	"os"
	"syscall"
)

// dieBy ends this process by a signal whose default action Go keeps once it is
// reset. For the others this process is replaced by a shell that sends the
// signal to itself: executing a program puts the default actions back.
func dieBy(sig syscall.Signal) error {
	switch sig {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		return syscall.Kill(os.Getpid(), sig)
	case syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH,
		syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return errors.New("the signal does not end a process")
	}
	const shell = "/bin/sh"
	digits := string([]byte{'0' + byte(sig/10), '0' + byte(sig%10)})
	return syscall.Exec(shell, []string{shell, "-c", `kill -"$0" $$`, digits}, nil)
}
