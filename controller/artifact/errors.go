package artifact

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"prp/controller/s3"
)

var (
	// ErrNewURL says that the URL is used up, expired or refused: ask the
	// server for another one, then try again.
	ErrNewURL = errors.New("a new URL is needed")
	// ErrChanged says that the file is not the one that was announced, or was
	// written to while it was sent.
	ErrChanged = errors.New("the file changed")
	// ErrTooLarge says that an artifact is larger than what may be fetched.
	ErrTooLarge = errors.New("the artifact is too large")
	// ErrMismatch says that what was fetched is not what was announced.
	ErrMismatch = errors.New("the artifact is not the one that was announced")

	errRedirect = errors.New("expected no redirect to elsewhere")
)

// Error is what every method of [Client] fails with. It never shows the path or
// the query of a URL.
type Error struct {
	// Op is "upload" or "download".
	Op string
	// Host is the store's host and port; empty where the URL has none.
	Host string
	// Tries is how often the URL was tried.
	Tries int
	// Status is the last answer's HTTP status, 0 where there was none. Code is
	// the store's own word for it, such as "AccessDenied", or empty.
	Status int
	Code   string
	// Err is the cause.
	Err error
	// NewURL reports that the error is [ErrNewURL].
	NewURL bool
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Op
	if e.Host != "" {
		text += fmt.Sprintf(" with host %q", e.Host)
	}
	if e.Tries > 1 {
		text += fmt.Sprintf(", try %d", e.Tries)
	}
	text += ": " + e.Err.Error()
	if e.NewURL {
		text += "; " + ErrNewURL.Error()
	}
	return text
}

// Unwrap gives the cause, and [ErrNewURL] where it applies.
func (e *Error) Unwrap() []error {
	if e.NewURL {
		return []error{e.Err, ErrNewURL}
	}
	return []error{e.Err}
}

// next is what may follow a try that failed.
type next int

const (
	again next = iota // the same URL may succeed
	renew             // another URL may succeed
	stop              // no URL helps
)

// failure is why a try failed.
type failure struct {
	err    error
	next   next
	status int
	code   string
	// after is what the store asks to wait.
	after time.Duration
}

func (t task) fail(tries int, f *failure) error {
	return &Error{
		Op: t.op, Host: t.target.Host, Tries: tries, Status: f.status, Code: f.code, Err: f.err, NewURL: f.next == renew,
	}
}

// netFailure is a request without an answer. The error of the client repeats
// the URL, so only its cause is kept.
func netFailure(err error) *failure {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	// A store that is not trusted now is not trusted in a second.
	if errors.Is(err, errRedirect) || errors.As(err, new(*tls.CertificateVerificationError)) {
		return &failure{err: err, next: stop}
	}
	return &failure{err: err}
}

// maxRetryAfter bounds what a store can make us wait.
const maxRetryAfter = DefaultLife

// statusFailure is an answer that is no success.
func statusFailure(a *http.Response) *failure {
	f := &failure{status: a.StatusCode, code: s3.ErrorCode(io.LimitReader(a.Body, maxAnswer)), next: stop}
	switch s := a.StatusCode; {
	case s >= 500, s == http.StatusRequestTimeout, s == http.StatusTooManyRequests:
		f.next = again
		if n, err := strconv.Atoi(a.Header.Get("Retry-After")); err == nil && n > 0 {
			f.after = min(time.Duration(n)*time.Second, maxRetryAfter)
		}
	// What an expired URL is answered with: 403 by most stores, 400 with a code
	// where it was made with a short-lived token.
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusGone, f.code == "ExpiredToken":
		f.next = renew
	}
	f.err = fmt.Errorf("expected success, got status %d", a.StatusCode)
	if f.code != "" {
		f.err = fmt.Errorf("expected success, got status %d with code %q", a.StatusCode, f.code)
	}
	return f
}
