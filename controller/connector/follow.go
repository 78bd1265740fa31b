package connector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"prp/protocol"
)

const (
	// followEvery is how often it is looked for the end of a run of the connector
	// before.
	followEvery = 100 * time.Millisecond
	// maxTerminal bounds the file of a terminal, in bytes: the runner writes some
	// 700, beside ids of at most 140 characters.
	maxTerminal = 16 << 10
)

// follow waits for the true end of a run whose connector has died. Its runner
// saw the end of its stdin, ends the run, and writes the terminal to a file once
// nothing of it is left. Where no terminal comes the end is not known.
//
// The file has the end and no event before it: what a harness says is on disk in
// the spool only, masked and bounded. What the dead connector had not put there is
// lost with it, and is told to be (remote.md rules 4, 7 and 10).
func (r *run) follow() {
	deadline := time.Now().Add(r.c.cfg.Times.Ending)
	left := func() bool { return errors.Is(context.Cause(r.ctx), errLeft) }
	for !exists(r.terminalPath()) && time.Now().Before(deadline) && !left() {
		time.Sleep(followEvery) // a cancel changes nothing: the run is ending
	}
	if left() { // the next connector will find it
		r.c.call(func() {
			r.c.running--
			delete(r.c.runs, r.req.RunID)
		})
		return
	}
	terminal, err := r.readTerminal()
	end := r.ending(func(t *translation) event {
		r.source = r.told()
		r.retellUploads()
		switch {
		case errors.Is(err, os.ErrNotExist):
			return t.lost(stamp(), "the connector died, and the runner has told no end of the run")
		case err != nil:
			return t.lost(stamp(), "the connector died, and the end of the run cannot be read: "+err.Error())
		}
		r.terminal = terminal
		r.tellLost()
		return r.settle(t)
	})
	r.c.call(func() { r.c.finished(r, end) })
}

// told is the last event of the runner that the connector before has told.
func (r *run) told() int64 {
	told, err := strconv.ParseInt(r.spool.out.LastKey(), 10, 64)
	if err != nil {
		return 0 // nothing was told
	}
	return told
}

// retellUploads tells what became of the artifacts that the connector before has
// begun to send; the lock is held.
func (r *run) retellUploads() {
	err := r.c.retell(r.spool, func(name string) {
		r.put(warning(stamp(), codeNotUploaded, r.c.mask.String(fmt.Sprintf(
			"the connector died while the artifact %q was on its way; whether the store has it is not known", name)), members{"name": quoted(name)}))
	})
	if err != nil {
		go r.c.call(func() { r.c.fail(err) })
	}
}

// tellLost tells which events the connector before has not told; the lock is held.
func (r *run) tellLost() {
	told, last := r.source, r.terminal.SourceSeq-1
	r.source = last // told once, also where this connector dies here
	r.warned = true // whether there was a usage is not known
	if told >= last {
		return
	}
	r.put(warning(stamp(), "events_lost",
		fmt.Sprintf("%d events of the run were lost with the connector that died; artifacts of theirs were not uploaded", last-told), members{
			"from_source_seq": marshal(told + 1), "to_source_seq": marshal(last),
		}))
}

func (r *run) terminalPath() string { return filepath.Join(r.dir, terminalFile) }

// readTerminal reads what the runner has written at the end of the run.
func (r *run) readTerminal() (*protocol.Event, error) {
	f, err := os.Open(r.terminalPath())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, err := io.ReadAll(io.LimitReader(f, maxTerminal+1))
	if err != nil {
		return nil, err
	}
	if len(line) > maxTerminal {
		return nil, fmt.Errorf("expected at most %d bytes, got more", maxTerminal)
	}
	m, err := protocol.NewDecoder().Stream(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		return nil, err
	}
	if m.Event == nil || m.Event.EventType != protocol.EventRunTerminal || m.Event.RunID != r.req.RunID {
		return nil, errors.New("expected the terminal of this run, got something else")
	}
	return m.Event, nil
}
