package connector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"prp/controller/artifact"
	"prp/protocol"
)

// inputFile is an artifact of a context_bundle as the harness sees it.
type inputFile struct {
	ArtifactID string `json:"artifact_id"`
	Path       string `json:"path,omitempty"`
	Error      string `json:"error,omitempty"`
}

// maxURLs is how many URLs are asked for to move one artifact (row 14).
const maxURLs = 3

// uploadRequest and downloadRequest ask for a URL (seed).
type uploadRequest struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	RunID       string `json:"run_id"`
	Name        string `json:"name"`
	ContentType string `json:"content_type"`
	SizeBytes   int64  `json:"size_bytes"`
}

type downloadRequest struct {
	Type       string `json:"type"`
	ID         string `json:"id"`
	RunID      string `json:"run_id"`
	ArtifactID string `json:"artifact_id"`
}

// uploaded tells that the bytes are there (row 14).
type uploaded struct {
	Type       string `json:"type"`
	RunID      string `json:"run_id"`
	ArtifactID string `json:"artifact_id"`
	SizeBytes  int64  `json:"size_bytes"`
	SHA256     string `json:"sha256"`
}

// errNoArtifacts is a connector that moves none.
var errNoArtifacts = errors.New("this connector moves no artifacts")

// askURL asks for a URL and waits. It is called outside the loop.
func (r *run) askURL(ctx context.Context, kind, id, key string, body []byte) (serverAnswer, error) {
	type reply struct {
		answer serverAnswer
		err    *Error
	}
	got := make(chan reply, 1)
	r.c.call(func() {
		r.c.send(&ask{
			id: id, kind: kind, run: r, key: key, body: body, until: time.Now().Add(r.c.cfg.Times.URL),
			done: func(a serverAnswer, e *Error) { got <- reply{a, e} },
		})
	})
	select {
	case k := <-got:
		if k.err != nil {
			return k.answer, k.err
		}
		return k.answer, nil
	case <-ctx.Done():
		return serverAnswer{}, context.Cause(ctx)
	}
}

// fetchWithin is fetchInputs within the time of the run, which counts from its
// start (row 8); false where that is over. Zero is no limit.
func (r *run) fetchWithin(limit time.Duration) (inputs []inputFile, inTime bool) {
	ctx := r.ctx
	if limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	inputs = r.fetchInputs(ctx)
	return inputs, ctx.Err() == nil
}

// fetchInputs brings the artifacts of the context_bundle (row 14). One that
// cannot be had is told, to the server and to the harness, and the run begins.
func (r *run) fetchInputs(ctx context.Context) []inputFile {
	var list []inputFile
	for _, id := range r.req.Artifacts {
		in := inputFile{ArtifactID: id}
		path, err := r.fetch(ctx, id)
		if err != nil {
			in.Error = r.c.mask.String(err.Error())
			r.warn("artifact_not_downloaded", "an artifact was not downloaded: "+err.Error(), members{"artifact_id": quoted(id)})
		} else {
			in.Path = path
		}
		list = append(list, in)
	}
	return list
}

// fetch downloads one artifact into the folder of the run. An id of a server is
// no file name.
func (r *run) fetch(ctx context.Context, id string) (string, error) {
	if r.c.cfg.Artifacts == nil {
		return "", errNoArtifacts
	}
	dir, err := filepath.Abs(filepath.Join(r.dir, inputsDir))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum := sha256.Sum256([]byte(id))
	name := hex.EncodeToString(sum[:16])
	err = withURL(ctx, func() error {
		request := downloadRequest{Type: typeDownload, ID: newID(), RunID: r.req.RunID, ArtifactID: id}
		a, err := r.askURL(ctx, typeDownload, request.ID, id, marshal(request))
		if err != nil {
			return err
		}
		_, err = r.c.cfg.Artifacts.Download(ctx, artifact.Download{
			URL: a.DownloadURL, Root: root, Name: name, Want: artifact.Sum{Size: a.SizeBytes, SHA256: a.SHA256},
		})
		return err
	})
	return filepath.Join(dir, name), err
}

// withURL tries a transfer, with a new URL where the one before is used up.
func withURL(ctx context.Context, try func() error) error {
	var err error
	for range maxURLs {
		if err = try(); !errors.Is(err, artifact.ErrNewURL) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

const (
	// uploadsAtOnce bounds the artifacts of a run that are on their way: each has
	// two files open.
	uploadsAtOnce = 4
	// maxUploads bounds the artifacts of a run.
	maxUploads = 1000
	// codeNotUploaded is of the warning of each that the server does not get.
	codeNotUploaded = "artifact_not_uploaded"
)

// uploadAll sends the artifacts that an event names; the lock is held.
func (r *run) uploadAll(e *protocol.Event) {
	switch e.EventType {
	case eventArtifact:
		r.upload(e.Payload)
	case protocol.EventResultProposed:
		for _, a := range r.tr.artifacts {
			r.upload(a)
		}
	}
}

// upload sends an artifact that the harness names by a path inside the agent's
// working folder, once; the lock is held. The completion waits for it. A failure
// is a warning and never changes the outcome of the run (remote.md rule 8).
func (r *run) upload(raw json.RawMessage) {
	p := payloadOf(raw)
	path := unquoted(p["path"])
	if path == "" || r.sent[path] || r.uploaded || !r.mayUpload() {
		return // it is a reference to something else, or on its way
	}
	if len(r.sent) >= maxUploads {
		if !r.many {
			r.put(warning(stamp(), codeNotUploaded, fmt.Sprintf("the run has more artifacts than %d, of which no more are uploaded", maxUploads), nil))
		}
		r.many = true
		return
	}
	r.sent[path] = true
	request := uploadRequest{
		Type: typeUpload, RunID: r.req.RunID, Name: r.c.mask.String(unquoted(p["name"])), ContentType: unquoted(p["content_type"]),
	}
	if request.Name == "" {
		request.Name = r.c.mask.String(filepath.Base(path))
	}
	if request.ContentType == "" {
		request.ContentType = "application/octet-stream"
	}
	m, err := r.noteUpload(request.Name)
	if err != nil {
		go r.c.call(func() { r.c.fail(err) })
		return
	}
	r.uploads.Go(func() {
		done, err := r.sendFile(path, request)
		r.endUpload(m, done, err)
	})
}

// awaitUploads waits for what is on its way when the run has ended, within
// bounds: a slow store does not keep the completion from the server.
func (r *run) awaitUploads() {
	r.mu.Lock()
	r.uploaded = true
	r.mu.Unlock()
	limit := time.AfterFunc(r.c.cfg.Times.Upload, func() { r.stopMoves(errSlowUpload) })
	defer limit.Stop()
	r.uploads.Wait()
	if r.transfers != nil {
		r.transfers.Close()
	}
}

// mayUpload tells whether there is where artifacts can come from.
func (r *run) mayUpload() bool { return r.c.cfg.Artifacts != nil && r.agent.Cwd != "" }

func (r *run) sendFile(path string, request uploadRequest) (done *uploaded, err error) {
	select {
	case r.moving <- struct{}{}:
		defer func() { <-r.moving }()
	case <-r.moves.Done():
	}
	if r.moves.Err() != nil {
		return nil, context.Cause(r.moves)
	}
	root, err := os.OpenRoot(r.agent.Cwd)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if filepath.IsAbs(path) {
		if path, err = filepath.Rel(r.agent.Cwd, path); err != nil {
			return nil, err
		}
	}
	// What leads out of the folder is refused. A FIFO would block in open.
	info, err := root.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("expected a regular file, got %s", info.Mode().Type())
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	request.SizeBytes = info.Size()
	err = withURL(r.moves, func() error {
		request.ID = newID()
		a, err := r.askURL(r.moves, typeUpload, request.ID, "", marshal(request))
		if err != nil {
			return err
		}
		sum, err := r.c.cfg.Artifacts.Upload(r.moves, artifact.Upload{
			URL: a.UploadURL, File: f, Size: request.SizeBytes, ContentType: request.ContentType,
		})
		if err != nil {
			return err
		}
		done = &uploaded{
			Type: typeUploaded, RunID: r.req.RunID, ArtifactID: a.ArtifactID, SizeBytes: sum.Size, SHA256: sum.SHA256,
		}
		return nil
	})
	return done, err
}
