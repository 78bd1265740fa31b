package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Kinds of messages between the runner and its guardian, a private stream of
// the two halves of one program: a kind, a length, a body.
const (
	msgWatch  = 'W' // runner: the leader's birth, and Options
	msgStop   = 'E' // runner: what is left of the grace
	msgBegun  = 'b' // guardian, before its exec: the harness runs
	msgExited = 'x' // guardian: Exit
	msgGone   = 'g' // guardian: Containment
)

// headerBytes is the size of kind and length. bodyMax bounds a body: Linux
// itself takes at most 6 MiB of arguments and environment.
const (
	headerBytes = 5
	bodyMax     = 16 << 20
)

var errWire = errors.New("malformed message between runner and guardian")

// packer builds a message.
type packer []byte

func newMessage(kind byte) packer { return append(make(packer, 0, 64), kind, 0, 0, 0, 0) }

func (p *packer) int(n int) { *p = binary.AppendVarint(*p, int64(n)) }

func (p *packer) bool(b bool) {
	n := 0
	if b {
		n = 1
	}
	p.int(n)
}

func (p *packer) string(s string) {
	p.int(len(s))
	*p = append(*p, s...)
}

// bytes is the whole message, its length filled in.
func (p *packer) bytes() []byte {
	binary.LittleEndian.PutUint32((*p)[1:], uint32(len(*p)-headerBytes))
	return *p
}

// unpacker reads a body. After the first fault everything is zero and bad is
// true.
type unpacker struct {
	rest []byte
	bad  bool
}

func (u *unpacker) int() int {
	n, size := binary.Varint(u.rest)
	if size <= 0 {
		u.bad, u.rest = true, nil
		return 0
	}
	u.rest = u.rest[size:]
	return int(n)
}

func (u *unpacker) bool() bool { return u.int() != 0 }

func (u *unpacker) string() string {
	n := u.int()
	if n < 0 || n > len(u.rest) {
		u.bad, u.rest = true, nil
		return ""
	}
	s := string(u.rest[:n])
	u.rest = u.rest[n:]
	return s
}

// parseHeader gives the kind and the length of the body.
func parseHeader(head []byte) (kind byte, size int, err error) {
	size = int(binary.LittleEndian.Uint32(head[1:]))
	if size > bodyMax {
		return 0, 0, fmt.Errorf("%w: %d bytes", errWire, size)
	}
	return head[0], size, nil
}

// readMessage reads one whole message.
func readMessage(r io.Reader) (byte, *unpacker, error) {
	var head [headerBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	kind, size, err := parseHeader(head[:])
	if err != nil {
		return 0, nil, err
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, err
	}
	return kind, &unpacker{rest: body}, nil
}

func packStop(left time.Duration) []byte {
	p := newMessage(msgStop)
	p.int(int(left / time.Microsecond))
	return p.bytes()
}

func unpackStop(u *unpacker) time.Duration {
	return time.Duration(u.int()) * time.Microsecond
}

// birth is what there is to know of a leader that has been started.
type birth struct {
	pid    int
	since  uint64 // start time; 0 where it is not known
	inLeaf bool
}

func packWatch(b birth, o Options) []byte {
	p := newMessage(msgWatch)
	p.int(b.pid)
	p.int(int(b.since))
	p.bool(b.inLeaf)
	p.bool(o.noSweep)
	return p.bytes()
}

func unpackWatch(u *unpacker) (b birth, o Options) {
	b = birth{pid: u.int(), since: uint64(u.int()), inLeaf: u.bool()}
	o.noSweep = u.bool()
	return b, o
}

func packExit(e Exit) []byte {
	p := newMessage(msgExited)
	p.int(e.Code)
	p.int(e.Signal)
	p.bool(e.Signaled)
	return p.bytes()
}

func unpackExit(u *unpacker) Exit {
	return Exit{Code: u.int(), Signal: u.int(), Signaled: u.bool()}
}

func packGone(c Containment) []byte {
	p := newMessage(msgGone)
	p.int(c.Swept)
	p.int(len(c.Survivors))
	for _, s := range c.Survivors {
		p.int(s.PID)
		p.string(s.Name)
		p.string(s.State)
	}
	return p.bytes()
}

func unpackGone(u *unpacker) Containment {
	c := Containment{Swept: u.int()}
	for n := u.int(); n > 0 && !u.bad; n-- {
		c.Survivors = append(c.Survivors, Survivor{PID: u.int(), Name: u.string(), State: u.string()})
	}
	return c
}
