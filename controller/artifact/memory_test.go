package artifact_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"prp/controller/artifact"
)

// TestMemory: what is allocated for 64 MiB each way, by both ends together, is
// a small part of them.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 128 MiB")
	}
	const size, most = 64 << 20, 8 << 20
	f, err := os.Create(filepath.Join(t.TempDir(), "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) },
		func(w http.ResponseWriter, _ *http.Request) { io.CopyN(w, io.NewSectionReader(f, 0, size), size) })
	c := client(t, artifact.Config{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	up, err := c.Upload(t.Context(), artifact.Upload{URL: s.url(), File: f, Size: size})
	if err != nil {
		t.Fatal(err)
	}
	down, err := c.Download(t.Context(), artifact.Download{URL: s.url(), Root: folder(t), Name: "a", Want: up})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if up != down || up.Size != size {
		t.Errorf("sent %+v, got %+v", up, down)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		t.Errorf("%d bytes were allocated, want at most %d", got, most)
	}
}
