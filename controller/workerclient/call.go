package workerclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"prp/controller/bridge"
)

const (
	// callTimeout bounds a call from its start to the last byte of its answer
	// (workerclient.md row 4).
	callTimeout = 30 * time.Second
	// idleTimeout is how long a download may bring no byte (row 4).
	idleTimeout = 60 * time.Second
	// maxAnswer bounds an answer, in bytes: instructions, an input and secrets
	// are texts of people.
	maxAnswer = 16 << 20
)

// errIdle ends a download that brings nothing.
var errIdle = fmt.Errorf("no byte came within %s", idleTimeout)

// errDeadline ends a call that takes too long.
var errDeadline = fmt.Errorf("no whole answer came within %s", callTimeout)

// endpoint is the server as both clients know it.
type endpoint struct {
	base, token string
	client      *http.Client
}

// call is one request.
type call struct {
	operation string
	method    string
	run       string
	// suffix stands after the run, with its parts escaped.
	suffix string
	body   any // encoded as JSON; nil is none
}

// fallback is the client where none is given; it follows the rules of
// [NewTLSClient], and nothing of it can fail without files.
var fallback = sync.OnceValues(func() (*http.Client, error) { return NewTLSClient(TLSClientOptions{}) })

func (e endpoint) http() (*http.Client, error) {
	if e.client == nil {
		return fallback()
	}
	if e.client.CheckRedirect != nil {
		return e.client, nil
	}
	c := *e.client
	c.CheckRedirect = sameHost
	return &c, nil
}

// escaped is a part of a path. A part that would mean another path is refused.
func escaped(what, part string) (string, error) {
	if part == "" || part == "." || part == ".." {
		return "", fmt.Errorf("%w: expected a %s, got %q", errRefused, what, part)
	}
	return url.PathEscape(part), nil
}

func (e endpoint) request(ctx context.Context, c call) (*http.Request, error) {
	run, err := escaped("task run id", c.run)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if c.body != nil {
		raw, err := json.Marshal(c.body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRefused, err)
		}
		body = bytes.NewReader(raw)
	}
	address := strings.TrimRight(e.base, "/") + "/api/worker/task-runs/" + run + c.suffix
	r, err := http.NewRequestWithContext(ctx, c.method, address, body)
	if err != nil {
		// The error repeats the address, which the caller may not want to show.
		return nil, fmt.Errorf("%w: expected an address such as https://host, got one that cannot be read", errRefused)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json")
	if e.token != "" {
		r.Header.Set("Authorization", "Bearer "+e.token)
	}
	return r, nil
}

// send makes a call and returns its answer with whatever status.
func (e endpoint) send(ctx context.Context, c call) (*http.Response, error) {
	client, err := e.http()
	if err != nil {
		return nil, err
	}
	r, err := e.request(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.operation, err)
	}
	answer, err := client.Do(r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the address
		}
		return nil, fmt.Errorf("%s: %w", c.operation, err)
	}
	return answer, nil
}

// do makes a call within the call timeout. It returns the status where it is one
// of those that are wanted, else a [*StatusError]; into takes the body of a 200.
func (e endpoint) do(ctx context.Context, c call, into any, wanted ...int) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, errDeadline)
	defer cancel()
	answer, err := e.send(ctx, c)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if !isOne(answer.StatusCode, wanted) {
		return answer.StatusCode, newStatusError(c.operation, answer)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil && into == nil:
		return answer.StatusCode, nil // what was asked for has been done
	case err != nil:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return 0, fmt.Errorf("%s: %w", c.operation, err)
	case into == nil || answer.StatusCode != http.StatusOK:
		return answer.StatusCode, nil
	case len(body) > maxAnswer:
		return 0, fmt.Errorf("%s: %w: expected an answer of at most %d bytes", c.operation, errRefused, maxAnswer)
	}
	if err := bridge.Decode(body, into); err != nil {
		return 0, fmt.Errorf("%s: %w: expected an answer in JSON: %s", c.operation, errRefused, shapeOf(err))
	}
	return answer.StatusCode, nil
}

// shapeOf tells what is wrong with an answer, without quoting it: it may hold
// secrets.
func shapeOf(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Sprintf("%s: expected %s, got %s", wrong.Field, wrong.Type, wrong.Value)
	}
	return "it cannot be read"
}

func isOne(status int, wanted []int) bool {
	for _, w := range wanted {
		if status == w {
			return true
		}
	}
	return false
}

// download copies the body of a call to w, as long as bytes come. It returns the
// headers of the answer.
func (e endpoint) download(ctx context.Context, c call, w io.Writer, most int64) (http.Header, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(idleTimeout, func() { cancel(errIdle) })
	defer idle.Stop()
	answer, err := e.send(ctx, c)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, newStatusError(c.operation, answer)
	}
	n, err := io.Copy(w, io.LimitReader(alive{answer.Body, idle}, most+1))
	switch {
	case err != nil:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("%s: %w", c.operation, err)
	case n > most:
		return nil, fmt.Errorf("%s: %w: expected at most %d bytes", c.operation, errRefused, most)
	}
	return answer.Header, nil
}

// alive is a body whose every byte is a sign of life.
type alive struct {
	r    io.Reader
	idle *time.Timer
}

// Read implements io.Reader.
func (a alive) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if n > 0 {
		a.idle.Reset(idleTimeout)
	}
	return n, err
}
