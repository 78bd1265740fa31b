//go:build unix && !linux && !darwin

package process

import "syscall"

// canList says that this platform gives a list of processes.
const canList = false

// awaitExit waits for the child and reaps it; then it kills the group at once.
// The group's number is its own only while it has members, so a moment between
// the two is a risk that this platform leaves no way around.
func awaitExit(pid int) <-chan notice {
	done := make(chan notice, 1)
	go func() {
		n := reapNow(pid)
		syscall.Kill(-pid, syscall.SIGKILL)
		done <- n
	}()
	return done
}

func listProcesses() []link { return nil }
