package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller/bridge"
)

const secretKey = "5ec7e7-k3y"

// fake is a server on loopback that answers each request by the next of its
// steps, and the last one again.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	steps []http.HandlerFunc
	asked int
	// last is the last request, body its body.
	last *http.Request
	body []byte
	over chan struct{}
}

func newFake(t *testing.T, steps ...http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{steps: steps, over: make(chan struct{})}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		close(f.over)
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	step := f.steps[min(f.asked, len(f.steps)-1)]
	f.asked++
	f.last = r
	f.mu.Unlock()
	step(w, r)
}

// take keeps a body and answers with success.
func (f *fake) take(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f.mu.Lock()
	f.body = body
	f.mu.Unlock()
}

// requests is how often the server was asked.
func (f *fake) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *fake) store(t *testing.T, change func(*Config)) *Store {
	t.Helper()
	cfg := Config{
		Endpoint: f.URL, Bucket: "bucket", AccessKey: "access", SecretKey: secretKey,
		Backoff: bridge.Backoff{Steps: []time.Duration{time.Millisecond}},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func status(code int, word string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, "<Error><Code>"+word+"</Code><StringToSign>5ec7e7</StringToSign></Error>")
	}
}

func sum(text string) string {
	raw := sha256.Sum256([]byte(text))
	return hex.EncodeToString(raw[:])
}

// The shape that a task run's checkpoints want.
var _ interface {
	Put(ctx context.Context, key string, size int64, r io.Reader) error
	Get(ctx context.Context, key string) (io.ReadCloser, int64, error)
} = (*Store)(nil)

// plain hides that a reader can seek.
func plain(text string) io.Reader { return struct{ io.Reader }{strings.NewReader(text)} }

// TestConfig: remote.md rule 11 and what else would only fail later.
func TestConfig(t *testing.T) {
	good := Config{Endpoint: "https://s3.example", Bucket: "b", AccessKey: "a", SecretKey: secretKey}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"not loopback": func(c *Config) { c.Endpoint = "http://s3.example" },
		"without a name or password": func(c *Config) {
			c.Endpoint = "https://user:" + secretKey + "@s3.example"
		},
		`expected https, got "wss"`: func(c *Config) { c.Endpoint = "wss://s3.example" },
		"without a query":           func(c *Config) { c.Endpoint = "https://s3.example?" + secretKey },
		`got "a/b"`:                 func(c *Config) { c.Bucket = "a/b" },
		`got ".."`:                  func(c *Config) { c.Bucket = ".." },
		`got ""`:                    func(c *Config) { c.Bucket = "" },
		"its secret key":            func(c *Config) { c.SecretKey = "" },
		"expected an access key":    func(c *Config) { c.AccessKey = "" },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), secretKey) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

// TestAddress: path-style, and what is sent is what is signed.
func TestAddress(t *testing.T) {
	s, err := New(Config{Endpoint: "https://s3.example/base/", Bucket: "b", Prefix: "p/", AccessKey: "a", SecretKey: secretKey})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"sha256/ab.tar.zst": "https://s3.example/base/b/p/sha256/ab.tar.zst",
		"a b+c$d~e":         "https://s3.example/base/b/p/a%20b%2Bc%24d~e",
		"\u00fc?#%41":       "https://s3.example/base/b/p/%C3%BC%3F%23%2541",
		"a.b..c":            "https://s3.example/base/b/p/a.b..c",
	} {
		u, err := s.address(key)
		if err != nil || u.String() != want {
			t.Errorf("%q: got %v, %v, want %s", key, u, err, want)
		}
	}
	for _, key := range []string{"", "/a", "a/", "a//b", "../a", "a/./b", "a/..", strings.Repeat("x", 1023)} {
		if u, err := s.address(key); err == nil {
			t.Errorf("%q: got %v", key, u)
		}
	}
}

// TestPut: where the reader can seek, the hash is signed and kept beside the
// object; otherwise the pieces are signed.
func TestPut(t *testing.T) {
	for _, text := range []string{"", "text", strings.Repeat("x", 3*chunkSize), strings.Repeat("x", 3*chunkSize+1)} {
		f := newFake(t)
		f.steps = []http.HandlerFunc{f.take}
		s := f.store(t, nil)
		size := int64(len(text))
		if err := s.Put(t.Context(), "k", size, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		h := f.last.Header
		if string(f.body) != text || f.last.ContentLength != size || h.Get("X-Amz-Content-Sha256") != sum(text) || h.Get(hashHeader) != sum(text) {
			t.Errorf("%d bytes: the store has %d with %v", size, len(f.body), h)
		}
		if f.last.URL.Path != "/bucket/k" || !strings.HasPrefix(h.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=access/") {
			t.Errorf("the request is %s with %v", f.last.URL, h)
		}
		if err := s.Put(t.Context(), "k", size, plain(text)); err != nil {
			t.Fatal(err)
		}
		h = f.last.Header
		if f.last.ContentLength != chunkedLength(size) || int64(len(f.body)) != chunkedLength(size) ||
			h.Get("X-Amz-Content-Sha256") != chunked || h.Get(hashHeader) != hashUnknown || h.Get("Content-Encoding") != "aws-chunked" || len(f.last.TransferEncoding) != 0 {
			t.Errorf("%d bytes in pieces: the store has %d, told as %d, with %v", size, len(f.body), f.last.ContentLength, h)
		}
	}
}

// TestPutFromOffset: what is put begins where the reader stands, in each try.
func TestPutFromOffset(t *testing.T) {
	f := newFake(t)
	f.steps = []http.HandlerFunc{status(503, "SlowDown"), f.take}
	r := strings.NewReader("skip text")
	if _, err := r.Seek(5, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := f.store(t, nil).Put(t.Context(), "k", 4, r); err != nil || string(f.body) != "text" || f.requests() != 2 {
		t.Errorf("got %v, the store has %q after %d requests", err, f.body, f.requests())
	}
}

// TestPutSize: other than size bytes are an error, and nothing is stored.
func TestPutSize(t *testing.T) {
	for name, text := range map[string]string{"fewer": "abc", "more": "abcde"} {
		for kind, r := range map[string]io.Reader{"seeker": strings.NewReader(text), "reader": plain(text)} {
			f := newFake(t)
			f.steps = []http.HandlerFunc{f.take}
			err := f.store(t, nil).Put(t.Context(), "k", 4, r)
			if !errors.Is(err, errSize) || f.body != nil {
				t.Errorf("%s, %s: got %v, the store has %q", name, kind, err, f.body)
			}
		}
	}
	f := newFake(t, status(500, "X"))
	for _, size := range []int64{-1, MaxObject + 1} {
		if err := f.store(t, nil).Put(t.Context(), "k", size, plain("")); err == nil || f.requests() != 0 {
			t.Errorf("a size of %d: got %v", size, err)
		}
	}
}

// TestPutNotTaken: success before the bytes were sent is none.
func TestPutNotTaken(t *testing.T) {
	const size = 16 << 20 // more than the system holds for a connection
	early := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusOK)
	}
	for kind, r := range map[string]io.Reader{
		"seeker": bytes.NewReader(make([]byte, size)), "reader": plain(strings.Repeat("x", size)),
	} {
		if err := newFake(t, early).store(t, nil).Put(t.Context(), "k", size, r); err == nil {
			t.Errorf("%s: the put succeeded", kind)
		}
	}
}

// TestTries: what may be repeated is, three times; a stream is read once.
func TestTries(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name   string
		call   func(*Store) error
		status int
		code   string
		want   int
	}{
		{"put of a seeker", func(s *Store) error { return s.Put(ctx, "k", 1, strings.NewReader("x")) }, 503, "SlowDown", 3},
		{"put of a stream", func(s *Store) error { return s.Put(ctx, "k", 1, plain("x")) }, 503, "SlowDown", 1},
		{"get", func(s *Store) error { _, _, err := s.Get(ctx, "k"); return err }, 500, "InternalError", 3},
		{"stat", func(s *Store) error { _, err := s.Stat(ctx, "k"); return err }, 503, "", 3},
		{"get refused", func(s *Store) error { _, _, err := s.Get(ctx, "k"); return err }, 403, "SignatureDoesNotMatch", 1},
		{"put refused", func(s *Store) error { return s.Put(ctx, "k", 1, strings.NewReader("x")) }, 403, "AccessDenied", 1},
		{"redirected", func(s *Store) error { return s.Put(ctx, "k", 1, strings.NewReader("x")) }, 307, "TemporaryRedirect", 1},
	} {
		f := newFake(t, status(tt.status, tt.code))
		err := tt.call(f.store(t, nil))
		var e *Error
		if !errors.As(err, &e) || e.Status != tt.status || e.Code != tt.code || f.requests() != tt.want {
			t.Errorf("%s: got %v after %d requests, want %d", tt.name, err, f.requests(), tt.want)
		}
		if strings.Contains(err.Error(), "5ec7e7") || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// TestNotExist: a key that is not there, and a bucket, which is another fault.
func TestNotExist(t *testing.T) {
	for code, want := range map[string]bool{"NoSuchKey": true, "": true, "NoSuchBucket": false, "NoSuchUser": false} {
		f := newFake(t, status(404, code))
		if _, _, err := f.store(t, nil).Get(t.Context(), "k"); errors.Is(err, fs.ErrNotExist) != want || f.requests() != 1 {
			t.Errorf("%q: got %v after %d requests", code, err, f.requests())
		}
	}
}

// TestGet: the end is told only where all came and has the hash that was kept.
func TestGet(t *testing.T) {
	give := func(text, hash string, length string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if hash != "" {
				w.Header().Set(hashHeader, hash)
			}
			w.Header().Set("Content-Length", length)
			io.WriteString(w, text)
		}
	}
	for _, tt := range []struct {
		name string
		step http.HandlerFunc
		want error
	}{
		{"whole", give("text", sum("text"), "4"), nil},
		{"whole, hash not known", give("text", "", "4"), nil},
		{"whole, hash said to be unknown", give("text", hashUnknown, "4"), nil},
		{"whole, hash by somebody else", give("text", strings.ToUpper(sum("text")), "4"), nil},
		{"another", give("tixt", sum("text"), "4"), errHash},
		{"cut", give("te", sum("text"), "4"), io.ErrUnexpectedEOF},
	} {
		r, size, err := newFake(t, tt.step).store(t, nil).Get(t.Context(), "k")
		if err != nil || size != 4 {
			t.Fatalf("%s: got %d, %v", tt.name, size, err)
		}
		text, err := io.ReadAll(r)
		if !errors.Is(err, tt.want) || tt.want == nil && string(text) != "text" {
			t.Errorf("%s: got %q, %v, want %v", tt.name, text, err, tt.want)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	f := newFake(t, give("text", sum("text"), "4"))
	if info, err := f.store(t, nil).Stat(t.Context(), "k"); err != nil || info != (Info{Size: 4, SHA256: sum("text")}) || f.last.Method != http.MethodHead {
		t.Errorf("stat: got %+v, %v by %s", info, err, f.last.Method)
	}
	endless := newFake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		io.WriteString(w, "text")
	})
	if _, _, err := endless.store(t, nil).Get(t.Context(), "k"); err == nil {
		t.Error("an object without a length is taken")
	}
}

// TestStall: nothing waits for ever for a store.
func TestStall(t *testing.T) {
	f := newFake(t)
	f.steps = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", "9")
			io.WriteString(w, "te")
			w.(http.Flusher).Flush()
		}
		<-f.over
	}}
	s := f.store(t, func(c *Config) { c.Stall, c.Tries = 100*time.Millisecond, 2 })
	if err := s.Put(t.Context(), "k", 16<<20, bytes.NewReader(make([]byte, 16<<20))); !errors.Is(err, bridge.ErrStalled) {
		t.Errorf("put: got %v", err)
	}
	if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, bridge.ErrStalled) {
		t.Errorf("stat: got %v", err)
	}
	// Long enough for the beginning to come, also on a busy machine.
	s = f.store(t, func(c *Config) { c.Stall = 2 * time.Second })
	r, _, err := s.Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); !errors.Is(err, bridge.ErrStalled) || string(text) != "te" {
		t.Errorf("get: got %q, %v", text, err)
	}
}

// TestErrorShowsNoAddress: the base address may be private, a query is a secret.
func TestErrorShowsNoAddress(t *testing.T) {
	f := newFake(t, status(500, "X"))
	s := f.store(t, nil)
	f.Close()
	_, err := s.Stat(t.Context(), "k")
	var u *url.Error
	if err == nil || errors.As(err, &u) || strings.Contains(err.Error(), "/bucket") {
		t.Errorf("got %v", err)
	}
}

// TestErrorCode: only a word is taken of what a store answers.
func TestErrorCode(t *testing.T) {
	for text, want := range map[string]string{
		"<Error><Code>NoSuchKey</Code><Key>x</Key></Error>": "NoSuchKey", "": "", "<Code>": "", "<Code></Code>": "",
		"<Code>a b</Code>": "", "<Code>" + strings.Repeat("x", 65) + "</Code>": "", "<Code>a/b</Code>": "",
		strings.Repeat(" ", 5000) + "<Code>Late</Code>": "",
	} {
		if got := ErrorCode(strings.NewReader(text)); got != want {
			t.Errorf("%.40q: got %q, want %q", text, got, want)
		}
	}
}

// TestPresignLife: seconds, and no longer than S3 takes.
func TestPresignLife(t *testing.T) {
	s := newFake(t, status(500, "X")).store(t, func(c *Config) { c.SessionToken = "session" })
	for _, life := range []time.Duration{0, time.Second - 1, MaxLife + 1} {
		if got, err := s.Presign(http.MethodGet, "k", life); err == nil {
			t.Errorf("%v: got %s", life, got)
		}
	}
	got, err := s.Presign(http.MethodPut, "k", 300*time.Second)
	if err != nil || !strings.Contains(got, "X-Amz-Expires=300&X-Amz-Security-Token=session&") || strings.Contains(got, "5ec7e7") {
		t.Errorf("got %s, %v", got, err)
	}
}
