package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller/bridge"
	"prp/controller/checkpoint"
)

// TestSign: the example of the description of AWS Signature Version 4 for a GET
// of an object, and that a changed part changes the signature.
func TestSign(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	keys := Keys{AccessKey: "AKIAIOSFODNN7EXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	signed := func(method, address, region string, k Keys) string {
		r, err := http.NewRequest(method, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Range", "bytes=0-9")
		sign(r, k, region, empty, at)
		return r.Header.Get("Authorization")
	}
	const address = "https://examplebucket.s3.amazonaws.com/test.txt"
	want := "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request," +
		"SignedHeaders=host;range;x-amz-content-sha256;x-amz-date," +
		"Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
	got := signed("GET", address, "us-east-1", keys)
	if got != want {
		t.Errorf("signed as\n%s\nwant\n%s", got, want)
	}
	session := keys
	session.SessionToken = "token"
	for _, other := range []string{
		signed("PUT", address, "us-east-1", keys), signed("GET", address+"x", "us-east-1", keys),
		signed("GET", address, "eu-west-1", keys), signed("GET", address, "us-east-1", session),
	} {
		if other == want || strings.Contains(other, keys.SecretKey) {
			t.Errorf("signed as %s", other)
		}
	}
}

// shelf is an object store on loopback that misbehaves when it is told to.
type shelf struct {
	mu      sync.Mutex
	objects map[string][]byte
	// fail has what the next calls do instead: a status, 0 for no answer.
	fail  []int
	calls int
	auth  []string
}

func (s *shelf) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.auth = append(s.auth, r.Header.Get("Authorization"))
	if len(s.fail) > 0 {
		status := s.fail[0]
		s.fail = s.fail[1:]
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		rw.WriteHeader(status)
		fmt.Fprintf(rw, "<Error><Code>Code%d</Code></Error>", status)
		return
	}
	switch object, ok := s.objects[r.URL.Path]; {
	case r.Method == http.MethodPut && err == nil:
		s.objects[r.URL.Path] = body
	case r.Method == http.MethodGet && ok:
		rw.Header().Set("Content-Length", fmt.Sprint(len(object)))
		_, _ = rw.Write(object) // the other end may have left
	default:
		rw.WriteHeader(http.StatusNotFound)
	}
}

// opened is a bucket of a store on loopback, with short waits.
func opened(t *testing.T, fail ...int) (*Store, *shelf) {
	t.Helper()
	s := &shelf{objects: map[string][]byte{}, fail: fail}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := bridge.TLS{}.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	store, err := New(Config{
		Endpoint: server.URL + "/", Bucket: "workspaces", Prefix: "space-1", Region: "us-east-1",
		Keys: Keys{AccessKey: "the-access-key", SecretKey: "the-secret-key"}, Client: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	store.waits = []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}
	return store, s
}

const key = "sha256/abc.tar.zst"

// TestStore: row 11. What is stored is read again, under its key; what is not
// there is told as such.
func TestStore(t *testing.T) {
	store, s := opened(t)
	for _, content := range []string{"", "x", strings.Repeat("large", 1<<20)} {
		if err := store.Put(t.Context(), key, int64(len(content)), strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		r, size, err := store.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || string(got) != content || size != int64(len(content)) {
			t.Errorf("%d bytes became %d of %d, %v", len(content), len(got), size, err)
		}
	}
	if s.objects["/workspaces/space-1/"+key] == nil {
		t.Errorf("the objects are %d others", len(s.objects))
	}
	if _, _, err := store.Get(t.Context(), "sha256/none.tar.zst"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	for _, auth := range s.auth {
		if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=the-access-key/") || strings.Contains(auth, "the-secret-key") {
			t.Errorf("authorized by %q", auth)
		}
	}
}

// TestCheckpoint: a workspace goes into a bucket and comes back.
func TestCheckpoint(t *testing.T) {
	store, _ := opened(t, 503, 0)
	dir := t.TempDir()
	p, err := checkpoint.Save(t.Context(), store, dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Load(t.Context(), store, p, t.TempDir()); err != nil {
		t.Error(err)
	}
}

// TestTries: no answer, 429 and 5xx are tried again three times, and nothing else.
func TestTries(t *testing.T) {
	for _, tt := range []struct {
		fail  []int
		calls int
		ok    bool
	}{
		{[]int{503, 0, 429}, 4, true},
		{[]int{503, 500, 502, 503, 503}, 4, false},
		{[]int{403}, 1, false},
		{[]int{301}, 1, false},
	} {
		for _, method := range []string{"PUT", "GET"} {
			store, s := opened(t, tt.fail...)
			s.objects["/workspaces/space-1/"+key] = []byte("x")
			var err error
			if method == "PUT" {
				err = store.Put(t.Context(), key, 3, bytes.NewReader([]byte("abc")))
			} else {
				var r io.ReadCloser
				if r, _, err = store.Get(t.Context(), key); err == nil {
					r.Close()
				}
			}
			if (err == nil) != tt.ok || s.calls != tt.calls {
				t.Errorf("%s with %v: %v after %d calls", method, tt.fail, err, s.calls)
			}
			if err != nil && (strings.Contains(err.Error(), "the-secret-key") || strings.Contains(err.Error(), "127.0.0.1")) {
				t.Errorf("the error tells too much: %v", err)
			}
		}
	}
	store, s := opened(t, 503)
	if err := store.Put(t.Context(), key, 3, io.MultiReader(strings.NewReader("abc"))); err == nil || s.calls != 1 {
		t.Errorf("bytes that cannot be read again: %v after %d calls", err, s.calls)
	}
}

// TestLength: other than the announced bytes are an error, and nothing is stored.
func TestLength(t *testing.T) {
	for size, content := range map[int64]string{0: "x", 3: "ab", 2: "abc", 5: ""} {
		store, s := opened(t)
		err := store.Put(t.Context(), key, size, strings.NewReader(content))
		if !errors.Is(err, errLength) || len(s.objects) > 0 {
			t.Errorf("%d bytes announced, %q: %v, %d stored", size, content, err, len(s.objects))
		}
	}
}

// TestCancel: the end of the context ends a call.
func TestCancel(t *testing.T) {
	store, s := opened(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Put(ctx, key, 1, strings.NewReader("x")); !errors.Is(err, context.Canceled) || len(s.objects) > 0 {
		t.Errorf("%v, %d stored", err, len(s.objects))
	}
}

// TestNew: names that would mean another place are refused.
func TestNew(t *testing.T) {
	good := Config{Endpoint: "https://host", Bucket: "bucket", Region: "r", Keys: Keys{AccessKey: "a", SecretKey: "b"}, Client: http.DefaultClient}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"bucket": func(c *Config) { c.Bucket = "../x" }, "prefix": func(c *Config) { c.Prefix = "a/../b" }, "region": func(c *Config) { c.Region = "" },
		"access key": func(c *Config) { c.Keys.AccessKey = "" }, "secret key": func(c *Config) { c.Keys.SecretKey = "" }, "client": func(c *Config) { c.Client = nil },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("a wrong %s is taken", name)
		}
	}
	store, _ := opened(t)
	if err := store.Put(t.Context(), "../x", 0, strings.NewReader("")); err == nil {
		t.Error("a key that leads elsewhere is taken")
	}
}
