package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/coder/websocket"
)

// lostError says in plain words what has happened to a connection. The cause
// stands behind the words.
type lostError struct {
	words string
	cause error
}

// Error implements error.
func (e *lostError) Error() string { return e.words }

// Unwrap gives the cause.
func (e *lostError) Unwrap() error { return e.cause }

// Lost says what an error of a connection means: first what has happened, then
// the cause. The text of one cause is always the same: the layers above it and
// the port on this side, which is another one for each connection, are left out.
// The error itself stays reachable; nil and a context that was cancelled are
// given back as they are.
func Lost(err error) error {
	var known *lostError
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	return &lostError{words: lostWords(err), cause: err}
}

func lostWords(err error) string {
	var closed websocket.CloseError
	var op *net.OpError
	switch {
	case errors.As(err, &closed):
		words := fmt.Sprintf("the server has closed the connection: status %d", closed.Code)
		if closed.Reason != "" {
			words += fmt.Sprintf(", %q", closed.Reason)
		}
		return words
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server has closed the connection without a reason: EOF"
	case errors.Is(err, websocket.ErrMessageTooBig):
		return "the server has sent a frame above the limit: message too big"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "the server does not answer: timeout"
	case errors.Is(err, net.ErrClosed):
		return "the connection is closed: use of closed network connection"
	case errors.As(err, &op):
		return networkWords(op)
	}
	return err.Error()
}

func networkWords(op *net.OpError) string {
	cause := op.Err
	var dns *net.DNSError
	var system *os.SyscallError
	switch {
	case errors.As(cause, &dns):
		return dnsWords(dns)
	case errors.As(cause, &system):
		cause = system.Err
	}
	switch {
	case errors.Is(cause, syscall.ECONNREFUSED) && op.Addr != nil:
		return fmt.Sprintf("no server is listening at %s: %s", op.Addr, cause)
	case op.Op == "dial" && op.Addr != nil:
		return fmt.Sprintf("there is no way to %s: %s", op.Addr, cause)
	case errors.Is(cause, syscall.ECONNRESET), errors.Is(cause, syscall.EPIPE):
		return fmt.Sprintf("the server has cut the connection: %s", cause)
	}
	return fmt.Sprintf("the connection has failed: %s", cause)
}

// dnsWords leaves the resolver out, whose error may name a port on this side.
func dnsWords(dns *net.DNSError) string {
	cause := dns.Err
	switch {
	case dns.IsNotFound:
		cause = "no such host"
	case dns.IsTimeout, dns.IsTemporary:
		cause = "the resolver does not answer"
	}
	return fmt.Sprintf("the name %q is not found: %s", dns.Name, cause)
}
