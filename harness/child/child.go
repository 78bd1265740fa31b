package child

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Exit statuses that a shell gives for a program that did not start.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

const (
	// busyTries and busyWait bound how long "text file busy" is waited out:
	// a file that was just written can be open in a forking process for a
	// moment.
	busyTries = 10
	busyWait  = 20 * time.Millisecond
	// quiet is how long nothing comes from a pipe after the program's exit
	// before the pipe counts as read to the end. What the program wrote is
	// in the pipe by then, so that a read finds it at once.
	quiet = 50 * time.Millisecond
	// maxPipe is the largest pipe of an unprivileged process on Linux, in
	// bytes: more than that cannot be left from before the exit.
	maxPipe = 1 << 20
	// closeAfter is how long after the exit a pipe without deadlines
	// (Windows) is read.
	closeAfter = time.Second
)

// Options says what to start.
type Options struct {
	// Argv is the program and its arguments. A name without a slash is
	// looked up in the PATH of this process.
	Argv []string
	// Dir is the working directory, this process's where empty.
	Dir string
	// Env is the environment, this process's where nil.
	Env []string
	// Input asks for a pipe as stdin; else stdin is empty.
	Input bool
	// Stderr becomes the program's stderr; where nil there is a pipe.
	Stderr *os.File
}

// Exit is how a program ended: by a status, or by a signal where Signal is not
// 0.
type Exit struct {
	Status int
	Signal int
}

// Success reports a status of 0.
func (e Exit) Success() bool { return e == Exit{} }

// String is "status 3" or "signal 9".
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("signal %d", e.Signal)
	}
	return fmt.Sprintf("status %d", e.Status)
}

// Child is a program that was started.
type Child struct {
	// Stdin is our end of the pipe, nil without [Options.Input]. The caller
	// closes it. A write to it blocks until the program reads.
	Stdin *os.File
	// Stdout and Stderr end with [io.EOF]; Stderr is nil where it was given.
	Stdout, Stderr *Output

	cmd  *exec.Cmd
	done chan struct{}
	exit Exit // valid after done
}

// StartError is a program that could not be started. Status is what a shell
// would exit with.
type StartError struct {
	Status int
	err    error
}

// Error implements error.
func (e *StartError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.err }

// Start starts a program. The error is a [*StartError].
func Start(o Options) (*Child, error) {
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return nil, &StartError{StatusNotFound, errors.New("expected a program, got an empty argument list")}
	}
	c := &Child{done: make(chan struct{})}
	theirs, err := c.pipes(o)
	if err == nil {
		err = c.start(o, theirs)
	}
	for _, f := range theirs {
		if f != nil && f != o.Stderr {
			f.Close()
		}
	}
	if err != nil {
		c.closeOurs()
		return nil, startError(o.Argv[0], err)
	}
	go c.wait()
	return c, nil
}

// pipes makes the child's ends, in the order of the descriptors; ours go into c.
func (c *Child) pipes(o Options) (theirs [3]*os.File, err error) {
	if o.Input {
		if theirs[0], c.Stdin, err = os.Pipe(); err != nil {
			return theirs, err
		}
	} else if theirs[0], err = os.Open(os.DevNull); err != nil {
		return theirs, err
	}
	if c.Stdout, theirs[1], err = outputPipe(); err != nil {
		return theirs, err
	}
	if theirs[2] = o.Stderr; o.Stderr == nil {
		c.Stderr, theirs[2], err = outputPipe()
	}
	return theirs, err
}

func (c *Child) start(o Options, files [3]*os.File) error {
	for try := 1; ; try++ {
		c.cmd = exec.Command(o.Argv[0], o.Argv[1:]...)
		c.cmd.Dir, c.cmd.Env = o.Dir, o.Env
		c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = files[0], files[1], files[2]
		err := c.cmd.Start()
		if !errors.Is(err, syscall.ETXTBSY) || try == busyTries {
			return err
		}
		time.Sleep(busyWait)
	}
}

func startError(name string, err error) error {
	status := StatusNotExecutable
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		status = StatusNotFound
	}
	return &StartError{status, fmt.Errorf("start %q: %w", name, err)}
}

func (c *Child) closeOurs() {
	if c.Stdin != nil {
		c.Stdin.Close()
	}
	for _, o := range []*Output{c.Stdout, c.Stderr} {
		if o != nil {
			o.file.Close()
		}
	}
}

func (c *Child) wait() {
	// What Wait returns as an error stands in the state as well.
	_ = c.cmd.Wait()
	c.exit = exitOf(c.cmd.ProcessState)
	c.Stdout.leaderGone()
	if c.Stderr != nil {
		c.Stderr.leaderGone()
	}
	close(c.done)
}

// PID is the process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed once the program has exited and was waited for.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit is how the program ended; call it only after Done is closed.
func (c *Child) Exit() Exit { return c.exit }

// Interrupt asks the program to stop what it does, as Ctrl-C at a terminal:
// SIGINT goes to the whole group where this process leads it, since a shell
// waits for its foreground child, else to the program alone. On Windows it
// kills. A program that has ended is left alone.
func (c *Child) Interrupt() { c.unlessDone(interrupt) }

// Terminate sends SIGTERM, then SIGCONT so that a stopped program sees it. On
// Windows it kills.
func (c *Child) Terminate() { c.unlessDone(terminate) }

// Kill sends SIGKILL to the program; not to what it has started.
func (c *Child) Kill() { c.unlessDone((*os.Process).Kill) }

// unlessDone signals; os.Process itself refuses where the program was waited
// for, and any error means that it is gone.
func (c *Child) unlessDone(signal func(*os.Process) error) {
	select {
	case <-c.done:
	default:
		_ = signal(c.cmd.Process)
	}
}

// Output reads a pipe that the program writes to.
type Output struct {
	file     *os.File
	draining bool
	left     int // how many bytes may still be from before the exit
}

func outputPipe() (*Output, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &Output{file: read}, write, nil
}

// Read implements [io.Reader]. It blocks until there is something, and returns
// [io.EOF] when all ends of the pipe are closed, or when the program has
// exited and what it wrote is read, though another process holds the pipe.
func (o *Output) Read(p []byte) (int, error) {
	for {
		if o.draining {
			if o.left <= 0 {
				return 0, io.EOF
			}
			if err := o.file.SetReadDeadline(time.Now().Add(quiet)); err != nil {
				return 0, io.EOF
			}
		}
		n, err := o.file.Read(p)
		if n > 0 {
			o.left -= n
			return n, nil
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && !o.draining:
			o.draining, o.left = true, maxPipe
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, os.ErrClosed):
			return 0, io.EOF
		default:
			return 0, err
		}
	}
}

// leaderGone wakes a read that waits for others than the program.
func (o *Output) leaderGone() {
	if o.file.SetReadDeadline(time.Unix(1, 0)) != nil {
		time.AfterFunc(closeAfter, func() { o.file.Close() })
	}
}

// Close closes our end: the program gets SIGPIPE or an error where it writes
// on.
func (o *Output) Close() error { return o.file.Close() }
