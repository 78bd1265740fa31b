package controller

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Detached is a program that outlives the process that started it.
type Detached struct {
	// PID is its process id.
	PID int
	// Answer is its stdout. The caller reads and closes it.
	Answer *os.File
	// Done is closed when it has ended, for as long as the caller lives.
	Done <-chan struct{}
}

// Detach starts a program in a session of its own, which neither the end of the
// caller nor a signal to the caller's group reaches. Input becomes its stdin,
// which is where a secret belongs: argument lists are public. Its stderr is
// nowhere. Env is its whole environment. An error means that nothing was
// started.
func Detach(argv, env []string, input []byte) (*Detached, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("controller: detach: expected a command line, got none")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	ownSession(cmd)
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer inR.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		inW.Close()
		return nil, err
	}
	defer outW.Close()
	cmd.Stdin, cmd.Stdout = inR, outW
	if err := cmd.Start(); err != nil {
		inW.Close()
		outR.Close()
		return nil, fmt.Errorf("controller: detach %q: %w", argv[0], err)
	}
	done := make(chan struct{})
	go func() {
		// A program that does not read it has ended, or its answer says why.
		_, _ = inW.Write(input)
		inW.Close()
	}()
	go func() {
		_ = cmd.Wait() // its answer says what is worth saying
		close(done)
	}()
	return &Detached{PID: cmd.Process.Pid, Answer: outR, Done: done}, nil
}
