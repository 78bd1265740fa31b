package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"prp/controller/checkpoint"
)

const (
	// idleTimeout is how long no byte may go through (workerclient.md row 4).
	idleTimeout = 60 * time.Second
	// maxAnswer bounds what is read of a refusal, in bytes.
	maxAnswer = 4096
)

// retryWaits are the waits before the tries that follow the first.
var retryWaits = []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second}

// Config says where a bucket is.
type Config struct {
	// Endpoint is the address of the store without the bucket.
	Endpoint string
	// Bucket is its name, Prefix what stands before each key, without a slash at
	// its end; it may be empty.
	Bucket, Prefix string
	// Region is the one that requests are signed for.
	Region string
	Keys   Keys
	// Client makes the calls.
	Client *http.Client
}

// Store is a bucket. It is safe for use by many goroutines.
type Store struct {
	cfg Config
	// waits are retryWaits; tests shorten them.
	waits []time.Duration
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// New checks the names of a bucket. Nothing is called.
func New(cfg Config) (*Store, error) {
	if !bucketName.MatchString(cfg.Bucket) {
		return nil, fmt.Errorf("expected a bucket of 3 to 63 letters a-z, digits, '.' and '-', got %q", cfg.Bucket)
	}
	if cfg.Prefix != "" {
		if err := checkpoint.CheckKey(cfg.Prefix); err != nil {
			return nil, fmt.Errorf("prefix: %w", err)
		}
	}
	if cfg.Region == "" || cfg.Keys.AccessKey == "" || cfg.Keys.SecretKey == "" || cfg.Client == nil {
		return nil, errors.New("expected a region, an access key, a secret key and a client, got not all of them")
	}
	cfg.Endpoint = strings.TrimRight(cfg.Endpoint, "/")
	return &Store{cfg: cfg, waits: retryWaits}, nil
}

// refusal is an answer that is no success.
type refusal struct {
	status int
	code   string
}

// Error implements error.
func (r *refusal) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the store answered with status %d %s", r.status, r.code))
}

// errIdle ends a call through which nothing goes.
var errIdle = fmt.Errorf("no byte went through within %s", idleTimeout)

// Put implements checkpoint.PayloadStore. The store has the bytes when it returns
// nil. It tries again only where r is an io.Seeker.
func (s *Store) Put(ctx context.Context, key string, size int64, r io.Reader) error {
	seeker, again := r.(io.Seeker)
	var start int64
	if again {
		at, err := seeker.Seek(0, io.SeekCurrent)
		if err != nil {
			return fmt.Errorf("store payload %q: %w", key, err)
		}
		start = at
	}
	for try := 0; ; try++ {
		answer, end, err := s.call(ctx, http.MethodPut, key, r, size)
		if err == nil {
			answer.Body.Close()
			end()
			return nil
		}
		if !again || !s.wait(ctx, try, err) {
			return fmt.Errorf("store payload %q: %w", key, err)
		}
		if _, err := seeker.Seek(start, io.SeekStart); err != nil {
			return fmt.Errorf("store payload %q: %w", key, err)
		}
	}
}

// Get implements checkpoint.PayloadStore.
func (s *Store) Get(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	for try := 0; ; try++ {
		answer, end, err := s.call(ctx, http.MethodGet, key, nil, 0)
		if err == nil && answer.ContentLength < 0 {
			answer.Body.Close()
			end()
			return nil, 0, fmt.Errorf("payload %q: expected the store to tell its size", key)
		}
		if err == nil {
			return &object{answer.Body, end}, answer.ContentLength, nil
		}
		if !s.wait(ctx, try, err) {
			return nil, 0, fmt.Errorf("payload %q: %w", key, err)
		}
	}
}

// wait waits before another try; false is an error that no other try changes.
func (s *Store) wait(ctx context.Context, try int, err error) bool {
	if r := (*refusal)(nil); errors.As(err, &r) && r.status != http.StatusTooManyRequests && r.status < 500 {
		return false
	}
	if try >= len(s.waits) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLength) || ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(s.waits[try])
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errLength is a payload that is not as long as it was said to be.
var errLength = errors.New("expected another number of bytes")

// call makes a request and returns its answer where it is a success; end releases
// what it holds, after the body was closed. Nobody reads body after an error.
func (s *Store) call(ctx context.Context, method, key string, body io.Reader, size int64) (*http.Response, func(), error) {
	if err := checkpoint.CheckKey(key); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	idle := time.AfterFunc(idleTimeout, func() { cancel(errIdle) })
	var source *exact
	if body != nil {
		source = newExact(&flowing{body, idle, ctx}, size)
	}
	end := func() {
		idle.Stop()
		cancel(nil)
		if source != nil {
			<-source.closed
		}
	}
	answer, err := s.send(ctx, method, key, source, size)
	if err == nil {
		err = refused(method, answer)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	inner := answer.Body
	answer.Body = &object{io.NopCloser(&flowing{inner, idle, ctx}), func() { inner.Close() }}
	return answer, end, nil
}

// refused closes the body of an answer that is no success, and says why.
func refused(method string, answer *http.Response) error {
	if answer.StatusCode/100 == 2 {
		return nil
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound && method == http.MethodGet {
		return fs.ErrNotExist
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // what came is shown
	_, code, _ := strings.Cut(string(text), "<Code>")
	code, _, found := strings.Cut(code, "</Code>")
	if !found || len(code) > 100 {
		code = ""
	}
	return &refusal{answer.StatusCode, code}
}

func (s *Store) send(ctx context.Context, method, key string, source *exact, size int64) (*http.Response, error) {
	address := s.cfg.Endpoint + "/" + path.Join(s.cfg.Bucket, s.cfg.Prefix, key)
	var body io.Reader
	if source != nil {
		body = source
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		if source != nil {
			source.Close()
		}
		return nil, errors.New("expected an address such as https://host, got one that cannot be read")
	}
	r.ContentLength = size
	sign(r, s.cfg.Keys, s.cfg.Region, unsigned, time.Now())
	answer, err := s.cfg.Client.Do(r)
	if source != nil && source.wrong.Load() {
		if err == nil {
			answer.Body.Close()
		}
		return nil, errLength
	}
	if err == nil {
		return answer, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // without the address
	}
	return nil, err
}
