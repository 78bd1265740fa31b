package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"prp/protocol"
	"prp/protocol/jsonl"
	"prp/runner/lifecycle"
	"prp/runner/process"
)

// batchCount is how many batches are in flight between a reader and the loop:
// one is filled while one is stepped through.
const batchCount = 2

// commandInput is what the stdin reader hands over: one command, one faulty
// line, the end, or the answer to settle.
type commandInput struct {
	command *protocol.Command
	fault   *protocol.CommandFault
	closed  bool
	settled bool
}

type stdinReader struct {
	commands chan commandInput
	input    *process.Input
	ended    bool
}

// readCommands reads the controller's lines. The goroutine ends with the end
// of stdin or after it has settled; else it is left blocked in a read when
// the process ends.
func readCommands(spawn func(func()), stdin *os.File, limit int) *stdinReader {
	r := &stdinReader{commands: make(chan commandInput), input: process.NewInput(stdin)}
	spawn(func() { r.read(limit) })
	return r
}

// settle asks for what is there; false where this cannot be told.
func (r *stdinReader) settle() bool { return r.input.Settle() }

func (r *stdinReader) read(limit int) {
	lines := jsonl.NewReader(r.input, limit, jsonl.SkipBOM)
	decoder := protocol.NewDecoder()
	for {
		line, flags, err := lines.Next()
		switch {
		case errors.Is(err, process.ErrSettled):
			r.commands <- commandInput{settled: true}
			return
		case err != nil:
			// Any read error is an end of stdin (spec section 6).
			r.commands <- commandInput{closed: true}
			return
		case flags&jsonl.TooLong != 0:
			r.commands <- commandInput{fault: &protocol.CommandFault{
				Code:   protocol.CodeLineTooLong,
				Detail: fmt.Sprintf("line %d: expected at most %d bytes, got more", lines.LineNumber(), limit),
			}}
		default:
			// The state keeps a command, so the line has to be its own.
			c, fault := decoder.Command(append([]byte(nil), line...))
			if fault != nil {
				fault.Detail = fmt.Sprintf("line %d: %s", lines.LineNumber(), fault.Detail)
				r.commands <- commandInput{fault: fault}
				continue
			}
			r.commands <- commandInput{command: &c}
		}
	}
}

// harnessItem is one line of the harness: a message or a fault.
type harnessItem struct {
	message protocol.HarnessMessage
	fault   *protocol.MessageFault
	torn    bool
	cut     bool // torn because we stopped reading
	bytes   int
}

// harnessBatch is what one read brought. The loop gives it back when it is
// done with it.
type harnessBatch struct {
	lines jsonl.Batch
	items []harnessItem
	ended bool
	said  lifecycle.HarnessSaid // reused, so that a step costs no allocation
}

// errorBatch is the same for stderr.
type errorBatch struct {
	lines jsonl.Batch
	limit int
	ended bool
}

// text is a stderr line, or the marker of one that was too long.
func (b *errorBatch) text(line jsonl.Line) []byte {
	if line.Flags&jsonl.TooLong != 0 {
		return fmt.Appendf(nil, "[line of more than %d bytes dropped]", b.limit)
	}
	return b.lines.Bytes(line)
}

// cutReader reads a pipe until its end, or, once its read deadline has passed,
// what is in the pipe at that moment. So bytes written before the exit are
// never lost, however late they are read, and a holder of the pipe cannot
// keep it open.
type cutReader struct {
	f    *os.File
	cut  bool
	left int
	held bool // after the cut: this is not the end of the pipe
}

// endProbe is how long a pipe is given to show its end, which it does at once
// where nobody holds it.
const endProbe = 20 * time.Millisecond

func (r *cutReader) Read(p []byte) (int, error) {
	if !r.cut {
		n, err := r.f.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		r.cut = true
		r.left = process.Buffered(r.f)
		if err := r.f.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
	if r.left == 0 {
		r.held = !r.ended()
		return 0, io.EOF
	}
	n, err := r.f.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// ended reports whether nobody holds the pipe any more: then the cut was only
// late and has cut nothing.
func (r *cutReader) ended() bool {
	if err := r.f.SetReadDeadline(time.Now().Add(endProbe)); err != nil {
		return false
	}
	var one [1]byte
	_, err := r.f.Read(one[:])
	return errors.Is(err, io.EOF)
}

func readMessages(f *os.File, limit int, free, out chan *harnessBatch) {
	pipe := &cutReader{f: f}
	lines := jsonl.NewReader(pipe, limit)
	decoder := protocol.NewDecoder()
	for b := range free {
		err := lines.ReadBatch(&b.lines)
		b.items = b.items[:0]
		for _, line := range b.lines.Lines {
			if !b.decode(decoder, line, limit, pipe.held) {
				break
			}
		}
		b.ended = err != nil
		out <- b
		if err != nil {
			return
		}
	}
}

// decode adds one line to the batch; false after a fault, since nothing that
// comes after it counts.
func (b *harnessBatch) decode(d *protocol.Decoder, line jsonl.Line, limit int, cut bool) bool {
	if len(b.items) < cap(b.items) {
		b.items = b.items[:len(b.items)+1]
	} else {
		b.items = append(b.items, harnessItem{})
	}
	it := &b.items[len(b.items)-1]
	it.fault, it.torn, it.cut = nil, false, false
	it.bytes = line.End - line.Start
	if line.Flags&jsonl.TooLong != 0 {
		it.fault = &protocol.MessageFault{
			Code:   protocol.CodeHarnessLineTooLong,
			Detail: fmt.Sprintf("line %d: expected at most %d bytes, got more", line.Number, limit),
		}
		return false
	}
	fault := d.HarnessMessage(b.lines.Bytes(line), &it.message)
	if fault == nil {
		return true
	}
	it.fault = fault
	it.torn = line.Flags&jsonl.Unterminated != 0
	if it.torn {
		it.fault.Code = protocol.CodeHarnessTornLastLine
	}
	it.cut = it.torn && cut
	it.fault.Detail = fmt.Sprintf("line %d (%d bytes): %s", line.Number, it.bytes, fault.Detail)
	return false
}

func readErrors(f *os.File, limit int, free, out chan *errorBatch) {
	lines := jsonl.NewReader(&cutReader{f: f}, limit, jsonl.KeepBlank)
	for b := range free {
		err := lines.ReadBatch(&b.lines)
		b.limit = limit
		b.ended = err != nil
		out <- b
		if err != nil {
			return
		}
	}
}
