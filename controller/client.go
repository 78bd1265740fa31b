package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"prp/protocol"
	"prp/protocol/jsonl"
)

// Client is one run as its controller sees it.
type Client struct {
	cfg Config
	cmd *exec.Cmd

	// exited is closed when the runner process has ended, done when also
	// every goroutine of the client has.
	exited, done chan struct{}
	// closeAsked is closed when the ladder is to be climbed.
	closeAsked chan struct{}
	closeOnce  sync.Once
	pumps      sync.WaitGroup
	tail       stderrTail
	writerWake chan struct{} // of size one: the writer has something to do

	mu      sync.Mutex
	changed chan struct{} // closed at the next change; nil where nobody waits
	out     outbox
	log     messageLog
	bound   binding
	fault   error // the first line that this run cannot have
	exit    protocol.ExitFact
	over    bool   // nothing will be added to the log any more
	forced  string // the strongest means that Close had to use
}

// Start starts a runner and returns as soon as its process exists. The end of
// ctx has the effect of [Client.Close]; it never kills at once. An error means
// that nothing was started.
func Start(ctx context.Context, config Config) (*Client, error) {
	cfg, err := config.filled()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &Client{
		cfg:        cfg,
		exited:     make(chan struct{}),
		done:       make(chan struct{}),
		closeAsked: make(chan struct{}),
		writerWake: make(chan struct{}, 1),
		tail:       stderrTail{limit: cfg.MaxStderrBytes},
		out:        newOutbox(),
		log:        messageLog{limit: cfg.MaxRetainedBytes},
		bound:      binding{runID: cfg.RunID, sessionID: cfg.SessionID, runnerID: cfg.RunnerID},
	}
	pipes, err := c.startProcess()
	if err != nil {
		return nil, fmt.Errorf("controller: start the runner %q: %w", cfg.Argv[0], err)
	}
	c.pumps.Go(func() { c.write(pipes.stdin) })
	c.pumps.Go(func() { c.read(pipes.stdout) })
	c.pumps.Go(func() { c.readStderr(pipes.stderr) })
	c.pumps.Go(c.ladder)
	unhook := context.AfterFunc(ctx, c.beginClose)
	go c.reap(pipes, unhook)
	return c, nil
}

// RunID is the run that the stream is bound to.
func (c *Client) RunID() string { return c.cfg.RunID }

// SessionID is the session that the stream is bound to.
func (c *Client) SessionID() string { return c.cfg.SessionID }

// RunnerID is the source that the stream is bound to.
func (c *Client) RunnerID() string { return c.cfg.RunnerID }

// PID is the process id of the runner, also after it has ended.
func (c *Client) PID() int { return c.cmd.Process.Pid }

// Done is closed when the run is over: the runner has ended, its stream was
// read to the end, and no goroutine of the client is left.
func (c *Client) Done() <-chan struct{} { return c.done }

// pipes are the client's ends of the three streams of the runner.
type pipes struct{ stdin, stdout, stderr *os.File }

// startProcess starts the runner on pipes that are ours: those that os/exec
// would make are closed by its Wait, before they were read to the end.
func (c *Client) startProcess() (pipes, error) {
	c.cmd = exec.Command(c.cfg.Argv[0], c.cfg.Argv[1:]...)
	c.cmd.Args = append(c.cmd.Args,
		"--run-id", c.cfg.RunID, "--session-id", c.cfg.SessionID, "--runner-id", c.cfg.RunnerID)
	c.cmd.Dir = c.cfg.Dir
	c.cmd.Env = c.cfg.Env
	ownGroup(c.cmd)

	var files []*os.File
	pair := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	inR, inW, err := pair()
	outR, outW, err2 := pair()
	errR, errW, err3 := pair()
	if err = errors.Join(err, err2, err3); err == nil {
		c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = inR, outW, errW
		err = c.cmd.Start()
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return pipes{}, err
	}
	inR.Close()
	outW.Close()
	errW.Close()
	return pipes{stdin: inW, stdout: outR, stderr: errR}, nil
}

// reap waits for the process and then for the pumps, and ends the client.
func (c *Client) reap(p pipes, unhook func() bool) {
	c.cmd.Wait() // the exit status is read from ProcessState
	c.mu.Lock()
	c.exit = exitFact(c.cmd.ProcessState)
	c.out.end()
	c.notify()
	c.mu.Unlock()
	close(c.exited)
	p.stdin.SetWriteDeadline(time.Now()) // nobody reads it any more
	c.wakeWriter()
	c.pumps.Wait()
	p.stdout.Close()
	p.stderr.Close()
	unhook()
	c.mu.Lock()
	c.over = true
	c.out.failPending()
	c.notify()
	c.mu.Unlock()
	close(c.done)
}

// exitFact is how the process ended; never 128 plus a signal.
func exitFact(state *os.ProcessState) protocol.ExitFact {
	if n, ok := signalOf(state); ok {
		return protocol.ExitFact{Signal: &n}
	}
	code := state.ExitCode()
	return protocol.ExitFact{ExitCode: &code, Success: code == 0}
}

// lingerWait is how long a stream of a runner that has ended may be silent
// before it is taken for over. Everything that the runner wrote is in the pipe
// by then; only a stranger that holds the pipe open delays its end.
const lingerWait = time.Second

// lingering reads a pipe whose writer's end may be held open by a stranger
// after the runner has exited.
type lingering struct {
	file   *os.File
	exited <-chan struct{}
}

// Read implements io.Reader.
func (l lingering) Read(p []byte) (int, error) {
	n, err := l.file.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	// The deadline may have passed while the reader was busy: what stands in
	// the pipe is read all the same, and only a silent pipe is left.
	if l.file.SetReadDeadline(time.Now().Add(lingerWait)) != nil {
		return 0, io.EOF
	}
	if n, err = l.file.Read(p); errors.Is(err, os.ErrDeadlineExceeded) {
		return n, io.EOF
	}
	return n, err
}

// watch bounds the reads of l from the exit of the runner on; stop ends it.
func (l lingering) watch() (stop func()) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-l.exited:
			l.file.SetReadDeadline(time.Now().Add(lingerWait))
		case <-over:
		}
	})
	return func() {
		close(over)
		wg.Wait()
	}
}

// read pumps the runner's stdout into the log, to its end also after a fault:
// a runner that is not read cannot end.
func (c *Client) read(stdout *os.File) {
	in := lingering{file: stdout, exited: c.exited}
	defer in.watch()()
	lines := jsonl.NewReader(in, c.cfg.MaxLineBytes)
	decoder := protocol.NewDecoder()
	for {
		line, flags, err := lines.Next()
		if err != nil {
			return
		}
		if c.cfg.Tap != nil && flags&jsonl.TooLong == 0 {
			c.cfg.Tap(line)
		}
		m, ok := c.take(decoder, lines.LineNumber(), line, flags)
		switch {
		case !ok:
			c.beginClose()
		case m.Kind == protocol.KindEvent && c.cfg.OnEvent != nil:
			c.cfg.OnEvent(m.Event)
		}
	}
}

// readStderr keeps the end of the runner's stderr.
func (c *Client) readStderr(stderr *os.File) {
	in := lingering{file: stderr, exited: c.exited}
	defer in.watch()()
	buf := make([]byte, 4<<10)
	for {
		n, err := in.Read(buf)
		c.mu.Lock()
		c.tail.add(buf[:n])
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}
