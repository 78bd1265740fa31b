package artifact_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/controller/artifact"
	"prp/controller/bridge"
	"prp/controller/identity/identitytest"
)

// TestUpload: connector.md row 14, "HTTP PUT of the bytes", and what
// artifact_uploaded tells.
func TestUpload(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("0123456789abcdef", 40_000)} {
		var head http.Header
		var length int64
		var encoding []string
		s := newStore(t)
		s.steps = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			head, length, encoding = r.Header, r.ContentLength, r.TransferEncoding
			s.take(w, r)
		}}
		f := file(t, text)
		if _, err := f.Seek(3, io.SeekStart); err != nil { // the offset is not ours
			t.Fatal(err)
		}
		sum, err := client(t, artifact.Config{}).Upload(t.Context(), artifact.Upload{
			URL: s.url(), Issued: time.Now(), File: f, Size: int64(len(text)), ContentType: "text/csv",
		})
		if err != nil || sum != sumOf(text) {
			t.Errorf("%d bytes: got %+v, %v, want %+v", len(text), sum, err, sumOf(text))
		}
		if string(s.body()) != text || length != int64(len(text)) || len(encoding) != 0 {
			t.Errorf("%d bytes: the store has %d, told as %d with encoding %q", len(text), len(s.body()), length, encoding)
		}
		if got := head.Get("Content-Type"); got != "text/csv" {
			t.Errorf("the content type is %q", got)
		}
		for _, name := range []string{"Authorization", "Cookie", "Referer"} {
			if head.Get(name) != "" {
				t.Errorf("the store is sent %s", name)
			}
		}
		if s.asked[0] != "PUT /bucket/key" || len(s.asked) != 1 {
			t.Errorf("the requests are %q", s.asked)
		}
	}
}

// TestUploadNoClientCertificate: connector.md row 14, "no JWT or client
// certificate to that host", also where the store asks for one; its own
// certificate is verified by the CA file alone.
func TestUploadNoClientCertificate(t *testing.T) {
	kit, other := identitytest.New(t), identitytest.New(t)
	certificates := -1
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		certificates = len(r.TLS.PeerCertificates)
		io.Copy(io.Discard, r.Body)
	}))
	s.TLS = kit.Server()
	s.TLS.ClientAuth = tls.RequestClientCert
	s.StartTLS()
	defer s.Close()
	f := file(t, "text")
	up := artifact.Upload{URL: s.URL + "/bucket/key?" + secret, File: f, Size: 4}
	if _, err := client(t, artifact.Config{CAFile: kit.CAFile()}).Upload(t.Context(), up); err != nil || certificates != 0 {
		t.Errorf("got %v, and the store %d certificates", err, certificates)
	}
	for name, ca := range map[string]string{"the system's roots": "", "another CA": other.CAFile()} {
		_, err := client(t, artifact.Config{CAFile: ca}).Upload(t.Context(), up)
		if e := problem(t, err); e.NewURL || e.Tries != 1 || !errors.As(err, new(*tls.CertificateVerificationError)) {
			t.Errorf("with %s: got %v", name, err)
		}
	}
}

// TestUploadTries: connector.md row 14, "three tries within the URL's life, then
// a new URL".
func TestUploadTries(t *testing.T) {
	early := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	half := func(_ http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, 100)
		panic(http.ErrAbortHandler)
	}
	for _, tt := range []struct {
		name  string
		steps []http.HandlerFunc // nil is success
		tries int
		ok    bool
		renew bool
		code  string
	}{
		{"503 twice", []http.HandlerFunc{status(503, "SlowDown"), status(503, "SlowDown"), nil}, 3, true, false, ""},
		{"500, 429", []http.HandlerFunc{status(500, "InternalError"), status(429, "TooManyRequests"), nil}, 3, true, false, ""},
		{"cut, then half", []http.HandlerFunc{cut, half, nil}, 3, true, false, ""},
		{"an answer before the bytes", []http.HandlerFunc{early, nil}, 2, true, false, ""},
		{"503 for ever", []http.HandlerFunc{status(503, "SlowDown")}, 3, false, true, "SlowDown"},
		{"cut for ever", []http.HandlerFunc{cut}, 3, false, true, ""},
		{"expired", []http.HandlerFunc{status(403, "AccessDenied")}, 1, false, true, "AccessDenied"},
		{"expired short-lived account", []http.HandlerFunc{status(400, "ExpiredToken")}, 1, false, true, "ExpiredToken"},
		{"gone", []http.HandlerFunc{status(410, "Gone")}, 1, false, true, "Gone"},
		{"too large", []http.HandlerFunc{status(400, "EntityTooLarge")}, 1, false, false, "EntityTooLarge"},
		{"no bucket", []http.HandlerFunc{status(404, "NoSuchBucket")}, 1, false, false, "NoSuchBucket"},
		{"a code that is none", []http.HandlerFunc{status(400, "bad "+secret)}, 1, false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			for _, step := range tt.steps {
				if step == nil {
					step = s.take
				}
				s.steps = append(s.steps, step)
			}
			text := strings.Repeat("x", 300_000)
			sum, err := client(t, artifact.Config{}).Upload(t.Context(), artifact.Upload{URL: s.url(), File: file(t, text), Size: 300_000})
			if s.requests() != tt.tries {
				t.Errorf("the store was asked %d times, want %d", s.requests(), tt.tries)
			}
			if tt.ok {
				if err != nil || sum != sumOf(text) || string(s.body()) != text {
					t.Errorf("got %+v, %v; the store has %d bytes", sum, err, len(s.body()))
				}
				return
			}
			if e := problem(t, err); e.Tries != tt.tries || e.Code != tt.code || errors.Is(err, artifact.ErrNewURL) != tt.renew {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// TestUploadNobodyThere: a store that does not answer at all is tried as often.
func TestUploadNobodyThere(t *testing.T) {
	s := newStore(t, cut)
	s.Close()
	_, err := client(t, artifact.Config{}).Upload(t.Context(), artifact.Upload{URL: s.url(), File: file(t, "x"), Size: 1})
	if e := problem(t, err); e.Tries != 3 || !errors.Is(err, artifact.ErrNewURL) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}

// TestUploadLife: connector.md row 14 and the seed's table: a URL lives 300 s.
func TestUploadLife(t *testing.T) {
	s := newStore(t, status(503, "SlowDown"))
	up := artifact.Upload{URL: s.url(), File: file(t, "x"), Size: 1}
	up.Issued = time.Now().Add(-301 * time.Second)
	_, err := client(t, artifact.Config{}).Upload(t.Context(), up)
	if e := problem(t, err); !errors.Is(err, artifact.ErrNewURL) || e.Tries != 0 || s.requests() != 0 {
		t.Errorf("an old URL: got %v after %d requests", err, s.requests())
	}
	// The wait that the store asks for is longer than the URL has left.
	s.steps = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "100")
		status(503, "SlowDown")(w, r)
	}}
	up.Issued = time.Now().Add(-240 * time.Second)
	began := time.Now()
	_, err = client(t, artifact.Config{}).Upload(t.Context(), up)
	if e := problem(t, err); !errors.Is(err, artifact.ErrNewURL) || e.Tries != 1 || time.Since(began) > time.Minute {
		t.Errorf("a URL with a minute left: got %v after %v", err, time.Since(began))
	}
}

// TestUploadStall: a store that stops to take or to answer is left.
func TestUploadStall(t *testing.T) {
	for name, taken := range map[string]int64{"at once": 0, "in the middle": 1 << 20, "before the answer": 16 << 20} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.steps = []http.HandlerFunc{func(_ http.ResponseWriter, r *http.Request) {
				io.CopyN(io.Discard, r.Body, taken)
				<-s.over
			}}
			text := strings.Repeat("x", 16<<20)
			c := client(t, artifact.Config{Stall: 100 * time.Millisecond, Tries: 1})
			_, err := c.Upload(t.Context(), artifact.Upload{URL: s.url(), File: file(t, text), Size: 16 << 20})
			problem(t, err)
			if !errors.Is(err, bridge.ErrStalled) || !errors.Is(err, artifact.ErrNewURL) {
				t.Errorf("got %v, want a stall and a new URL", err)
			}
		})
	}
}

// TestUploadTotal: a try has an end also where it moves (remote.md rule 2).
func TestUploadTotal(t *testing.T) {
	s := newStore(t)
	s.steps = []http.HandlerFunc{s.silent}
	c := client(t, artifact.Config{Total: 50 * time.Millisecond, Tries: 1})
	_, err := c.Upload(t.Context(), artifact.Upload{URL: s.url(), File: file(t, "x"), Size: 1})
	problem(t, err)
	if !strings.Contains(err.Error(), "longer than 50ms") {
		t.Errorf("got %v", err)
	}
}

// TestUploadCancelled: ctx ends it, and that asks for no new URL.
func TestUploadCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newStore(t)
	s.steps = []http.HandlerFunc{func(http.ResponseWriter, *http.Request) {
		cancel()
		<-s.over
	}}
	_, err := client(t, artifact.Config{}).Upload(ctx, artifact.Upload{URL: s.url(), File: file(t, "x"), Size: 1})
	problem(t, err)
	if !errors.Is(err, context.Canceled) || errors.Is(err, artifact.ErrNewURL) || s.requests() != 1 {
		t.Errorf("got %v after %d requests", err, s.requests())
	}
}

// TestUploadChanged: a file that is not what was announced, or that is written
// to while it is sent, is no artifact, and no URL helps.
func TestUploadChanged(t *testing.T) {
	const size = 1 << 20
	for name, change := range map[string]func(f *os.File) error{
		"it grows":           func(f *os.File) error { return f.Truncate(size + 1) },
		"it shrinks":         func(f *os.File) error { return f.Truncate(size / 2) },
		"it is overwritten":  func(f *os.File) error { _, err := f.WriteAt([]byte("y"), 0); return err },
		"its end is changed": func(f *os.File) error { _, err := f.WriteAt([]byte("y"), size-1); return err },
	} {
		t.Run(name, func(t *testing.T) {
			f := file(t, strings.Repeat("x", size))
			s := newStore(t, func(_ http.ResponseWriter, r *http.Request) {
				io.CopyN(io.Discard, r.Body, 1000)
				if err := change(f); err != nil {
					panic(err)
				}
				io.Copy(io.Discard, r.Body)
			})
			sum, err := client(t, artifact.Config{}).Upload(t.Context(), artifact.Upload{URL: s.url(), File: f, Size: size})
			if e := problem(t, err); !errors.Is(err, artifact.ErrChanged) || e.NewURL || e.Tries != 1 || sum != (artifact.Sum{}) {
				t.Errorf("got %+v, %v", sum, err)
			}
		})
	}
	s := newStore(t, cut)
	_, err := client(t, artifact.Config{}).Upload(t.Context(), artifact.Upload{URL: s.url(), File: file(t, "12345"), Size: 4})
	if problem(t, err); !errors.Is(err, artifact.ErrChanged) || s.requests() != 0 {
		t.Errorf("another size than announced: got %v after %d requests", err, s.requests())
	}
}

// TestUploadNotAFile: what has no end or no bytes is refused before anything is
// sent.
func TestUploadNotAFile(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s := newStore(t, cut)
	for _, f := range []*os.File{r, dir} {
		_, err := client(t, artifact.Config{}).Upload(t.Context(), artifact.Upload{URL: s.url(), File: f})
		if problem(t, err); !strings.Contains(err.Error(), "regular file") || s.requests() != 0 {
			t.Errorf("%s: got %v", filepath.Base(f.Name()), err)
		}
	}
}

// TestUploadContentType: it comes from an agent, and stays one header.
func TestUploadContentType(t *testing.T) {
	s := newStore(t, cut)
	for _, kind := range []string{"text/csv\r\nX-Other: 1", "text\x00"} {
		_, err := client(t, artifact.Config{}).Upload(t.Context(), artifact.Upload{URL: s.url(), File: file(t, "x"), Size: 1, ContentType: kind})
		if e := problem(t, err); e.NewURL || s.requests() != 0 {
			t.Errorf("%q: got %v after %d requests", kind, err, s.requests())
		}
	}
}

// TestURL: remote.md rules 6 and 11 hold for a presigned URL too.
func TestURL(t *testing.T) {
	f := file(t, "x")
	for _, tt := range []struct{ url, want string }{
		{"http://store.example/bucket/k?" + secret, "not loopback"},
		{"wss://store.example/bucket/k?" + secret, "https"},
		{"ftp://store.example/bucket/k?" + secret, "expected"},
		{"https://user:5ec7e7@store.example/bucket/k", "without a name or password"},
		{"https:///bucket/k?" + secret, "host"},
		{"", "expected"},
	} {
		c := client(t, artifact.Config{})
		_, up := c.Upload(t.Context(), artifact.Upload{URL: tt.url, File: f, Size: 1})
		_, down := c.Download(t.Context(), artifact.Download{URL: tt.url, Root: folder(t), Name: "x"})
		for _, err := range []error{up, down} {
			if e := problem(t, err); !strings.Contains(err.Error(), tt.want) || e.NewURL || e.Tries != 0 {
				t.Errorf("%q: got %v, want %q", tt.url, err, tt.want)
			}
		}
	}
}
