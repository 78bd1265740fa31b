//go:build unix

package child

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func exitOf(state *os.ProcessState) Exit {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return Exit{Signal: int(w.Signal())}
	}
	return Exit{Status: state.ExitCode()}
}

func interrupt(p *os.Process) error {
	if syscall.Getpgrp() == os.Getpid() {
		return syscall.Kill(0, syscall.SIGINT)
	}
	return p.Signal(syscall.SIGINT)
}

func terminate(p *os.Process) error {
	return errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT))
}

// Mirror ends as another process did: it returns the exit status for this
// process, or, where the other died by a signal, dies by the same one. A signal
// that does not kill here becomes status 1, never 128 and more: such a status
// would be taken for one of the program's own.
func Mirror(e Exit) int {
	if e.Signal == 0 {
		return e.Status
	}
	// A core file would be one of the adapter and tell nothing.
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	sig := syscall.Signal(e.Signal)
	signal.Reset(sig)
	if err := dieBy(sig); err != nil {
		return 1
	}
	// A signal to the own process is delivered before Kill returns on one of
	// its threads, not always on this one.
	select {}
}
