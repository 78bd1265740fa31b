package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"prp/controller/bridge"
)

// Upload is a file and where it goes.
type Upload struct {
	// URL is the presigned URL. Issued is when it came, by [time.Now]; zero is
	// now.
	URL    string
	Issued time.Time
	// File is a regular file, open for reading. It is read from its beginning,
	// whatever its offset is, and stays open.
	File *os.File
	// Size is what the server was told, in bytes.
	Size int64
	// ContentType is sent as it is where it is not empty.
	ContentType string
}

// Upload sends a file by HTTP PUT and tells what the store took. It blocks until
// then, until [Config] gives it up, or until ctx ends. The error is an *[Error].
func (c *Client) Upload(ctx context.Context, u Upload) (Sum, error) {
	t, err := c.newTask("upload", u.URL, u.Issued)
	if err != nil {
		return Sum{}, err
	}
	before, err := u.File.Stat()
	if err == nil && !before.Mode().IsRegular() {
		err = fmt.Errorf("expected a regular file, got %v", before.Mode().Type())
	}
	if err == nil && strings.ContainsFunc(u.ContentType, unicode.IsControl) {
		err = fmt.Errorf("expected a content type on one line, got %q", u.ContentType)
	}
	if err == nil && before.Size() != u.Size {
		err = fmt.Errorf("expected the %d bytes that were announced, got %d: %w", u.Size, before.Size(), ErrChanged)
	}
	if err != nil {
		return Sum{}, t.fail(0, &failure{err: err, next: stop})
	}
	t.once = func(ctx context.Context) (Sum, *failure) {
		sum, failed := c.put(ctx, t.target.String(), u)
		// A change is told before anything else: it explains the rest.
		if after, err := u.File.Stat(); err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
			return Sum{}, &failure{err: fmt.Errorf("while it was sent: %w", errors.Join(ErrChanged, err)), next: stop}
		}
		return sum, failed
	}
	return c.run(ctx, t)
}

// put is one request.
func (c *Client) put(ctx context.Context, url string, u Upload) (Sum, *failure) {
	ctx, stall := bridge.WithStall(ctx, c.cfg.Stall)
	defer stall.Stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, http.NoBody)
	if err != nil {
		return Sum{}, &failure{err: errors.New("expected an address that can be requested"), next: stop}
	}
	body := newSending(u, stall)
	// A length of 0 with a body means "not known" to package http, and stores
	// refuse what has no length.
	if u.Size > 0 {
		r.ContentLength, r.Body = u.Size, body
		r.GetBody = func() (io.ReadCloser, error) {
			body = newSending(u, stall)
			return body, nil
		}
		// A store that refuses does so before the bytes are sent.
		r.Header.Set("Expect", "100-continue")
	}
	if u.ContentType != "" {
		r.Header.Set("Content-Type", u.ContentType)
	}
	answer, err := c.http.Do(r)
	if cause := body.cause(); cause != nil {
		if err == nil {
			answer.Body.Close()
		}
		return Sum{}, &failure{err: cause, next: stop}
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return Sum{}, netFailure(err)
	}
	defer answer.Body.Close()
	stall.Moved()
	switch answer.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
	default:
		return Sum{}, statusFailure(answer)
	}
	sum := body.sum()
	if sum.Size != u.Size {
		return Sum{}, &failure{err: fmt.Errorf("the store answered after %d of %d bytes", sum.Size, u.Size), status: answer.StatusCode}
	}
	return sum, nil
}

// sending is the body of one request. The client may still read it in another
// goroutine when the answer is there.
type sending struct {
	mu    sync.Mutex
	file  *io.SectionReader
	hash  hash.Hash
	n     int64
	err   error
	stall *bridge.Stall
}

func newSending(u Upload, stall *bridge.Stall) *sending {
	return &sending{file: io.NewSectionReader(u.File, 0, u.Size), hash: sha256.New(), stall: stall}
}

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.file.Read(p)
	s.hash.Write(p[:n])
	s.n += int64(n)
	s.stall.Moved()
	switch {
	case err == io.EOF && s.n < s.file.Size():
		err = fmt.Errorf("it ended after %d of %d bytes: %w", s.n, s.file.Size(), ErrChanged)
		s.err = err
	case err != nil && err != io.EOF:
		s.err = err
	}
	return n, err
}

// Close implements io.Closer. The file is the caller's.
func (s *sending) Close() error { return nil }

// cause is why the file could not be read.
func (s *sending) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *sending) sum() Sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Sum{Size: s.n, SHA256: hex.EncodeToString(s.hash.Sum(nil))}
}
