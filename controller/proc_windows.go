package controller

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps the console's Ctrl-C away from the runner, so that the
// controller alone decides what it means.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// detachedProcess is DETACHED_PROCESS of CreateProcess: no console.
const detachedProcess = 0x00000008

// ownSession cuts a program off from the caller's console and group.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}

// errNoSignals says that this rung of the ladder does not exist here.
var errNoSignals = errors.New("there is no signal that asks a process to end on this platform")

// terminate fails: the ladder goes on to the kill.
func terminate(*os.Process) error { return errNoSignals }

// signalOf never finds a signal: there are none here.
func signalOf(*os.ProcessState) (int, bool) { return 0, false }
