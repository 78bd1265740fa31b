package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// wide lets everything through that is not refused as such.
var wide = Rules{
	MaxBytes: 1 << 20, MaxFileBytes: 1 << 20, MaxFiles: 100, MaxEntries: 200, MaxDepth: 8, Symlinks: true, Exact: true,
}

var when = time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)

// entry is a line of an archive in a test.
type entry struct {
	kind       byte
	name, text string // text is the content, or the target of a link
}

func file(name string) entry          { return entry{tar.TypeReg, name, "text of " + name} }
func folderOf(name string) entry      { return entry{tar.TypeDir, name, ""} }
func link(name, target string) entry  { return entry{tar.TypeSymlink, name, target} }
func of(kind byte, name string) entry { return entry{kind, name, "x"} }
func archive(list ...entry) []byte    { return archiveOf(false, list...) }
func unfinished(list ...entry) []byte { return archiveOf(true, list...) }
func withMode(m int64, h *tar.Header) { h.Mode = m }
func join(parts ...[]byte) []byte     { return bytes.Join(parts, nil) }
func zeros(n int) []byte              { return make([]byte, n) }
func deep(n int) (list []entry)       { return deepUnder("", n) }
func deepUnder(p string, n int) (list []entry) {
	for range n {
		p += "d"
		list = append(list, folderOf(p+"/"))
		p += "/"
	}
	return list
}

func archiveOf(open bool, list ...entry) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range list {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: 0o644, ModTime: when}
		switch e.kind {
		case tar.TypeReg:
			h.Size = int64(len(e.text))
		case tar.TypeDir:
			withMode(0o755, h)
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = e.text
		case tar.TypeXGlobalHeader:
			*h = tar.Header{Typeflag: e.kind, Name: e.name, PAXRecords: map[string]string{"comment": e.text, "path": "../x", "size": "9"}}
		}
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if e.kind == tar.TypeReg {
			io.WriteString(w, e.text)
		}
	}
	if !open {
		if err := w.Close(); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

// try unpacks into a new folder and returns it.
func try(t *testing.T, rules Rules, packed io.Reader) (string, error) {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "target")
	area, err := Open(dir, rules)
	if err != nil {
		t.Fatal(err)
	}
	err = area.Tar(context.Background(), packed)
	if err == nil {
		err = area.Commit()
	}
	if gone := area.Discard(); gone != nil {
		t.Errorf("Discard: %v", gone)
	}
	// Whatever happened, nothing else than the target is there.
	want := 0
	if err == nil {
		want = 1
	}
	if left, _ := os.ReadDir(top); len(left) != want {
		t.Errorf("after %v there are %v, want %d entries", err, left, want)
	}
	return dir, err
}

func TestRefusals(t *testing.T) {
	narrow := func(change func(*Rules)) Rules {
		r := wide
		change(&r)
		return r
	}
	portable := narrow(func(r *Rules) { r.Portable, r.Exact, r.Symlinks = true, false, false })
	for _, c := range []struct {
		name   string
		rules  Rules
		packed []byte
		why    string
	}{
		{"absolute", wide, archive(file("/etc/x")), "absolute"},
		{"escaping", wide, archive(file("../x")), `".."`},
		{"escaping in the middle", wide, archive(folderOf("a/"), file("a/../../x")), `".."`},
		{"up and down again", wide, archive(folderOf("a/"), file("a/../x")), `".."`},
		{"dot", wide, archive(folderOf("./")), `"."`},
		{"dot in front", wide, archive(file("./x")), `"."`},
		{"two slashes", wide, archive(folderOf("a/"), file("a//x")), "empty"},
		{"duplicate file", wide, archive(file("x"), file("x")), "second entry"},
		{"duplicate folder", wide, archive(folderOf("x/"), folderOf("x/")), "second entry"},
		{"duplicate symlink", wide, archive(link("x", "a"), link("x", "b")), "second entry"},
		{"file over symlink", wide, archive(link("x", "y"), file("x")), "second entry"},
		{"folder over symlink", wide, archive(folderOf("y/"), link("x", "y"), folderOf("x/")), "second entry"},
		{"through a symlink", wide, archive(folderOf("y/"), link("x", "y"), file("x/z")), "no folder"},
		{"through a symlink to a folder in it", wide, archive(folderOf("y/"), folderOf("y/s/"), link("x", "y"), file("x/s/z")), "no folder"},
		{"a folder through a symlink", wide, archive(folderOf("y/"), folderOf("y/s/"), link("x", "y"), folderOf("x/s/z/")), "no folder"},
		{"a symlink through a symlink", wide, archive(folderOf("y/"), folderOf("y/s/"), link("x", "y"), link("x/s/z", "w")), "no folder"},
		{"through a file", wide, archive(file("x"), file("x/z")), "no folder"},
		{"folder missing", wide, archive(file("a/x")), "does not stand before"},
		{"hard link", wide, archive(file("a"), entry{tar.TypeLink, "b", "a"}), "hard links"},
		{"character device", wide, archive(of(tar.TypeChar, "x")), "devices"},
		{"block device", wide, archive(of(tar.TypeBlock, "x")), "devices"},
		{"pipe", wide, archive(of(tar.TypeFifo, "x")), "devices and pipes"},
		{"unknown type", wide, archive(of('Z', "x")), "type"},
		{"header for all", wide, archive(of(tar.TypeXGlobalHeader, "g"), file("x")), "for all entries"},
		{"headers for all", narrow(func(r *Rules) { r.Exact, r.MaxEntries = false, 2 }), archive(of('g', "g"), of('g', "g"), of('g', "g")), "more than 2 entries"},
		{"symlink out", wide, archive(link("x", "../y")), "outside"},
		{"symlink far out", wide, archive(folderOf("a/"), link("a/x", "../../y")), "outside"},
		{"symlink to the top folder's parent", wide, archive(link("x", "..")), "outside"},
		{"absolute symlink", wide, archive(link("x", "/etc/passwd")), "absolute"},
		{"symlink with late ups", wide, archive(folderOf("a/"), link("a/x", "b/../../y")), "behind a name"},
		{"symlink without target", wide, archive(link("x", "")), "without a target"},
		{"symlinks not allowed", narrow(func(r *Rules) { r.Symlinks = false }), archive(link("x", "y")), "not allowed"},
		{"too many entries", narrow(func(r *Rules) { r.MaxEntries = 2 }), archive(folderOf("a/"), folderOf("b/"), folderOf("c/")), "more than 2 entries"},
		{"too many files", narrow(func(r *Rules) { r.MaxFiles = 1 }), archive(file("a"), link("b", "a")), "more than 1 files"},
		{"too deep", narrow(func(r *Rules) { r.MaxDepth = 3 }), archive(deep(4)...), "4 folders deep"},
		{"file too large", narrow(func(r *Rules) { r.MaxFileBytes = 8 }), archive(entry{tar.TypeReg, "a", "123456789"}), "9 bytes"},
		{"too large in all", narrow(func(r *Rules) { r.MaxBytes = 15 }), archive(entry{tar.TypeReg, "a", "12345678"}, entry{tar.TypeReg, "b", "12345678"}), "in all"},
		{"name too long", wide, archive(file(strings.Repeat("x", maxName+1))), "a name of"},
		{"target too long", wide, archive(link("x", strings.Repeat("y", maxName+1))), "a target of"},
		{"something behind the end", wide, join(archive(file("a")), []byte("x")), "behind its end"},
		{"a second archive", wide, join(archive(file("a")), archive(file("b"))), "behind its end"},
		{"too many zeros behind the end", wide, join(archive(file("a")), zeros(maxPadding+1)), "behind its end"},
		{"cut in a header", wide, unfinished(file("a"))[:300], "cut"},
		{"cut in a file", wide, unfinished(file("a"))[:515], "cut"},
		{"no archive", wide, bytes.Repeat([]byte("no archive "), 100), "no tar archive"},

		{"case of files", portable, archive(file("README"), file("readme")), "case alone"},
		{"case of folders", portable, archive(file("a/x"), file("A/y")), "case alone"},
		{"case of a folder and a file", portable, archive(file("a/x"), file("A")), "case alone"},
		{"case outside ASCII", portable, archive(file("straße-É"), file("straße-é")), "case alone"},
		{"a character that is not seen", portable, archive(file("ab"), file("a\u200db")), "case alone"},
		{"device", portable, archive(file("a/nul")), "device"},
		{"device with an ending", portable, archive(file("Aux.txt")), "device"},
		{"device as a folder", portable, archive(file("COM1/x")), "device"},
		{"duplicate", portable, archive(file("a/x"), file("a/x")), "second entry"},
		{"folder twice", portable, archive(file("a/x"), folderOf("a/"), folderOf("a/")), "second entry"},
		{"folder over a file", portable, archive(file("a"), folderOf("a/")), "second entry"},
		{"backslash", portable, archive(file(`a\x`)), "everywhere"},
		{"drive or stream", portable, archive(file("c:x")), "everywhere"},
		{"control character", portable, archive(file("a\x1bx")), "everywhere"},
		{"no UTF-8", portable, archive(file("a\xff")), "UTF-8"},
		{"dot at the end", portable, archive(file("a.")), "drop the end"},
		{"made folders count", narrow(func(r *Rules) { r.Exact, r.MaxEntries = false, 3 }), archive(file("a/b/c/x")), "more than 3 entries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := try(t, c.rules, bytes.NewReader(c.packed))
			var refused *Refused
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want a refusal with %q", err, c.why)
			}
		})
	}
}

// TestPortableNames: what only looks like a device is a name.
func TestPortableNames(t *testing.T) {
	rules := Rules{MaxDepth: 8, Portable: true}
	for _, name := range []string{"console", "null", "auxiliary.txt", "com", "com10", "a.con", "lpt/x", "ünïcode", ".git"} {
		if err := rules.CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestTimes: a time that package os cannot give to a file is refused, and what
// is near it is kept.
func TestTimes(t *testing.T) {
	for at, want := range map[time.Time]bool{
		time.Date(2262, 4, 11, 0, 0, 0, 0, time.UTC): true, time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC): false,
		time.Date(1677, 9, 22, 0, 0, 0, 0, time.UTC): true, time.Date(1677, 9, 21, 0, 0, 0, 0, time.UTC): false,
		time.Unix(1<<55, 0): false, time.Unix(-1<<55, 0): false,
	} {
		area, err := Open(filepath.Join(t.TempDir(), "target"), wide)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(area.Folder("d", 0o755, at), area.File("x", 1, 0o644, at, strings.NewReader("x")))
		if (err == nil) != want || err != nil && !errors.As(err, new(*Refused)) {
			t.Errorf("%v: %v, want that it is taken: %v", at, err, want)
		}
		if err := area.Discard(); err != nil {
			t.Error(err)
		}
	}
}

// TestSafeLinks: links inside are kept as they are.
func TestSafeLinks(t *testing.T) {
	dir, err := try(t, wide, bytes.NewReader(archive(
		folderOf("a/"), folderOf("a/b/"), file("a/b/x"),
		link("a/b/up", "../.."), link("a/y", "b/x"), link("dangling", "nowhere"), link("self", "self"), link("top", "."),
		link("a/b/dots", "./x"), link("z", "a/b/up/a/y"),
	)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a/b/up": "../..", "a/y": "b/x", "dangling": "nowhere", "top": "."} {
		if got, err := os.Readlink(filepath.Join(dir, name)); got != want {
			t.Errorf("%s points at %q (%v), want %q", name, got, err, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "z")); string(text) != "text of a/b/x" {
		t.Errorf("through links: %q, %v", text, err)
	}
}

// TestExact: permission bits and times are kept, other bits are not.
func TestExact(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits here")
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o1555, ModTime: when},
		{Typeflag: tar.TypeReg, Name: "d/x", Mode: 0o6751, ModTime: when.Add(time.Hour), Uid: 12345, Uname: "nobody"},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	dir, err := try(t, wide, &out)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		mode fs.FileMode
		at   time.Time
	}{"d": {fs.ModeDir | 0o555, when}, "d/x": {0o751, when.Add(time.Hour)}, ".": {fs.ModeDir | 0o755, time.Time{}}} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want.mode {
			t.Errorf("%s is %v, want %v", name, info.Mode(), want.mode)
		}
		if !want.at.IsZero() && !info.ModTime().Equal(want.at) {
			t.Errorf("%s is from %v, want %v", name, info.ModTime(), want.at)
		}
	}
	os.Chmod(filepath.Join(dir, "d"), 0o755) // so that the test can tidy up
}

// TestPlain: without Exact there are two modes, and folders are made.
func TestPlain(t *testing.T) {
	rules := wide
	rules.Exact = false
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"comment": "x", "path": "y"}})
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a/b/run", Mode: 0o4700, ModTime: when})
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a/b/text", Mode: 0o666, ModTime: when})
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "late/", Mode: 0o700})
	w.Close()
	dir, err := try(t, rules, &out)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, want := range map[string]fs.FileMode{"a/b/run": 0o755, "a/b/text": 0o644, "a": 0o755, "late": 0o755} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// TestTarget: what is at the target stays, unless it is an empty folder, whose
// mode is kept.
func TestTarget(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "target")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	area, err := Open(dir, wide)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(area.File("x", 1, 0o644, when, strings.NewReader("x")), area.Commit()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o750 {
		t.Errorf("the target is %v (%v), want 0750", info.Mode(), err)
	}
	for _, full := range []string{dir, filepath.Join(dir, "x")} {
		if _, err := Open(full, wide); err == nil {
			t.Errorf("Open(%q) took something that is there", full)
		}
	}
	if _, err := Open(filepath.Join(top, "missing", "target"), wide); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open in a folder that is not there: %v", err)
	}
}

// TestLeftover: what an earlier process left in the middle is removed, also
// where it cannot be written.
func TestLeftover(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "target")
	first, err := Open(dir, wide)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Folder("d", 0o755, when); err != nil {
		t.Fatal(err)
	}
	if err := first.File("d/x", 1, 0o644, when, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(first.staging, "d"), 0o500); err != nil {
		t.Fatal(err)
	}
	first.root.Close() // as the end of a process does
	second, err := Open(dir, wide)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Discard()
	if err := second.Folder("d", 0o755, when); err != nil {
		t.Errorf("the leftover is still there: %v", err)
	}
}

// TestSize: the content has exactly the size that was announced.
func TestSize(t *testing.T) {
	area, err := Open(filepath.Join(t.TempDir(), "target"), wide)
	if err != nil {
		t.Fatal(err)
	}
	defer area.Discard()
	for i, size := range []int64{2, 4, -1} {
		err := area.File(string(rune('a'+i)), size, 0o644, when, strings.NewReader("123"))
		if !errors.As(err, new(*Refused)) {
			t.Errorf("3 bytes announced as %d: %v", size, err)
		}
	}
}

// TestCancelled: a context that ends is told as such.
func TestCancelled(t *testing.T) {
	area, err := Open(filepath.Join(t.TempDir(), "target"), wide)
	if err != nil {
		t.Fatal(err)
	}
	defer area.Discard()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := area.Tar(ctx, bytes.NewReader(archive(file("x")))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
