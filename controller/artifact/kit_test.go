package artifact_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller/artifact"
	"prp/controller/bridge"
)

// secret stands in every query: no error may show it.
const secret = "X-Amz-Signature=5ec7e7"

// store is a server on loopback that answers each request by the next of its
// steps, and the last one again.
type store struct {
	*httptest.Server
	mu    sync.Mutex
	steps []http.HandlerFunc
	// asked has a line for each request, got the last body.
	asked []string
	got   []byte
	// over ends handlers: a server learns that its client is gone only after it
	// has read the body.
	over chan struct{}
}

func newStore(t *testing.T, steps ...http.HandlerFunc) *store {
	t.Helper()
	s := &store{steps: steps, over: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.stop)
	return s
}

// stop ends connections whose handler waits for them.
func (s *store) stop() {
	close(s.over)
	s.CloseClientConnections()
	s.Close()
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	step := s.steps[min(len(s.asked), len(s.steps)-1)]
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	step(w, r)
}

func (s *store) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func (s *store) body() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

// url is a presigned address.
func (s *store) url() string { return s.URL + "/bucket/key?" + secret }

// take keeps a body and answers with success.
func (s *store) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	s.got = body
	s.mu.Unlock()
	w.WriteHeader(http.StatusOK)
}

// status answers so, with an error as stores write it.
func status(code int, word string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, "<?xml version=\"1.0\"?><Error><Code>"+word+"</Code><SignatureProvided>"+secret+"</SignatureProvided></Error>")
	}
}

// cut ends the connection without an answer.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// silent never answers.
func (s *store) silent(http.ResponseWriter, *http.Request) { <-s.over }

// give answers with a text.
func give(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

// client has no waits between tries.
func client(t *testing.T, cfg artifact.Config) *artifact.Client {
	t.Helper()
	if cfg.Backoff.Steps == nil {
		cfg.Backoff = bridge.Backoff{Steps: []time.Duration{time.Millisecond}}
	}
	c, err := artifact.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// file is an artifact that was last changed an hour ago, so that a change is
// seen however coarse the times of the file system are.
func file(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "artifact")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, before, before); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func folder(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// names lists a folder.
func names(t *testing.T, root *os.Root) string {
	t.Helper()
	list, err := os.ReadDir(root.Name())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range list {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func sumOf(text string) artifact.Sum {
	raw := sha256.Sum256([]byte(text))
	return artifact.Sum{Size: int64(len(text)), SHA256: hex.EncodeToString(raw[:])}
}

// problem checks what every error of this package is.
func problem(t *testing.T, err error) *artifact.Error {
	t.Helper()
	var e *artifact.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *artifact.Error", err)
	}
	if strings.Contains(err.Error(), "5ec7e7") || strings.Contains(err.Error(), "/bucket") {
		t.Errorf("%q shows the URL", err)
	}
	return e
}
