package workerclient

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"prp/controller/bridge"
)

// maxErrorBody bounds what is read of the body of an error, in bytes
// (workerclient.md, wire).
const maxErrorBody = 4096

// StatusError is an answer that is no success.
type StatusError struct {
	// Operation is the call in words, such as "claim the run".
	Operation string
	// Status is the HTTP status.
	Status int
	// Message is what the server says, empty where it says nothing.
	Message string
	// RetryAfter is how long the server asks to wait; 0 where it does not.
	RetryAfter time.Duration
}

// Error implements error.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s: the server answered with status %d", e.Operation, e.Status)
	if e.Message != "" {
		text += fmt.Sprintf(": %q", e.Message)
	}
	return text
}

// statusOf is the HTTP status in an error; 0 where there was no answer.
func statusOf(err error) int {
	var e *StatusError
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// Temporary reports whether the same call may succeed later: no answer at all,
// 429, or 5xx (workerclient.md row 5). The end of the caller's own context is
// not for this function: the caller knows of it.
func Temporary(err error) bool {
	if err == nil {
		return false
	}
	status := statusOf(err)
	if status == 0 {
		return !errors.Is(err, errRefused)
	}
	return status == http.StatusTooManyRequests || status >= 500
}

// Untrusted reports whether one end does not trust the other: a certificate that
// cannot be verified, a client certificate that is refused or missing, no TLS at
// all. It is [Temporary], since a certificate is renewed; who has not begun yet
// need not wait for that.
func Untrusted(err error) bool {
	var unverified *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	if errors.As(err, &unverified) || errors.As(err, &noTLS) || errors.Is(err, http.ErrSchemeMismatch) {
		return true
	}
	// What the other end refuses comes as an alert, whose type is not exported.
	var alert *net.OpError
	if !errors.As(err, &alert) || alert.Op != "remote error" {
		return false
	}
	text := alert.Err.Error()
	return slices.ContainsFunc([]string{"certificate", "handshake failure", "access denied", "protocol version"}, func(part string) bool {
		return strings.Contains(text, part)
	})
}

// newStatusError reads the answer as far as it is bounded.
func newStatusError(operation string, r *http.Response) *StatusError {
	e := &StatusError{Operation: operation, Status: r.StatusCode, RetryAfter: retryAfter(r.Header)}
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxErrorBody)) // what came is shown
	var said struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if bridge.Decode(body, &said) != nil {
		// A proxy in between answers with a page or a line.
		if line := strings.TrimSpace(string(body)); strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
			e.Message = line
		}
		return e
	}
	if json.Unmarshal(said.Error, &e.Message) != nil || e.Message == "" {
		e.Message = said.Message
	}
	return e
}

// retryAfter reads a Retry-After: seconds, or a time, which the server means on
// its own clock. Ours may stand elsewhere (remote.md rule 9).
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
