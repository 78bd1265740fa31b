package connector

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"prp/protocol"
	"prp/protocol/journal"
)

const (
	// followEvery is how often the journal of a run of the connector before is
	// looked at.
	followEvery = 100 * time.Millisecond
	// maxJournalLine bounds a line of it, in bytes, as controller does.
	maxJournalLine = 4 << 20
)

// errEnough ends the reading of a journal.
var errEnough = errors.New("enough")

// follow waits for the true end of a run whose connector has died. Its runner
// saw the end of its stdin, ends the run, and writes the terminal to the journal
// once nothing of it is left. Where no terminal comes the end is not known.
func (r *run) follow() {
	r.past = true
	deadline := time.Now().Add(r.c.cfg.Times.Ending)
	left := func() bool { return errors.Is(context.Cause(r.ctx), errLeft) }
	for !r.journalEnded() && time.Now().Before(deadline) && !left() {
		time.Sleep(followEvery) // a cancel changes nothing: the run is ending
	}
	if left() { // the next connector will find it
		r.c.call(func() {
			r.c.running--
			delete(r.c.runs, r.req.RunID)
		})
		return
	}
	err := r.replay()
	end := r.ending(func(t *translation) event {
		switch {
		case err != nil:
			return t.lost(stamp(), "the journal of the run cannot be read: "+err.Error())
		case r.terminal == nil:
			return t.lost(stamp(), "the connector died, and the journal of the run has no end")
		}
		for range t.artifacts {
			r.put(warning(stamp(), "artifact_not_uploaded", "the connector died before an artifact was uploaded", nil))
		}
		return r.settle(t)
	})
	r.c.call(func() { r.c.finished(r, end) })
}

// journalEnded tells whether the journal has a terminal. It is read only where it
// has grown.
func (r *run) journalEnded() bool {
	ended := false
	info, err := os.Stat(filepath.Join(r.dir, journalFile))
	if err != nil || info.Size() == r.seen {
		return false
	}
	r.seen = info.Size()
	_ = r.journal(func(e *protocol.Event) error { // it may not be there yet
		ended = e.EventType == protocol.EventRunTerminal
		return nil
	})
	return ended
}

// replay tells what the connector before has not told.
func (r *run) replay() error {
	told, err := strconv.ParseInt(r.spool.out.LastKey(), 10, 64)
	if err != nil {
		told = 0 // nothing was told
	}
	r.source = told
	err = r.journal(func(e *protocol.Event) error {
		if e.SourceSeq <= told {
			r.mu.Lock()
			r.tr.apply(e)
			r.mu.Unlock()
			return nil
		}
		r.take(e)
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil // the runner had not come to its first event
	}
	return err
}

// journal gives the events of the run's journal to fn.
func (r *run) journal(fn func(*protocol.Event) error) error {
	decoder := protocol.NewDecoder()
	err := journal.Read(filepath.Join(r.dir, journalFile), maxJournalLine, func(_ int64, line []byte) error {
		m, err := decoder.Stream(line)
		if err != nil {
			return errEnough // what comes after a fault is not the run's
		}
		if m.Event == nil {
			return nil
		}
		return fn(m.Event)
	})
	if errors.Is(err, errEnough) || errors.As(err, new(*journal.TornError)) {
		return nil
	}
	return err
}
