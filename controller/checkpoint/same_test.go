package checkpoint

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// TestRow11SameBytes: the same tree gives the same bytes, whatever the order in
// which it was made, and again after it was restored.
func TestRow11SameBytes(t *testing.T) {
	first, stored := capture1(t, tree(t, false))
	second, _ := capture1(t, tree(t, true))
	if first != second {
		t.Errorf("the same tree gave %+v and %+v", first, second)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	check(t, Restore(ctx, bytes.NewReader(stored), first, dir))
	if third, _ := capture1(t, dir); third != first {
		t.Errorf("the restored tree gave %+v, want %+v", third, first)
	}
}

// TestRow11Golden: the bytes are the same on every machine. A new version of
// the compressor may change them; then this line is renewed.
func TestRow11Golden(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no symlinks and permission bits here")
	}
	const want = "dba8b24b71054dad5f02c43cf716f03b59865df7442cdc0ae3269a5aac0111cb"
	if p, _ := capture1(t, tree(t, false)); p.SHA256 != want {
		t.Errorf("the tree of the tests gives %s, want %s", p.SHA256, want)
	}
}

// slow gives way before each write, so that what runs beside it gets ahead.
type slow struct{ bytes.Buffer }

func (s *slow) Write(p []byte) (int, error) {
	for range 10 {
		runtime.Gosched()
	}
	return s.Buffer.Write(p)
}

// TestRow11Processors: the bytes of many blocks are those of one thread, with
// any number of processors and a writer that is slow.
func TestRow11Processors(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 { // 1 MiB, a block has 128 KiB
		path := filepath.Join(dir, fmt.Sprint("text", i))
		check(t, os.WriteFile(path, text(i, 256<<10), 0o644))
		check(t, os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)))
	}
	_, stored := capture1(t, dir)
	z, err := zstd.NewReader(bytes.NewReader(stored))
	check(t, err)
	defer z.Close()
	archive, err := io.ReadAll(z)
	check(t, err)
	var one bytes.Buffer
	w, err := zstd.NewWriter(&one, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithAllLitEntropyCompression(true))
	check(t, err)
	_, err = w.Write(archive)
	check(t, errors.Join(err, w.Close()))
	if !bytes.Equal(stored, one.Bytes()) {
		t.Errorf("got %d bytes, want the %d of one thread", len(stored), one.Len())
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, 4} {
		runtime.GOMAXPROCS(n)
		var out slow
		_, err := Capture(ctx, dir, &out)
		check(t, err)
		if !bytes.Equal(out.Bytes(), stored) {
			t.Errorf("with %d processors other bytes", n)
		}
	}
}

// TestCaptureReplaced: what takes the place of a file or a folder after it was
// looked at is told, and neither waited for nor followed.
func TestCaptureReplaced(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, "other"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "regular"), []byte("text"), 0o644))
	check(t, os.Symlink("other", filepath.Join(dir, "folder")))
	check(t, os.Symlink("regular", filepath.Join(dir, "link")))
	if err := pipe(dir); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	check(t, err)
	defer root.Close()
	info, err := root.Lstat("other")
	check(t, err)
	c := &capture{ctx: ctx, limits: Limits{}.filled(), tar: tar.NewWriter(io.Discard)}
	c.rules = rules(c.limits)
	for name, err := range map[string]error{
		"pipe": c.file(root, "x", "x", info), "link": c.file(root, "link", "link", info), "folder": c.down(root, "", "folder/"),
	} {
		if name == "pipe" && errors.Is(err, fs.ErrNotExist) {
			continue // no pipes here
		}
		if !errors.Is(err, errChanged) {
			t.Errorf("%s: got %v, want that it was changed", name, err)
		}
	}
	if err := c.down(root, "", "other/"); err != nil {
		t.Errorf("a folder that is the same: %v", err)
	}
}
