//go:build unix

package controller

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts the runner into a process group of its own, so that a Ctrl-C
// at the terminal reaches the controller alone, which decides what it means.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// ownSession cuts a program off from the caller's terminal and group.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// terminate asks the runner to end: it runs its stop ladder (spec section 6).
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// signalOf is the signal that ended the process, where one did.
func signalOf(state *os.ProcessState) (int, bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0, false
	}
	return int(status.Signal()), true
}
