package connector

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"prp/controller/bridge"
)

// spoolBytes bounds the events that wait, over all runs (remote.md rule 10).
const spoolBytes = bridge.DefaultSpoolBytes

// spool has the events of one run until the server has acknowledged them.
type spool struct {
	runID string
	dir   string
	out   *bridge.Outbox

	mu sync.Mutex
	// over tells that the completion is in it.
	over bool
}

// endKey is the key of a completion, before its status.
const endKey = "end:"

// openSpool opens the events of a run.
func (c *Connector) openSpool(runID string) (*spool, error) {
	s := &spool{runID: runID, dir: c.runDir(runID)}
	share := max(minSpool, int64(spoolBytes)/int64(c.cfg.MaxConcurrentRuns))
	out, err := bridge.OpenOutbox(filepath.Join(s.dir, eventsFile), bridge.OutboxConfig{SpoolBytes: share, Strict: true})
	if err != nil {
		return nil, err
	}
	s.out = out
	c.mu.Lock()
	c.spools = append(c.spools, s)
	c.mu.Unlock()
	return s, nil
}

// put numbers an event and has it on disk. Key says how far the events of the
// run have come.
func (s *spool) put(ev event, key string) (int64, error) {
	return s.out.Put(key, ev.soft, func(seq int64) []byte { return ev.frame(s.runID, seq) })
}

func (s *spool) setOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// finished tells that nothing will come any more and all is acknowledged.
func (s *spool) finished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over && s.out.Acked() == s.out.Last()
}

// dropSpools forgets runs of which the server has everything.
func (c *Connector) dropSpools() {
	c.mu.Lock()
	var gone []*spool
	c.spools = slices.DeleteFunc(c.spools, func(s *spool) bool {
		if !s.finished() || slices.ContainsFunc(c.answers, func(a *answer) bool { return a.run == s || a.holds == s }) {
			return false
		}
		gone = append(gone, s)
		return true
	})
	c.mu.Unlock()
	for _, s := range gone {
		s.out.Close()
		if err := os.RemoveAll(s.dir); err != nil {
			c.cfg.Report("the folder of a run cannot be removed: " + err.Error())
		}
	}
}

// undelivered counts what a drain waits for. Unread are answers that were written;
// of those that the next start would tell once more it has to be known that they
// were read.
func (c *Connector) undelivered() (n, unread int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.answers {
		switch {
		case a.session == 0 || a.session != c.session:
			n++
		case a.holds != nil:
			unread++
		}
	}
	for _, s := range c.spools {
		// Those of runs that wait for the next start have nothing to deliver.
		if s.out.Acked() < s.out.Last() {
			n++
		}
	}
	return n, unread
}

// runDir is the folder of a run. An id of a server is no file name.
func (c *Connector) runDir(runID string) string {
	sum := sha256.Sum256([]byte(runID))
	return filepath.Join(c.cfg.Dir, runsDir, hex.EncodeToString(sum[:16]))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// newID is an id that nobody else has, in the form of a UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (package crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
