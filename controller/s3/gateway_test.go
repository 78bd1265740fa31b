package s3_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller/artifact"
	"prp/controller/bridge"
	"prp/controller/checkpoint"
	"prp/controller/s3"
)

const (
	bucket    = "artifacts"
	accessKey = "AKIDTEST"
	secretKey = "5ec7e7-5ec7e7-5ec7e7"
	// buildWait bounds the build: some 290 s of processor time where nothing is
	// cached, and less than a test may take. What is done by then is cached.
	buildWait = 6 * time.Minute
	// starts is how often the gateway is started where its port was taken.
	starts = 3
	// large is more than a socket or a buffer of anybody holds, and no multiple
	// of a piece.
	large = 20<<20 + 5
)

// gateway starts a real S3-compatible server on loopback, and returns its
// address. It lives until the test ends or stop is called.
func gateway(t *testing.T) (endpoint string, stop func()) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program of another module")
	}
	program := filepath.Join(t.TempDir(), "gateway.exe")
	ctx, cancel := context.WithTimeout(t.Context(), buildWait)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("testdata", "gateway")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("the gateway cannot be built here: %v\n%s", err, out)
	}
	for range starts {
		if addr, stop := start(t, program); addr != "" {
			return "http://" + addr, stop
		}
	}
	t.Fatal("the gateway does not start")
	return "", nil
}

// start runs the program until the test ends or stop is called. The address is
// empty where it ended first.
func start(t *testing.T, program string) (addr string, stop func()) {
	t.Helper()
	run := exec.Command(program, t.TempDir(), bucket, accessKey, secretKey)
	var said bytes.Buffer
	run.Stderr = &said
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // empty where it ended
	stop = sync.OnceFunc(func() {
		in.Close()
		err := run.Wait()
		if t.Failed() || err != nil {
			t.Logf("the gateway ended with %v and said:\n%s", err, &said)
		}
	})
	t.Cleanup(stop)
	return strings.TrimSpace(line), stop
}

// noise is the same bytes for the same size.
func noise(size int) string {
	var seed [32]byte
	seed[0] = byte(size)
	b := make([]byte, size)
	rand.NewChaCha8(seed).Read(b)
	return string(b)
}

func sumOf(text string) artifact.Sum {
	raw := sha256.Sum256([]byte(text))
	return artifact.Sum{Size: int64(len(text)), SHA256: hex.EncodeToString(raw[:])}
}

// TestGateway: issue point 3 and workerclient.md row 11 against a real
// S3-compatible server. It is one test, since the server takes long to build.
func TestGateway(t *testing.T) {
	endpoint, stop := gateway(t)
	store := open(t, endpoint, nil)
	t.Run("objects", func(t *testing.T) { objects(t, store) })
	t.Run("strangers", func(t *testing.T) { strangers(t, endpoint) })
	t.Run("tampered", func(t *testing.T) { tampered(t, endpoint) })
	t.Run("torn", func(t *testing.T) { torn(t, store) })
	t.Run("checkpoints", func(t *testing.T) { checkpoints(t, store) })
	t.Run("artifacts", func(t *testing.T) { artifacts(t, store) })
	t.Run("bad URLs", func(t *testing.T) { badURLs(t, endpoint) })
	t.Run("the connector", func(t *testing.T) {
		dir := programs(t)
		t.Run("up and down", func(t *testing.T) { throughDoor(t, dir, endpoint, store) })
		stop()
		t.Run("store gone", func(t *testing.T) { storeGone(t, dir, store) })
	})
}

func open(t *testing.T, endpoint string, change func(*s3.Config)) *s3.Store {
	t.Helper()
	cfg := s3.Config{
		Endpoint: endpoint, Bucket: bucket, Prefix: "p/", AccessKey: accessKey, SecretKey: secretKey,
		Backoff: bridge.Backoff{Steps: []time.Duration{time.Millisecond}},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := s3.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// objects are put both ways, and read again.
func objects(t *testing.T, store *s3.Store) {
	ctx := t.Context()
	for _, key := range []string{"sha256/ab.tar.zst", "a b+c$d~e=f&g", "\u00fc/\u4e16"} {
		for _, size := range []int{0, 1, 64 << 10, 200_001, large} {
			if size == large && key[0] != 's' {
				continue
			}
			text := noise(size)
			for _, seeks := range []bool{true, false} {
				var r io.Reader = strings.NewReader(text)
				want := s3.Info{Size: int64(size), SHA256: sumOf(text).SHA256}
				if !seeks {
					r, want.SHA256 = struct{ io.Reader }{r}, ""
				}
				if err := store.Put(ctx, key, int64(size), r); err != nil {
					t.Fatalf("%q, %d bytes, seeks %v: %v", key, size, seeks, err)
				}
				if info, err := store.Stat(ctx, key); err != nil || info != want {
					t.Errorf("%q: stat is %+v, %v, want %+v", key, info, err, want)
				}
				if got := read(t, store, key); got != text {
					t.Errorf("%q, %d bytes, seeks %v: got %d others", key, size, seeks, len(got))
				}
			}
		}
	}
	if _, _, err := store.Get(ctx, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing key: got %v", err)
	}
	if _, err := store.Stat(ctx, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat of a missing key: got %v", err)
	}
}

// checkpoints: a workspace goes into the bucket and comes back.
func checkpoints(t *testing.T, store *s3.Store) {
	workspace, back := t.TempDir(), filepath.Join(t.TempDir(), "back")
	if err := os.WriteFile(filepath.Join(workspace, "notes"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	payload, err := checkpoint.Save(t.Context(), store, workspace, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Load(t.Context(), store, payload, back); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(back, "notes")); err != nil || string(got) != "kept" {
		t.Errorf("the restored file holds %q, %v", got, err)
	}
}

func read(t *testing.T, store *s3.Store, key string) string {
	t.Helper()
	r, size, err := store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil || int64(len(text)) != size {
		t.Fatalf("%q: got %d of %d bytes, %v", key, len(text), size, err)
	}
	return string(text)
}

// strangers are refused: the control that the server checks at all.
func strangers(t *testing.T, endpoint string) {
	for code, change := range map[string]func(*s3.Config){
		"SignatureDoesNotMatch": func(c *s3.Config) { c.SecretKey += "x" },
		// What others call InvalidAccessKeyId.
		"XAdminUserNotFound":   func(c *s3.Config) { c.AccessKey += "x" },
		"RequestTimeTooSkewed": func(c *s3.Config) { c.Now = func() time.Time { return time.Now().Add(-time.Hour) } },
		"NoSuchBucket":         func(c *s3.Config) { c.Bucket = "another" },
	} {
		store := open(t, endpoint, change)
		for name, r := range map[string]io.Reader{"seeker": strings.NewReader("text"), "stream": struct{ io.Reader }{strings.NewReader("text")}} {
			err := store.Put(t.Context(), "stranger", 4, r)
			var e *s3.Error
			if !errors.As(err, &e) || e.Code != code || errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), secretKey) {
				t.Errorf("%s, %s: got %v", code, name, err)
			}
		}
	}
}

// changing is a network that changes a byte of what is sent.
type changing struct{}

func (changing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		at := bytes.LastIndex(body, []byte("TEXT"))
		body[at] = 't'
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// tampered: what is changed on its way is refused, and not stored.
func tampered(t *testing.T, endpoint string) {
	store := open(t, endpoint, func(c *s3.Config) { c.Client = &http.Client{Transport: changing{}} })
	text := noise(100_000) + "TEXT"
	for name, r := range map[string]io.Reader{"seeker": strings.NewReader(text), "stream": struct{ io.Reader }{strings.NewReader(text)}} {
		err := store.Put(t.Context(), "tampered-"+name, int64(len(text)), r)
		if e := new(s3.Error); !errors.As(err, &e) || e.Status/100 != 4 {
			t.Errorf("%s: got %v", name, err)
		}
		if info, err := store.Stat(t.Context(), "tampered-"+name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: stored as %+v, %v", name, info, err)
		}
	}
}

// torn: a put that ends in the middle stores nothing, and leaves what was there.
func torn(t *testing.T, store *s3.Store) {
	if err := store.Put(t.Context(), "torn", 3, strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := store.Put(ctx, "torn", large, &ending{after: large / 2, end: cancel})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := read(t, store, "torn"); got != "old" {
		t.Errorf("there are %d bytes", len(got))
	}
}

// ending calls end in the middle.
type ending struct {
	after int
	end   func()
}

func (e *ending) Read(p []byte) (int, error) {
	if e.after -= len(p); e.after < 0 {
		e.end()
	}
	return len(p), nil
}

// artifacts go up and down by presigned URLs: connector.md row 14.
func artifacts(t *testing.T, store *s3.Store) {
	c, err := artifact.New(artifact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, size := range []int{0, 1, 200_001, large} {
		text := noise(size)
		if err := root.WriteFile("up", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := root.Open("up")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		up := artifact.Upload{URL: presign(t, store, http.MethodPut, "results.csv"), File: f, Size: int64(size), ContentType: "text/csv"}
		sum, err := c.Upload(t.Context(), up)
		if err != nil || sum != sumOf(text) {
			t.Fatalf("up, %d bytes: got %+v, %v", size, sum, err)
		}
		if got := read(t, store, "results.csv"); got != text {
			t.Errorf("%d bytes: the store has %d others", size, len(got))
		}
		down := artifact.Download{URL: presign(t, store, http.MethodGet, "results.csv"), Root: root, Name: "down", Want: sum}
		if got, err := c.Download(t.Context(), down); err != nil || got != sum {
			t.Errorf("down, %d bytes: got %+v, %v", size, got, err)
		}
		if got, err := root.ReadFile("down"); err != nil || string(got) != text {
			t.Errorf("%d bytes: the file has %d others, %v", size, len(got), err)
		}
	}
	missing := artifact.Download{URL: presign(t, store, http.MethodGet, "missing"), Root: root, Name: "missing"}
	var e *artifact.Error
	if _, err := c.Download(t.Context(), missing); !errors.As(err, &e) || e.Code != "NoSuchKey" || e.NewURL {
		t.Errorf("an artifact that is not there: got %v", err)
	}
}

func presign(t *testing.T, store *s3.Store, method, key string) string {
	t.Helper()
	address, err := store.Presign(method, key, artifact.DefaultLife)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// badURLs are refused by the server at once, and a new one is asked for.
func badURLs(t *testing.T, endpoint string) {
	store := open(t, endpoint, nil)
	old := open(t, endpoint, func(c *s3.Config) { c.Now = func() time.Time { return time.Now().Add(-time.Hour) } })
	stranger := open(t, endpoint, func(c *s3.Config) { c.SecretKey += "x" })
	signature := func(address string) string { // its last digit is another one
		last := address[len(address)-1:]
		return address[:len(address)-1] + map[bool]string{true: "1", false: "0"}[last == "0"]
	}
	put := presign(t, store, http.MethodPut, "bad")
	c, err := artifact.New(artifact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "up"))
	if err == nil {
		_, err = f.WriteString("text")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, address := range map[string]string{
		"expired":          presign(t, old, http.MethodPut, "bad"),
		"tampered":         signature(put),
		"of another key":   strings.Replace(put, "/bad?", "/worse?", 1),
		"longer life":      strings.Replace(put, "X-Amz-Expires=300", "X-Amz-Expires=900", 1),
		"for a get":        presign(t, store, http.MethodGet, "bad"),
		"of a wrong key":   presign(t, stranger, http.MethodPut, "bad"),
		"without the sign": strings.SplitN(put, "&X-Amz-Signature", 2)[0],
	} {
		_, err := c.Upload(t.Context(), artifact.Upload{URL: address, File: f, Size: 4})
		var e *artifact.Error
		if !errors.As(err, &e) || e.Tries != 1 || e.Status/100 != 4 || name != "without the sign" && !errors.Is(err, artifact.ErrNewURL) {
			t.Errorf("%s: got %v", name, err)
		}
		if strings.Contains(err.Error(), "X-Amz") || strings.Contains(err.Error(), "/bad") {
			t.Errorf("%s: %q shows the URL", name, err)
		}
	}
	if info, err := store.Stat(t.Context(), "bad"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is stored as %+v, %v", info, err)
	}
}
