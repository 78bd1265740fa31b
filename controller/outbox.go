package controller

import (
	"os"

	"prp/protocol"
)

// outbox numbers commands and holds those that wait to be written and those
// that wait for their receipt. It is guarded by the client's lock.
type outbox struct {
	decoder *protocol.Decoder // checks our own lines as the runner will
	next    int64             // the sequence number of the next command
	// era counts how often the numbering was taken back; a receipt of an
	// earlier era says nothing about the numbers of this one.
	era     int
	pending map[string]*pending
	given   map[string]bool // ids that the caller chose
	queued  []byte          // whole lines, in order
	ending  bool            // no more commands; stdin ends when queued is empty
	broken  bool            // stdin cannot be written any more
}

// pending is a command without a receipt.
type pending struct {
	kind    protocol.CommandType
	seq     int64
	era     int
	done    chan struct{} // closed when receipt or err is there
	receipt protocol.Receipt
	err     error
}

func newOutbox() outbox {
	return outbox{
		decoder: protocol.NewDecoder(),
		next:    1,
		pending: map[string]*pending{},
		given:   map[string]bool{},
	}
}

// consumes tells whether a rejection with this code has used up the sequence
// number (spec section 2, checks 1 to 3 have not).
func consumes(code protocol.Code) bool {
	switch code {
	case protocol.CodeInvalidJSON, protocol.CodeUnsupportedSchema, protocol.CodeInvalidCommand,
		protocol.CodeLineTooLong, protocol.CodeCommandIDReused, protocol.CodeSequenceGap:
		return false
	}
	return true
}

// answer hands a receipt to the command that waits for it. Where the runner
// did not consume the number, it is given to the next command; the commands
// that are on the way behind it are refused as a gap, and belong to an era
// that is over.
func (o *outbox) answer(r protocol.Receipt) {
	p := o.pending[r.CommandID]
	if p == nil {
		o.skip(r)
		return
	}
	delete(o.pending, r.CommandID)
	p.receipt = r
	if r.Status == protocol.ReceiptRejected {
		p.err = &RejectedError{Type: p.kind, Receipt: r}
		if p.era == o.era && !consumes(r.Code) {
			o.next = p.seq
			o.era++
		}
	}
	close(p.done)
}

// skip moves the numbering past the number that a line of [Client.SendLine]
// has used up.
func (o *outbox) skip(r protocol.Receipt) {
	if r.Status == protocol.ReceiptDuplicate || r.Status == protocol.ReceiptRejected && !consumes(r.Code) {
		return
	}
	o.next = max(o.next, r.ControllerSeq+1)
}

// hasRoom tells whether a line of n bytes can be queued now. Any one line can,
// where nothing else waits.
func (o *outbox) hasRoom(n int) bool {
	return len(o.queued) == 0 || len(o.queued)+n <= maxQueuedBytes
}

// end refuses every further command.
func (o *outbox) end() { o.ending = true }

// failPending answers every command that will get no receipt any more.
func (o *outbox) failPending() {
	for id, p := range o.pending {
		p.err = ErrRunnerGone
		close(p.done)
		delete(o.pending, id)
	}
}

// wakeWriter tells the writer that there is something to do.
func (c *Client) wakeWriter() {
	select {
	case c.writerWake <- struct{}{}:
	default:
	}
}

// write pumps queued commands into the runner's stdin and ends it when that
// was asked for, or when it cannot be written.
func (c *Client) write(stdin *os.File) {
	defer stdin.Close()
	for {
		c.mu.Lock()
		lines := c.out.queued
		c.out.queued = nil
		ending := c.out.ending
		c.notify() // there is room again
		c.mu.Unlock()
		if len(lines) > 0 {
			if _, err := stdin.Write(lines); err != nil {
				c.mu.Lock()
				c.out.broken = true
				c.notify()
				c.mu.Unlock()
				return
			}
			continue
		}
		if ending {
			return
		}
		<-c.writerWake
	}
}
