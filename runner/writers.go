package runner

import (
	"fmt"
	"os"
	"time"

	"prp/protocol"
	"prp/protocol/journal"
	"prp/runner/lifecycle"
	"prp/runner/process"
)

// stdoutWriter writes buffers of whole lines, one at a time, to the journal
// and then to stdout.
type stdoutWriter struct {
	buffers chan []byte
	written chan error // the answer to each buffer; an error is told once
	spare   []byte
	ended   chan struct{}
}

func writeStream(spawn func(func()), stdout *os.File, log *journal.Journal) *stdoutWriter {
	w := &stdoutWriter{buffers: make(chan []byte), written: make(chan error, 1), ended: make(chan struct{})}
	spawn(func() { w.serve(stdout, log) })
	return w
}

// write hands a buffer over and returns an empty one. The caller waits for
// the answer on written before it calls again.
func (w *stdoutWriter) write(lines []byte) []byte {
	empty := w.spare[:0]
	w.spare = lines
	w.buffers <- lines
	return empty
}

// close ends the writer and waits for it; everything has been written.
func (w *stdoutWriter) close() {
	close(w.buffers)
	<-w.ended
}

func (w *stdoutWriter) serve(stdout *os.File, log *journal.Journal) {
	broken := false
	for lines := range w.buffers {
		var err error
		if log != nil {
			if err := log.Append(lines); err != nil {
				log.Close()
				log = nil
				lines = journalFailed(lines, err)
			}
		}
		if !broken {
			_, err = stdout.Write(lines)
			broken = err != nil
		}
		w.written <- err
	}
	if log != nil {
		// The lines are in the file; a failing sync has nobody left to tell.
		_ = log.Sync()
		log.Close()
	}
	close(w.ended)
}

// journalFailed puts a diagnostic before the lines that the journal does not
// have. They may be the last ones: after them it would come too late.
func journalFailed(lines []byte, err error) []byte {
	told := protocol.AppendDiagnostic(nil, &protocol.Diagnostic{
		Level: protocol.LevelError, Code: codeJournal,
		Message: fmt.Sprintf("the journal cannot be written any more, what follows is not in it: %v", err),
	})
	return append(told, lines...)
}

// codeJournal is the code of the diagnostic of a journal that failed.
const codeJournal protocol.Code = "journal_failed"

// harnessEnds are the loop's ends of the goroutines around the harness. The
// zero value is a harness that is not there.
type harnessEnds struct {
	child      *process.Child
	batches    chan *harnessBatch
	free       chan *harnessBatch
	errors     chan *errorBatch
	freeErrors chan *errorBatch
	exited     <-chan process.Exit
	gone       <-chan process.Containment
	stdin      *harnessWriter
}

// pipeRoom is the room of the pipes that events pass through, in bytes: four
// times what Linux gives by itself saves a fifth of the time of a flood, since
// a writer is woken less often.
const pipeRoom = 256 << 10

// readHarness starts the goroutines around a harness that was started.
func readHarness(spawn func(func()), child *process.Child, limit int, facts chan<- lifecycle.Input) harnessEnds {
	h := harnessEnds{
		child:      child,
		batches:    make(chan *harnessBatch, batchCount),
		free:       make(chan *harnessBatch, batchCount),
		errors:     make(chan *errorBatch, batchCount),
		freeErrors: make(chan *errorBatch, batchCount),
		exited:     child.Exited(),
		gone:       child.Gone(),
		stdin:      writeHarness(spawn, child.Stdin, facts),
	}
	for range batchCount {
		h.free <- &harnessBatch{}
		h.freeErrors <- &errorBatch{}
	}
	process.EnlargePipe(child.Stdout, pipeRoom)
	spawn(func() { readMessages(child.Stdout, limit, h.free, h.batches) })
	spawn(func() { readErrors(child.Stderr, limit, h.freeErrors, h.errors) })
	return h
}

// cut ends the reading at what is in the pipes now.
func (h *harnessEnds) cut() {
	now := time.Now()
	_ = h.child.Stdout.SetReadDeadline(now)
	_ = h.child.Stderr.SetReadDeadline(now)
}

// close lets go of the pipes; both readers have ended.
func (h *harnessEnds) close() {
	h.closeInput(false)
	h.child.Stdout.Close()
	h.child.Stderr.Close()
}

func (h *harnessEnds) send(fx *lifecycle.Effect) {
	h.stdin.queue <- queuedCommand{
		line: protocol.AppendHarnessCommand(nil, fx.Family, fx.Command.CommandID, fx.Command.Type, fx.Command.Payload),
		id:   fx.Command.CommandID,
		size: fx.Size,
	}
}

// closeInput closes the harness's stdin, after what is queued or at once.
func (h *harnessEnds) closeInput(flush bool) {
	if h.stdin == nil {
		return
	}
	if !flush {
		// A write that blocks fails at once; what is queued is given up.
		_ = h.child.Stdin.SetWriteDeadline(time.Now())
	}
	if !h.stdin.closed {
		h.stdin.closed = true
		close(h.stdin.queue)
	}
}

// queuedCommand is one line for the harness.
type queuedCommand struct {
	line []byte
	id   string
	size int
}

// harnessWriter writes the commands that are queued for the harness's stdin.
type harnessWriter struct {
	queue  chan queuedCommand
	closed bool          // by the loop
	ended  chan struct{} // closed when the writer has told all it has to tell
}

// writeHarness starts the writer. The queue holds more than lifecycle lets
// wait, so that the loop never blocks on it.
func writeHarness(spawn func(func()), stdin *os.File, facts chan<- lifecycle.Input) *harnessWriter {
	const room = 512
	w := &harnessWriter{queue: make(chan queuedCommand, room), ended: make(chan struct{})}
	spawn(func() { w.serve(stdin, facts) })
	return w
}

func (w *harnessWriter) serve(stdin *os.File, facts chan<- lifecycle.Input) {
	defer close(w.ended)
	for c := range w.queue {
		if _, err := stdin.Write(c.line); err != nil {
			stdin.Close()
			lost := []string{c.id}
			facts <- lifecycle.HarnessInputBroken{Undelivered: lost}
			for c := range w.queue {
				facts <- lifecycle.HarnessInputBroken{Undelivered: []string{c.id}}
			}
			return
		}
		facts <- lifecycle.HarnessInputWritten{Commands: 1, Size: c.size}
	}
	stdin.Close()
}
