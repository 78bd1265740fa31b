package artifact_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/controller/artifact"
	"prp/controller/bridge"
)

// TestDownload: connector.md row 14, "temporary file and rename, hash checked".
func TestDownload(t *testing.T) {
	for _, text := range []string{"", strings.Repeat("0123456789abcdef", 40_000)} {
		for _, want := range []artifact.Sum{{}, sumOf(text), {SHA256: strings.ToUpper(sumOf(text).SHA256)}} {
			root := folder(t)
			during := ""
			s := newStore(t, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, text)
				during = names(t, root)
			})
			if err := root.WriteFile("a", []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			d := artifact.Download{URL: s.url(), Issued: time.Now(), Root: root, Name: "a", Want: want}
			sum, err := client(t, artifact.Config{}).Download(t.Context(), d)
			if err != nil || sum != sumOf(text) {
				t.Fatalf("got %+v, %v, want %+v", sum, err, sumOf(text))
			}
			got, err := root.ReadFile("a")
			if err != nil || string(got) != text || names(t, root) != "a" {
				t.Errorf("the folder has %q with %d bytes, %v", names(t, root), len(got), err)
			}
			if s.asked[0] != "GET /bucket/key" || strings.HasPrefix(during, "a ") {
				t.Errorf("the requests are %q, the folder had %q", s.asked, during)
			}
		}
	}
}

// downloadFails runs a download that has to fail, and checks that it leaves the
// folder as it was.
func downloadFails(t *testing.T, c *artifact.Client, d artifact.Download) (*artifact.Error, error) {
	t.Helper()
	d.Root = folder(t)
	if err := d.Root.WriteFile("a", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Name = "a"
	sum, err := c.Download(t.Context(), d)
	e := problem(t, err)
	if got, _ := d.Root.ReadFile("a"); string(got) != "old" || names(t, d.Root) != "a" || sum != (artifact.Sum{}) {
		t.Errorf("it left %q with %q", names(t, d.Root), got)
	}
	return e, err
}

// TestDownloadTries: three tries within the URL's life, then a new URL; the
// partial file is removed.
func TestDownloadTries(t *testing.T) {
	const text = "the text"
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		io.WriteString(w, strings.Repeat("x", 50_000))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	chunked := func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "the")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	for _, tt := range []struct {
		name  string
		steps []http.HandlerFunc
		tries int
		ok    bool
		renew bool
	}{
		{"half, then cut", []http.HandlerFunc{half, cut, give(text)}, 3, true, false},
		{"half in chunks, then 503", []http.HandlerFunc{chunked, status(503, "SlowDown"), give(text)}, 3, true, false},
		{"half for ever", []http.HandlerFunc{half}, 3, false, true},
		{"expired", []http.HandlerFunc{status(403, "AccessDenied")}, 1, false, true},
		{"not there", []http.HandlerFunc{status(404, "NoSuchKey")}, 1, false, false},
		{"a part only", []http.HandlerFunc{status(206, "")}, 1, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t, tt.steps...)
			c := client(t, artifact.Config{})
			if tt.ok {
				root := folder(t)
				sum, err := c.Download(t.Context(), artifact.Download{URL: s.url(), Root: root, Name: "a"})
				if got, _ := root.ReadFile("a"); err != nil || sum != sumOf(text) || string(got) != text || names(t, root) != "a" {
					t.Errorf("got %+v, %v, the folder has %q", sum, err, names(t, root))
				}
			} else if e, err := downloadFails(t, c, artifact.Download{URL: s.url()}); e.Tries != tt.tries || errors.Is(err, artifact.ErrNewURL) != tt.renew {
				t.Errorf("got %v", err)
			}
			if s.requests() != tt.tries {
				t.Errorf("the store was asked %d times, want %d", s.requests(), tt.tries)
			}
		})
	}
}

// TestDownloadMismatch: other bytes than announced are not kept.
func TestDownloadMismatch(t *testing.T) {
	s := newStore(t, give("the text"))
	for name, want := range map[string]artifact.Sum{
		"size": {Size: 9}, "hash": {SHA256: sumOf("another").SHA256}, "size of the same hash": {Size: 7, SHA256: sumOf("the text").SHA256},
	} {
		e, err := downloadFails(t, client(t, artifact.Config{}), artifact.Download{URL: s.url(), Want: want})
		if !errors.Is(err, artifact.ErrMismatch) || e.NewURL || e.Tries != 1 {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := downloadFails(t, client(t, artifact.Config{}), artifact.Download{URL: s.url(), Want: artifact.Sum{SHA256: "abc"}}); !strings.Contains(err.Error(), "64 hex digits") {
		t.Errorf("a hash that is none: got %v", err)
	}
}

// TestDownloadTooLarge: connector.md row 14, "1 GiB at most", whether the store
// tells the size or not.
func TestDownloadTooLarge(t *testing.T) {
	c := client(t, artifact.Config{})
	huge := newStore(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(1<<30+1))
		io.WriteString(w, "x")
	})
	if e, err := downloadFails(t, c, artifact.Download{URL: huge.url()}); !errors.Is(err, artifact.ErrTooLarge) || e.NewURL || e.Tries != 1 {
		t.Errorf("told by the store: got %v", err)
	}
	if _, err := downloadFails(t, c, artifact.Download{URL: huge.url(), Want: artifact.Sum{Size: 1<<30 + 1}}); !errors.Is(err, artifact.ErrTooLarge) {
		t.Errorf("told by the server: got %v", err)
	}
	if huge.requests() != 1 {
		t.Errorf("the store was asked %d times, want once", huge.requests())
	}
	endless := newStore(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	})
	small := client(t, artifact.Config{MaxDownload: 100_000})
	if e, err := downloadFails(t, small, artifact.Download{URL: endless.url()}); !errors.Is(err, artifact.ErrTooLarge) || e.Tries != 1 {
		t.Errorf("without an end: got %v", err)
	}
	exact := newStore(t, give(strings.Repeat("x", 100_000)))
	if _, err := small.Download(t.Context(), artifact.Download{URL: exact.url(), Root: folder(t), Name: "a"}); err != nil {
		t.Errorf("exactly as much as is allowed: %v", err)
	}
}

// TestDownloadStall: a minute without a byte ends a try, slowness does not.
func TestDownloadStall(t *testing.T) {
	for name, sent := range map[string]string{"at once": "", "in the middle": "the"} {
		s := newStore(t)
		s.steps = []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
			if sent != "" {
				io.WriteString(w, sent)
				w.(http.Flusher).Flush()
			}
			<-s.over
		}}
		c := client(t, artifact.Config{Stall: 100 * time.Millisecond, Tries: 2})
		if e, err := downloadFails(t, c, artifact.Download{URL: s.url()}); !errors.Is(err, bridge.ErrStalled) || !e.NewURL || e.Tries != 2 {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if testing.Short() {
		return
	}
	slow := newStore(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 8 {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			time.Sleep(400 * time.Millisecond) // what is tested is slowness
		}
	})
	c := client(t, artifact.Config{Stall: 2 * time.Second, Tries: 1})
	sum, err := c.Download(t.Context(), artifact.Download{URL: slow.url(), Root: folder(t), Name: "a"})
	if err != nil || sum.Size != 8 {
		t.Errorf("what is slow and longer than the wait in all: got %+v, %v", sum, err)
	}
}

// TestRedirect: what holds a URL may use it, so no other host gets it; and a PUT
// stays a PUT.
func TestRedirect(t *testing.T) {
	other := newStore(t, give("other"))
	to := func(code int, where string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Location", where)
			w.WriteHeader(code)
		}
	}
	c := client(t, artifact.Config{})
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := newStore(t, to(code, other.url()))
		_, up := c.Upload(t.Context(), artifact.Upload{URL: s.url(), File: file(t, "x"), Size: 1})
		_, down := downloadFails(t, c, artifact.Download{URL: s.url()})
		for _, err := range []error{up, down} {
			if e := problem(t, err); e.NewURL || e.Tries != 1 || !strings.Contains(err.Error(), "redirect") {
				t.Errorf("%d: got %v", code, err)
			}
		}
	}
	if other.requests() != 0 {
		t.Errorf("the other host was asked %q", other.asked)
	}
	for _, code := range []int{301, 302, 303} {
		s := newStore(t, to(code, "/bucket/elsewhere"), give("looks like success"))
		_, err := c.Upload(t.Context(), artifact.Upload{URL: s.url(), File: file(t, "x"), Size: 1})
		if problem(t, err); !strings.Contains(err.Error(), "PUT would become GET") || s.requests() != 1 {
			t.Errorf("%d: got %v after %q", code, err, s.asked)
		}
	}
	s := newStore(t, to(307, "/bucket/elsewhere"))
	referer := ""
	s.steps = append(s.steps, func(w http.ResponseWriter, r *http.Request) {
		referer = r.Header.Get("Referer")
		s.take(w, r)
	})
	sum, err := c.Upload(t.Context(), artifact.Upload{URL: s.url(), File: file(t, "text"), Size: 4})
	if err != nil || sum != sumOf("text") || string(s.body()) != "text" || referer != "" {
		t.Errorf("within the host: got %+v, %v, the store has %q, the Referer is %q", sum, err, s.body(), referer)
	}
	round := newStore(t, to(307, "/bucket/key"))
	if _, err := downloadFails(t, c, artifact.Download{URL: round.url()}); round.requests() != 4 {
		t.Errorf("a redirect to itself: got %v after %d requests", err, round.requests())
	}
}

// TestDownloadStaysInside: names come from a server.
func TestDownloadStaysInside(t *testing.T) {
	s := newStore(t, give("x"))
	root, outside := folder(t), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root.Name(), "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "/x", "a/../../x", "", ".", "link/x", "missing/x"} {
		_, err := client(t, artifact.Config{}).Download(t.Context(), artifact.Download{URL: s.url(), Root: root, Name: name})
		if e := problem(t, err); e.NewURL {
			t.Errorf("%q: got %v", name, err)
		}
	}
	list, err := os.ReadDir(outside)
	if err != nil || len(list) != 0 || names(t, root) != "link" {
		t.Errorf("outside are %v, inside %q", list, names(t, root))
	}
	// A link of the name is replaced, and not followed.
	if err := os.Symlink(filepath.Join(outside, "target"), filepath.Join(root.Name(), "file")); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, artifact.Config{}).Download(t.Context(), artifact.Download{URL: s.url(), Root: root, Name: "file"}); err != nil {
		t.Fatal(err)
	}
	if info, err := root.Lstat("file"); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link is %v, %v", info, err)
	}
}

// TestDownloadLongName: the temporary name is not longer than the name.
func TestDownloadLongName(t *testing.T) {
	s, root, name := newStore(t, give("x")), folder(t), strings.Repeat("n", 255)
	if _, err := client(t, artifact.Config{}).Download(t.Context(), artifact.Download{URL: s.url(), Root: root, Name: name}); err != nil || names(t, root) != name {
		t.Errorf("got %v, the folder has %q", err, names(t, root))
	}
}

// TestDownloadKeepsBytes: what is stored packed is kept packed, since the hash
// is that of the stored bytes.
func TestDownloadKeepsBytes(t *testing.T) {
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	io.WriteString(z, "the text")
	z.Close()
	s := newStore(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, packed.String())
	})
	sum, err := client(t, artifact.Config{}).Download(t.Context(), artifact.Download{URL: s.url(), Root: folder(t), Name: "a"})
	if err != nil || sum != sumOf(packed.String()) {
		t.Errorf("got %+v, %v, want %+v", sum, err, sumOf(packed.String()))
	}
}
