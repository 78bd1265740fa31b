package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"prp/controller/bridge"
)

const (
	// hashHeader keeps the hash of an object beside it, where it was known
	// before the object was sent.
	hashHeader = "X-Amz-Meta-Sha256"
	// hashUnknown is sent otherwise, since there are stores that keep what stood
	// beside an object that is replaced.
	hashUnknown = "unknown"
)

// errHash is an object that is not what was put.
var errHash = errors.New("the object is not what was put")

// Info is what is known of an object.
type Info struct {
	// Size is in bytes.
	Size int64
	// SHA256 is lower-case hex, or empty where it was not known at the put.
	SHA256 string
}

// Put stores size bytes under a key, and replaces what is there. Where r is an
// io.Seeker it is read twice: the hash is signed, kept beside the object and
// checked by the store, and a try that fails is repeated. Otherwise the bytes
// are signed while they are sent, and sent once. Put blocks until the store has
// taken all, nothing has moved for a minute, or ctx ends; and until a Read of r
// that has begun returns, since r is not used afterwards.
func (s *Store) Put(ctx context.Context, key string, size int64, r io.Reader) error {
	u, err := s.address(key)
	if err != nil {
		return err
	}
	if size < 0 || size > MaxObject {
		return fmt.Errorf("put of %q: expected 0 to %d bytes, got %d", key, int64(MaxObject), size)
	}
	seeker, ok := r.(io.Seeker)
	if !ok {
		return s.put(ctx, key, u, size, r, "")
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	sum, err := sumOf(r, size)
	if err != nil {
		return fmt.Errorf("put of %q: %w", key, err)
	}
	return s.retry(ctx, func() error {
		if _, err := seeker.Seek(start, io.SeekStart); err != nil {
			return &localError{err}
		}
		return s.put(ctx, key, u, size, r, sum)
	})
}

// sumOf reads size bytes, which have to be all.
func sumOf(r io.Reader, size int64) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("expected %d, got %d or more: %w", size, n, errSize)
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// put is one request. An empty sum is not known.
func (s *Store) put(ctx context.Context, key string, u *url.URL, size int64, r io.Reader, sum string) error {
	ctx, stall := bridge.WithStall(ctx, s.cfg.Stall)
	defer stall.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), http.NoBody)
	if err != nil {
		return &localError{err}
	}
	body := &reading{from: r, stall: stall}
	defer body.detach()
	sign := s.signer()
	if sum != "" {
		request.Header.Set(hashHeader, sum)
		sign.signHeader(request, sum)
		request.ContentLength = size
		if size > 0 { // a body of length 0 means "not known" to package http
			request.Body = io.NopCloser(body)
		}
	} else {
		request.Header.Set(hashHeader, hashUnknown)
		request.Header.Set("Content-Encoding", "aws-chunked")
		request.Header.Set("X-Amz-Decoded-Content-Length", fmt.Sprint(size))
		seed := sign.signHeader(request, chunked)
		request.ContentLength = chunkedLength(size)
		request.Body = io.NopCloser(newChunkReader(sign, seed, body, size))
	}
	answer, err := s.do(request, "put", key, stall)
	if err != nil {
		return err
	}
	if n := body.count(); n != size {
		answer.Body.Close()
		return fmt.Errorf("put of %q: expected an answer after %d bytes, got success after %d", key, size, n)
	}
	return answer.Body.Close()
}

// do sends a request and returns its answer where it is a success. Nothing of
// the address stands in the error.
func (s *Store) do(r *http.Request, op, key string, stall *bridge.Stall) (*http.Response, error) {
	answer, err := s.cfg.Client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		if r.Context().Err() != nil {
			err = context.Cause(r.Context())
		}
		return nil, fmt.Errorf("%s of %q with host %q: %w", op, key, r.URL.Host, err)
	}
	stall.Moved()
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		return nil, &Error{Op: op, Key: key, Status: answer.StatusCode, Code: ErrorCode(answer.Body)}
	}
	return answer, nil
}

// reading tells that a transfer moves. Package http may still read a body when
// the answer is there, but the reader is the caller's again then.
type reading struct {
	mu    sync.Mutex
	from  io.Reader
	n     int64
	stall *bridge.Stall
}

// errDetached is what package http reads when it is late.
var errDetached = errors.New("the request is over")

// Read implements io.Reader.
func (r *reading) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.from == nil {
		return 0, errDetached
	}
	n, err := r.from.Read(p)
	r.n += int64(n)
	r.stall.Moved()
	return n, err
}

// count is how many bytes were taken.
func (r *reading) count() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func (r *reading) detach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from = nil
}

// Stat tells what is stored under a key. A key that is not there is an
// [fs.ErrNotExist].
func (s *Store) Stat(ctx context.Context, key string) (Info, error) {
	var info Info
	err := s.retry(ctx, func() error {
		ctx, stall := bridge.WithStall(ctx, s.cfg.Stall)
		defer stall.Stop()
		answer, err := s.ask(ctx, http.MethodHead, "stat", key, stall)
		if err != nil {
			return err
		}
		info = Info{Size: answer.ContentLength, SHA256: keptHash(answer)}
		return answer.Body.Close()
	})
	return info, err
}

// Get returns the bytes under a key and their number. Reading ends with io.EOF
// only where all of them came and have the hash that was kept at the put. The
// caller closes the reader, and bounds what it takes. A key that is not there is
// an [fs.ErrNotExist].
func (s *Store) Get(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	var object *object
	err := s.retry(ctx, func() error {
		ctx, stall := bridge.WithStall(ctx, s.cfg.Stall)
		answer, err := s.ask(ctx, http.MethodGet, "get", key, stall)
		if err == nil && answer.ContentLength < 0 {
			answer.Body.Close()
			err = fmt.Errorf("get of %q: expected an answer with a length", key)
		}
		if err != nil {
			stall.Stop()
			return err
		}
		object = newObject(ctx, key, answer, stall)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return object, object.size, nil
}

// ask sends a request without a body.
func (s *Store) ask(ctx context.Context, method, op, key string, stall *bridge.Stall) (*http.Response, error) {
	u, err := s.address(key)
	if err != nil {
		return nil, &localError{err}
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), http.NoBody)
	if err != nil {
		return nil, &localError{err}
	}
	sign := s.signer()
	sign.signHeader(r, emptyHash)
	// The bytes as they are stored; package http would unpack what it asked for
	// by itself. Not signed, since proxies change this header.
	r.Header.Set("Accept-Encoding", "identity")
	return s.do(r, op, key, stall)
}

// keptHash is the hash that stands beside an object, or empty. Others may have
// put it, so what is no hash is none.
func keptHash(a *http.Response) string {
	text := a.Header.Get(hashHeader)
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != sha256.Size {
		return ""
	}
	return strings.ToLower(text)
}

// object is the body of an answer, with its hash.
type object struct {
	ctx   context.Context
	key   string
	body  io.ReadCloser
	stall *bridge.Stall
	size  int64
	want  string
	hash  hash.Hash
}

func newObject(ctx context.Context, key string, a *http.Response, stall *bridge.Stall) *object {
	return &object{
		ctx: ctx, key: key, body: a.Body, stall: stall, size: a.ContentLength, want: keptHash(a), hash: sha256.New(),
	}
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	n, err := o.body.Read(p)
	o.stall.Moved()
	o.hash.Write(p[:n])
	switch {
	case err == io.EOF && o.want != "" && hex.EncodeToString(o.hash.Sum(nil)) != o.want:
		err = fmt.Errorf("get of %q: expected the hash %q: %w", o.key, o.want, errHash)
	case err != nil && err != io.EOF:
		if o.ctx.Err() != nil {
			err = context.Cause(o.ctx)
		}
		err = fmt.Errorf("get of %q: %w", o.key, err)
	}
	return n, err
}

// Close implements io.Closer.
func (o *object) Close() error {
	o.stall.Stop()
	return o.body.Close()
}
