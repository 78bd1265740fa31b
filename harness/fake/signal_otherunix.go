//go:build unix && !linux

package fake

import (
	"os"
	"os/signal"
	"syscall"
)

// defaultAction replaces this process by a shell that sends the signal to
// itself: executing a program puts the default actions back, and the pid stays.
// A signal whose default action Go keeps needs no shell.
func defaultAction(sig syscall.Signal) error {
	signal.Reset(sig)
	switch sig {
	case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		return nil
	}
	const shell = "/bin/sh"
	return syscall.Exec(shell, []string{shell, "-c", `kill -"$0" $$`, sigNumber(sig)}, os.Environ())
}

func sigNumber(sig syscall.Signal) string {
	digits := []byte{'0' + byte(sig/10), '0' + byte(sig%10)}
	if digits[0] == '0' {
		digits = digits[1:]
	}
	return string(digits)
}
