package connector

import (
	"path/filepath"
	"strconv"

	"prp/controller/bridge"
)

// Stages of an upload. What becomes of each is on disk, so that the server is told
// of it also where the connector was killed (row 14, remote.md rule 4): the name,
// masked, and what is told, and nothing else of what the harness has said.
const (
	// uploadBegun is one that waits or is on its way.
	uploadBegun = "begun"
	// uploadDone is one whose artifact_uploaded is told, which is its result.
	uploadDone = "uploaded"
	// uploadFailed is one of which a warning was told.
	uploadFailed = "failed"
)

func openTransfers(dir string) (*bridge.Store, error) {
	return bridge.OpenStore(filepath.Join(dir, uploadsFile), bridge.StoreConfig{})
}

// noteUpload has it on disk that an artifact of this name is to be sent; the lock
// is held.
func (r *run) noteUpload(name string) (bridge.Remembered, error) {
	m := bridge.Remembered{ID: strconv.Itoa(len(r.sent)), Task: name, Tool: typeUpload, Status: uploadBegun}
	var err error
	if r.transfers == nil {
		r.transfers, err = openTransfers(r.dir)
	}
	if err == nil {
		err = r.transfers.Finish(m, nil)
	}
	return m, err
}

// endUpload tells what became of an artifact. It is on disk before it is sent.
func (r *run) endUpload(m bridge.Remembered, done *uploaded, failed error) {
	var body []byte
	if m.Status = uploadDone; failed != nil {
		m.Status = uploadFailed
		r.warn(codeNotUploaded, "the artifact "+strconv.Quote(m.Task)+" was not uploaded: "+failed.Error(), members{"name": quoted(m.Task)})
	} else {
		body = marshal(done)
	}
	if err := r.transfers.Finish(m, body); err != nil {
		r.c.call(func() { r.c.fail(err) })
		return
	}
	if body != nil {
		r.c.tellUploaded(body, r.spool)
	}
}

// tellUploaded queues artifact_uploaded. The folder of the run stays until the
// server has it.
func (c *Connector) tellUploaded(body []byte, s *spool) {
	c.queueAnswer(&answer{body: body, told: true, holds: s})
}

// retell tells what the connector before may not have told: the artifacts that
// are there, once more, and by lost the names of those of which it is not known.
func (c *Connector) retell(s *spool, lost func(name string)) error {
	if !exists(filepath.Join(s.dir, uploadsFile)) {
		return nil
	}
	store, err := openTransfers(s.dir)
	if err != nil {
		return err
	}
	defer store.Close()
	store.Each(func(m bridge.Remembered) {
		switch m.Status {
		case uploadDone:
			body, ok, readErr := store.Result(m.ID)
			if err == nil {
				err = readErr
			}
			if ok {
				c.tellUploaded(body, s)
			}
		case uploadBegun:
			lost(m.Task)
			m.Status = uploadFailed
			if failed := store.Finish(m, nil); err == nil {
				err = failed
			}
		}
	})
	return err
}
