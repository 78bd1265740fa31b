package checkpoint

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"prp/controller/unpack"
)

var (
	ctx  = context.Background()
	when = time.Date(2021, 2, 3, 4, 5, 6, 123456789, time.UTC)
)

// tree makes a folder with some of everything. The order in which it is made
// must not have a part in the bytes.
func tree(t testing.TB, backwards bool) string {
	t.Helper()
	dir := t.TempDir()
	names := []string{
		"a/x", "a/y/z", "a-b", "a.c", "a0", "empty", "ünï/cödé", strings.Repeat("long", 40) + "/" + strings.Repeat("name", 40),
		"run.sh", "zeros",
	}
	if backwards {
		slices.Reverse(names)
	}
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(strings.Repeat("line of "+name+"\n", 1+len(name)*20)), 0o644))
		check(t, os.Chmod(path, 0o644))
	}
	check(t, os.Truncate(filepath.Join(dir, "empty"), 0))
	check(t, os.WriteFile(filepath.Join(dir, "zeros"), make([]byte, 300<<10), 0o644))
	check(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	check(t, os.Mkdir(filepath.Join(dir, "void"), 0o700))
	if runtime.GOOS != "windows" {
		check(t, os.Symlink("a/x", filepath.Join(dir, "link")))
		check(t, os.Symlink("../../a-b", filepath.Join(dir, "a/y/link")))
	}
	settle(t, dir)
	return dir
}

// settle gives every file the same time, but for one without part of a second,
// and every folder but one the same mode, whatever the umask.
func settle(t testing.TB, dir string) {
	t.Helper()
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		if d.IsDir() && d.Name() != "void" {
			check(t, os.Chmod(path, 0o755))
		}
		at := when
		if d.Name() == "a0" {
			at = when.Truncate(time.Second)
		}
		return os.Chtimes(path, at, at)
	}))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func capture1(t testing.TB, dir string) (Payload, []byte) {
	t.Helper()
	var out bytes.Buffer
	p, err := Capture(ctx, dir, &out)
	check(t, err)
	return p, out.Bytes()
}

// headers lists the archive inside.
func headers(t testing.TB, stored []byte) []*tar.Header {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(stored))
	check(t, err)
	defer z.Close()
	var list []*tar.Header
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return list
		}
		check(t, err)
		list = append(list, h)
	}
}

// TestRow11Form: one zstd tar, relative paths in lexical order, permission
// bits, times, symlinks; owner zeroed, special bits stripped.
func TestRow11Form(t *testing.T) {
	dir := tree(t, false)
	if runtime.GOOS != "windows" {
		check(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o751|fs.ModeSetuid|fs.ModeSetgid))
		check(t, os.Chmod(filepath.Join(dir, "void"), 0o700|fs.ModeSticky))
		check(t, os.Chtimes(filepath.Join(dir, "void"), when, when))
	}
	p, stored := capture1(t, dir)
	var names []string
	var content int64
	for _, h := range headers(t, stored) {
		name := strings.TrimSuffix(h.Name, "/")
		names = append(names, name)
		content += h.Size
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s belongs to %d %d %q %q, want nobody", name, h.Uid, h.Gid, h.Uname, h.Gname)
		}
		if h.Mode&^0o777 != 0 {
			t.Errorf("%s has mode %o, want no special bits", name, h.Mode)
		}
		if h.Typeflag != tar.TypeSymlink && name != "a0" && !h.ModTime.Equal(when) {
			t.Errorf("%s is from %v, want %v", name, h.ModTime, when)
		}
		if plain := name == "a0" || h.Typeflag == tar.TypeSymlink; plain && len(h.PAXRecords) > 0 {
			t.Errorf("%s has an extension %v without need", name, h.PAXRecords)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the names are not in lexical order: %q", names)
	}
	if len(slices.Compact(slices.Clone(names))) != len(names) || slices.Contains(names, ".") {
		t.Errorf("a name stands twice, or the top folder is there: %q", names)
	}
	sum := sha256.Sum256(stored)
	want := Payload{"tar.zst.v1", hex.EncodeToString(sum[:]), int64(len(stored)), content, int64(len(names))}
	if p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

// TestRow11Order: names are in the order of their bytes as a whole, also where
// the name of a folder is the beginning of others, which are folders too.
func TestRow11Order(t *testing.T) {
	dir := t.TempDir()
	var want []string
	// All of them are less than the slash, equal to nothing, or more.
	parts := []string{"a", "a!", "a!!", "a!-", "a-", "a0", "b"}
	for _, top := range parts {
		want = append(want, top)
		for _, sub := range parts[:4] {
			name := top + "/" + sub
			check(t, os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o755))
			check(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name+"/file")), nil, 0o644))
			want = append(want, name, name+"/file")
		}
	}
	slices.Sort(want)
	_, stored := capture1(t, dir)
	var got []string
	for _, h := range headers(t, stored) {
		got = append(got, strings.TrimSuffix(h.Name, "/"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestRow11Restored: what is restored is what was captured.
func TestRow11Restored(t *testing.T) {
	from := tree(t, false)
	if runtime.GOOS != "windows" {
		check(t, os.Chmod(filepath.Join(from, "void"), 0o500))
		check(t, os.Chmod(filepath.Join(from, "a0"), 0))
		t.Cleanup(func() { os.Chmod(filepath.Join(from, "a0"), 0o600) })
		if f, err := os.Open(filepath.Join(from, "a0")); err != nil {
			check(t, os.Chmod(filepath.Join(from, "a0"), 0o400))
		} else {
			f.Close() // root reads it all the same
		}
	}
	p, stored := capture1(t, from)
	to := filepath.Join(t.TempDir(), "to")
	check(t, Restore(ctx, bytes.NewReader(stored), p, to))
	seen := 0
	check(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		seen++
		a, err := os.Lstat(path)
		check(t, err)
		b, err := os.Lstat(filepath.Join(to, rel))
		if err != nil || a.Mode() != b.Mode() {
			t.Errorf("%s: %v (%v), want mode %v", rel, b, err, a.Mode())
			return nil
		}
		switch a.Mode().Type() {
		case fs.ModeSymlink:
			x, _ := os.Readlink(path)
			if y, _ := os.Readlink(filepath.Join(to, rel)); x != y {
				t.Errorf("%s points at %q, want %q", rel, y, x)
			}
			return nil
		case 0:
			x, _ := os.ReadFile(path)
			if y, _ := os.ReadFile(filepath.Join(to, rel)); !bytes.Equal(x, y) {
				t.Errorf("%s has other content", rel)
			}
		}
		if !a.ModTime().Equal(b.ModTime()) {
			t.Errorf("%s is from %v, want %v", rel, b.ModTime(), a.ModTime())
		}
		return nil
	}))
	if int64(seen) != p.EntryCount {
		t.Errorf("%d entries were compared, want %d", seen, p.EntryCount)
	}
}

// TestRow11Odd: names and times of every kind come back as they were.
func TestRow11Odd(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not every system has such names")
	}
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	names := []string{"\xff\xfe", "new\nline", " space ", "-dash", "a=b", "back\\slash", "c:x", "..x", "x..", strings.Repeat("n", 255), "ü", "u\u0308"}
	times := []time.Time{
		time.Unix(0, 0), time.Unix(-86400, 500), time.Unix(1, 1), time.Date(2100, 1, 1, 0, 0, 0, 999999999, time.UTC), when.Truncate(time.Second),
	}
	for i, name := range names {
		path := filepath.Join(from, name)
		check(t, os.WriteFile(path, []byte(name), 0o640))
		check(t, os.Chtimes(path, times[i%len(times)], times[i%len(times)]))
	}
	p, stored := capture1(t, from)
	check(t, Restore(ctx, bytes.NewReader(stored), p, to))
	for i, name := range names {
		path := filepath.Join(to, name)
		if text, err := os.ReadFile(path); string(text) != name {
			t.Errorf("%q has %q, %v", name, text, err)
			continue
		}
		if info, _ := os.Stat(path); !info.ModTime().Equal(times[i%len(times)]) {
			t.Errorf("%q is from %v, want %v", name, info.ModTime(), times[i%len(times)])
		}
	}
	if again, _ := capture1(t, to); again != p {
		t.Errorf("captured again: %+v, want %+v", again, p)
	}
}

// TestRow11CaptureRefusals: what cannot be stored is named.
func TestRow11CaptureRefusals(t *testing.T) {
	small := Limits{MaxBytes: 10, MaxEntries: 3, MaxDepth: 2}
	for name, c := range map[string]struct {
		limits Limits
		make   func(dir string) error
		why    string
	}{
		"absolute symlink":  {make: func(d string) error { return os.Symlink("/etc/passwd", d+"/x") }, why: "absolute"},
		"escaping symlink":  {make: func(d string) error { return os.Symlink("../x", d+"/x") }, why: "outside"},
		"socket":            {make: socket, why: "files, folders and symlinks"},
		"pipe":              {make: pipe, why: "files, folders and symlinks"},
		"time":              {make: late, why: "the year 2300"},
		"too many entries":  {small, func(d string) error { return files(d, "a", "b", "c", "d") }, "more than 3 entries"},
		"too many in two":   {small, func(d string) error { return files(d, "a/1", "b/1") }, "more than 3 entries"},
		"too deep":          {small, func(d string) error { return files(d, "a/b/c") }, "folders deep"},
		"too large in all":  {small, func(d string) error { return errors.Join(files(d, "abcdef", "ghijkl")) }, "more than 10 bytes"},
		"one file too much": {small, func(d string) error { return files(d, "abcdefghijk") }, "more than 10 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(dir); errors.Is(err, errors.ErrUnsupported) {
				t.Skip("not on this system")
			} else {
				check(t, err)
			}
			_, err := c.limits.Capture(ctx, dir, io.Discard)
			if !errors.As(err, new(*unpack.Refused)) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want a refusal with %q", err, c.why)
			}
		})
	}
	if _, err := Capture(ctx, filepath.Join(t.TempDir(), "missing"), io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// files makes files whose content is their name.
func files(dir string, names ...string) error {
	var errs []error
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o644))
	}
	return errors.Join(errs...)
}

func socket(dir string) error {
	// The name of a socket is short: the folder's may be too long for it.
	short, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(short)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, "s"), Net: "unix"})
	if err != nil {
		return errors.ErrUnsupported
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	return os.Rename(filepath.Join(short, "s"), filepath.Join(dir, "s"))
}

// TestRow11HardLinks: a file with two names is stored under both, as two files.
func TestRow11HardLinks(t *testing.T) {
	dir := t.TempDir()
	check(t, files(dir, "a"))
	check(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	p, stored := capture1(t, dir)
	for _, h := range headers(t, stored) {
		if h.Typeflag != tar.TypeReg || h.Size != 1 {
			t.Errorf("%s is of type %q with %d bytes, want a file of 1", h.Name, h.Typeflag, h.Size)
		}
	}
	to := filepath.Join(t.TempDir(), "to")
	check(t, Restore(ctx, bytes.NewReader(stored), p, to))
	check(t, os.WriteFile(filepath.Join(to, "a"), []byte("changed"), 0o644))
	if text, _ := os.ReadFile(filepath.Join(to, "b")); string(text) != "a" {
		t.Errorf("the other name has %q, want the old content", text)
	}
}

// TestCaptureChanged: a file that is changed meanwhile is told.
func TestCaptureChanged(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "a"), make([]byte, 4<<20), 0o644))
	changed := false
	out := writer(func(p []byte) (int, error) {
		if !changed {
			changed = true
			return len(p), os.WriteFile(filepath.Join(dir, "a"), []byte("short"), 0o644)
		}
		return len(p), nil
	})
	// What cannot be compressed comes to the writer while it is read.
	check(t, os.WriteFile(filepath.Join(dir, "a"), noise(4<<20), 0o644))
	if _, err := Capture(ctx, dir, out); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("got %v, want that it was changed", err)
	}
	if !changed {
		t.Error("nothing was written before the end")
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// noise are bytes that cannot be compressed, and always the same.
func noise(n int) []byte {
	out := make([]byte, 0, n+sha256.Size)
	sum := sha256.Sum256(nil)
	for len(out) < n {
		sum = sha256.Sum256(sum[:])
		out = append(out, sum[:]...)
	}
	return out[:n]
}

// TestCancelled: both directions end with their context.
func TestCancelled(t *testing.T) {
	p, stored := capture1(t, tree(t, false))
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Capture(over, tree(t, false), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Capture: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "to")
	if err := Restore(over, bytes.NewReader(stored), p, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("Restore: %v", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Restore left something: %v", err)
	}
}
