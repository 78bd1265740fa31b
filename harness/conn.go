package harness

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"prp/protocol"
	"prp/protocol/jsonl"
)

// MaxCommandLine bounds a line on stdin, in bytes of content: a command of the
// largest size that a controller may send by default (spec section 1), and
// room for the longer schema name that it is passed on with.
const MaxCommandLine = protocol.DefaultCommandLine + 4<<10

// Conn is a harness's connection to its runner. [Conn.Send], [Conn.Queue] and
// [Conn.Skip] are safe for several goroutines. Only one goroutine receives: with
// Receive, or by the channel of Commands.
type Conn struct {
	family protocol.Family

	in      *jsonl.Reader
	decoder *protocol.Decoder

	mu     sync.Mutex // guards what follows
	out    io.Writer
	seq    int64  // the messageSeq of the message sent last
	queued int64  // how many messages wait in lines
	lines  []byte // kept, so that a message costs no allocation
	err    error  // the first error of out; there is no message after it

	// received is the error that ended the channel of Commands. It is
	// written before the channel is closed and read after.
	received error
}

// New connects to the runner at the other end of stdin and stdout. The family
// names the schemas of both directions. New reads and writes nothing.
func New(stdin io.Reader, stdout io.Writer, family protocol.Family) *Conn {
	return &Conn{
		family:  family,
		in:      jsonl.NewReader(stdin, MaxCommandLine),
		decoder: protocol.NewDecoder(),
		out:     stdout,
	}
}

// Send writes one message, after those of [Conn.Queue]; the payload is a JSON
// object, which Send does not keep. It blocks while the pipe is full. After the
// first error every call returns it and nothing more is written, since the runner
// may have half a line.
func (c *Conn) Send(t protocol.MessageType, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.add(t, payload)
	n, err := c.out.Write(c.lines)
	if err == nil && n < len(c.lines) {
		err = io.ErrShortWrite
	}
	if err != nil {
		c.err = fmt.Errorf("message %d (%s) was not written: %w", c.seq+c.queued, t, err)
		return c.err
	}
	c.seq, c.queued, c.lines = c.seq+c.queued, 0, c.lines[:0]
	return nil
}

// Queue takes a message that the next Send writes together with its own: the
// runner is woken once for both. The caller sends at once, without waiting for
// anything in between. The payload is a JSON object, which Queue does not keep.
func (c *Conn) Queue(t protocol.MessageType, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.add(t, payload)
	}
}

// add appends one message to the lines; the lock is held.
func (c *Conn) add(t protocol.MessageType, payload []byte) {
	c.queued++
	c.lines = protocol.AppendMessage(c.lines, c.family, c.seq+c.queued, t, payload)
}

// Skip leaves out n message numbers. It is for a harness that wrote n messages
// by other means, and for one that makes a gap on purpose.
func (c *Conn) Skip(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq += n
}

// Sent returns the messageSeq of the message sent last, 0 before the first.
func (c *Conn) Sent() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seq
}

// Receive returns the next command. It blocks until there is one, and returns
// [io.EOF] at the end of stdin. The caller owns the command. Any other error,
// too, is final: a line that is too long or no command of the family, or a
// read error.
func (c *Conn) Receive() (protocol.HarnessCommand, error) {
	line, flags, err := c.in.Next()
	if err != nil {
		return protocol.HarnessCommand{}, err
	}
	if flags&jsonl.TooLong != 0 {
		return protocol.HarnessCommand{}, fmt.Errorf("expected a command of at most %d bytes, got more", MaxCommandLine)
	}
	command, family, err := c.decoder.HarnessCommand(line)
	if err != nil {
		return protocol.HarnessCommand{}, fmt.Errorf("expected a command: %w", err)
	}
	if family != c.family {
		return protocol.HarnessCommand{}, fmt.Errorf("expected a command of schema %q, got %q", c.family.CommandSchema(), command.Schema)
	}
	return command, nil
}

// Commands starts a goroutine that receives into a channel with the given
// buffer. The channel is closed at the end of stdin and at the first error,
// which [Conn.Err] then returns. The goroutine ends with stdin, not before;
// while the channel is full it reads nothing, and the runner feels that.
func (c *Conn) Commands(buffer int) <-chan protocol.HarnessCommand {
	commands := make(chan protocol.HarnessCommand, buffer)
	go func() {
		defer close(commands)
		for {
			command, err := c.Receive()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					c.received = err
				}
				return
			}
			commands <- command
		}
	}()
	return commands
}

// Err returns why the channel of [Conn.Commands] was closed, nil at the plain
// end of stdin. Call it only after the channel is closed.
func (c *Conn) Err() error { return c.received }
