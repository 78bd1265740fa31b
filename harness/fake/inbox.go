package fake

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"prp/harness"
	"prp/protocol"
)

// maxKept bounds the commands that no step has wanted yet, which a runner
// never reaches by far; beyond it the oldest one is forgotten.
const maxKept = 256

// inbox holds the commands that have come and were not yet taken. It reads
// stdin only when asked, so that a script which does not wait leaves the pipe
// to fill up, and so that stdin can be closed with no read going on.
type inbox struct {
	conn *harness.Conn
	kept []protocol.HarnessCommand
	err  error // what ended stdin

	ask     chan struct{}
	got     chan received
	reading bool // a read was asked for and has not come back
}

type received struct {
	command protocol.HarnessCommand
	err     error
}

// next returns the channel on which the next command or the end will come.
func (b *inbox) next() <-chan received {
	if b.ask == nil {
		b.ask = make(chan struct{}, 1)
		b.got = make(chan received, 1)
		go b.read()
	}
	if !b.reading {
		b.reading = true
		b.ask <- struct{}{}
	}
	return b.got
}

func (b *inbox) read() {
	for range b.ask {
		command, err := b.conn.Receive()
		b.got <- received{command, err}
	}
}

// add keeps what came from the channel of next.
func (b *inbox) add(r received) {
	b.reading = false
	if r.err != nil {
		b.err = r.err
		return
	}
	if len(b.kept) == maxKept {
		b.kept = append(b.kept[:0], b.kept[1:]...)
	}
	b.kept = append(b.kept, r.command)
}

// take removes the first command that fits. It returns the end of stdin as an
// error once nothing that is kept fits.
func (b *inbox) take(fits func(protocol.HarnessCommand) bool) (c protocol.HarnessCommand, found bool, err error) {
	for i, c := range b.kept {
		if fits(c) {
			b.kept = append(b.kept[:i], b.kept[i+1:]...)
			return c, true, nil
		}
	}
	return protocol.HarnessCommand{}, false, b.err
}

// member returns a member of an object as it was written, nil where it is
// absent or raw is no object.
func member(raw []byte, name string) jsontext.Value {
	if jsontext.Value(raw).Kind() != '{' {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != '}' {
		var token jsontext.Token
		if token, err = dec.ReadToken(); err != nil {
			return nil
		}
		hit := token.String() == name
		var value jsontext.Value
		if value, err = dec.ReadValue(); err == nil && hit {
			return bytes.Clone(value)
		}
	}
	return nil
}
