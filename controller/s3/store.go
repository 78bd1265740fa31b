package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"prp/controller/bridge"
)

// Limits of a store.
const (
	// DefaultStall is how long a transfer may move nothing (workerclient.md row
	// 4).
	DefaultStall = 60 * time.Second
	// DefaultTries is how often a request that may be repeated is sent.
	DefaultTries = 3
	// MaxObject is what one PUT may carry, in bytes: 5 GiB in every S3.
	MaxObject = 5 << 30
	// MaxLife bounds a presigned URL, as S3 does.
	MaxLife = 7 * 24 * time.Hour
	// maxKey bounds a key, in bytes, as S3 does.
	maxKey = 1024
	// maxAnswer bounds what is read of an error, in bytes.
	maxAnswer = 4 << 10
)

// Config names a bucket and who uses it.
type Config struct {
	// Endpoint is the address of the store, such as https://s3.example.com, with
	// the path before the bucket where there is one. Plain http is for loopback
	// only, unless AllowPlain is set (remote.md rule 11).
	Endpoint   string
	AllowPlain bool
	// Region is the name that requests are signed for; empty is us-east-1.
	Region string
	Bucket string
	// Prefix stands before every key, such as "checkpoints/".
	Prefix string
	// AccessKey and SecretKey are the account; SessionToken belongs to a
	// temporary one.
	AccessKey, SecretKey, SessionToken string
	// Client makes the requests and must follow no redirect; nil is the client
	// of an empty [bridge.TLS].
	Client *http.Client

	Stall   time.Duration
	Tries   int
	Backoff bridge.Backoff

	// Now is the clock of the signatures; nil is [time.Now].
	Now func() time.Time
}

// Store is one bucket. It is safe for use by many goroutines.
type Store struct {
	cfg  Config
	base *url.URL
}

// New checks a configuration. It asks the store nothing.
func New(cfg Config) (*Store, error) {
	base, err := bridge.CheckURL(cfg.Endpoint, cfg.AllowPlain)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	switch {
	case base.Scheme != "http" && base.Scheme != "https":
		return nil, fmt.Errorf("endpoint: expected https, got %q", base.Scheme)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("endpoint: expected an address without a query")
	case cfg.Bucket == "" || strings.ContainsAny(cfg.Bucket, "/?#%") || cfg.Bucket == "." || cfg.Bucket == "..":
		return nil, fmt.Errorf("bucket: expected a name, got %q", cfg.Bucket)
	case cfg.AccessKey == "" || cfg.SecretKey == "":
		return nil, errors.New("expected an access key and its secret key, got at most one of them")
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	if cfg.Stall <= 0 {
		cfg.Stall = DefaultStall
	}
	if cfg.Tries <= 0 {
		cfg.Tries = DefaultTries
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Client == nil {
		if cfg.Client, err = (bridge.TLS{}).Client(); err != nil {
			return nil, err
		}
	}
	return &Store{cfg: cfg, base: base}, nil
}

// address is the path-style address of a key.
func (s *Store) address(key string) (*url.URL, error) {
	full := s.cfg.Prefix + key
	if key == "" || len(full) > maxKey || !clean(full) {
		return nil, fmt.Errorf("expected a key of 1 to %d bytes without empty, \".\" or \"..\" parts, got %q", maxKey, full)
	}
	u := *s.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/" + s.cfg.Bucket + "/" + full
	// What is sent is what is signed.
	u.RawPath = escape(u.Path, true)
	return &u, nil
}

// clean reports that no server or proxy takes the key for another one.
func clean(key string) bool {
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

func (s *Store) signer() signer {
	return signer{
		access: s.cfg.AccessKey, secret: s.cfg.SecretKey, token: s.cfg.SessionToken,
		region: s.cfg.Region, service: "s3", at: s.cfg.Now(),
	}
}

// Presign returns an address that lets its holder use a method on a key without
// an account, for whole seconds up to [MaxLife]. It is a credential.
func (s *Store) Presign(method, key string, life time.Duration) (string, error) {
	u, err := s.address(key)
	if err != nil {
		return "", err
	}
	if life < time.Second || life > MaxLife {
		return "", fmt.Errorf("expected a life of 1s to %v, got %v", MaxLife, life)
	}
	sign := s.signer()
	sign.presign(method, u, life)
	return u.String(), nil
}

// Error is an answer of the store that is no success.
type Error struct {
	// Op is "put", "get" or "stat".
	Op, Key string
	// Status is the HTTP status, and Code the store's word for it, such as
	// "SignatureDoesNotMatch", where it gave one.
	Status int
	Code   string
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s of %q: expected success, got status %d", e.Op, e.Key, e.Status)
	if e.Code != "" {
		text += fmt.Sprintf(" with code %q", e.Code)
	}
	return text
}

// Is makes a key that is not there an [fs.ErrNotExist]. Other things that are
// not there, such as a bucket, have a code of their own; only the answer of a
// stat has none.
func (e *Error) Is(target error) bool {
	return target == fs.ErrNotExist && e.Status == http.StatusNotFound && (e.Code == "NoSuchKey" || e.Code == "")
}

// passing reports an answer that may be another one later.
func (e *Error) passing() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// ErrorCode reads the code of an error that a store answers. The rest of such a
// text is not kept: it repeats keys and signatures. It is empty where there is
// none.
func ErrorCode(r io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(r, maxAnswer)) // what came is enough
	_, rest, ok := strings.Cut(string(text), "<Code>")
	code, _, ok2 := strings.Cut(rest, "</Code>")
	letter := func(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }
	if !ok || !ok2 || len(code) > 64 || strings.TrimFunc(code, letter) != "" {
		return ""
	}
	return code
}

// retry repeats what may be repeated.
func (s *Store) retry(ctx context.Context, once func() error) error {
	backoff := s.cfg.Backoff
	for try := 1; ; try++ {
		err := once()
		var answer *Error
		var local *localError
		switch {
		case err == nil, ctx.Err() != nil, try >= s.cfg.Tries, errors.As(err, &local):
			return err
		case errors.As(err, &answer) && !answer.passing():
			return err
		}
		timer := time.NewTimer(backoff.Next())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// localError is a fault on this side, which another try does not change.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }
