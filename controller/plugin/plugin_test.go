package plugin

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"prp/controller/unpack"
)

// entry is a line of an archive in a test.
type entry struct {
	name string
	mode fs.FileMode
	text string // content, or the target of a link
	size int    // of zeros, instead of text
}

func file(name string) entry            { return entry{name: name, mode: 0o644, text: "text of " + name} }
func zeros(name string, size int) entry { return entry{name: name, mode: 0o644, size: size} }
func numbered(n int, form string) []entry {
	list := make([]entry, n)
	for i := range list {
		list[i] = file(fmt.Sprintf(form, i))
	}
	return list
}

func (e entry) content() []byte {
	if e.size > 0 {
		return make([]byte, e.size)
	}
	return []byte(e.text)
}

// formats pack the same entries.
var formats = map[string]func(t *testing.T, list ...entry) []byte{"tar.gz": tarGz, "zip": zipped}

func tarGz(t *testing.T, list ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	check(t, err)
	w := tar.NewWriter(z)
	for _, e := range list {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Typeflag: tar.TypeReg, Size: int64(len(e.content()))}
		switch e.mode.Type() {
		case fs.ModeDir:
			h.Typeflag, h.Size = tar.TypeDir, 0
		case fs.ModeSymlink:
			h.Typeflag, h.Size, h.Linkname = tar.TypeSymlink, 0, e.text
		case fs.ModeNamedPipe:
			h.Typeflag, h.Size = tar.TypeFifo, 0
		}
		check(t, w.WriteHeader(h))
		if h.Size > 0 {
			_, err := w.Write(e.content())
			check(t, err)
		}
	}
	check(t, errors.Join(w.Close(), z.Close()))
	return out.Bytes()
}

func zipped(t *testing.T, list ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for _, e := range list {
		h := &zip.FileHeader{Name: e.name, Method: zip.Store}
		if e.size > 0 {
			h.Method = zip.Deflate
		}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		check(t, err)
		if !e.mode.IsDir() {
			_, err = f.Write(e.content())
			check(t, err)
		}
	}
	check(t, w.Close())
	return out.Bytes()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// install unpacks into a new folder, and checks that a failure leaves nothing.
func install(t *testing.T, r io.Reader, digest string) (string, Summary, error) {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "plugin")
	s, err := Install(context.Background(), r, digest, dir)
	want := 1
	if err != nil {
		want = 0
	}
	if left, _ := os.ReadDir(top); len(left) != want {
		t.Errorf("after %v there are %v, want %d entries", err, left, want)
	}
	return dir, s, err
}

// TestRow9Installed: both formats give the same folder.
func TestRow9Installed(t *testing.T) {
	for name, pack := range formats {
		t.Run(name, func(t *testing.T) {
			packed := pack(t,
				entry{name: "bin/", mode: fs.ModeDir | 0o700}, entry{name: "bin/run", mode: 0o6700, text: "run"},
				file("lib/deep/x"), entry{name: "plugin.json", mode: 0o600, text: "{}"}, entry{name: "empty", mode: 0o644},
			)
			dir, s, err := install(t, bytes.NewReader(packed), digest(packed))
			check(t, err)
			want := Summary{Files: 4, Bytes: int64(len("run") + len("text of lib/deep/x") + len("{}")), Packed: int64(len(packed))}
			if s != want {
				t.Errorf("got %+v, want %+v", s, want)
			}
			for name, mode := range map[string]fs.FileMode{
				"bin/run": 0o755, "lib/deep/x": 0o644, "plugin.json": 0o644, "empty": 0o644,
				"bin": fs.ModeDir | 0o755, "lib/deep": fs.ModeDir | 0o755, ".": fs.ModeDir | 0o755,
			} {
				info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
				if err != nil || runtime.GOOS != "windows" && info.Mode() != mode {
					t.Errorf("%s: %v, %v, want %v", name, info, err, mode)
				}
			}
			if text, _ := os.ReadFile(filepath.Join(dir, "bin", "run")); string(text) != "run" {
				t.Errorf("bin/run has %q", text)
			}
		})
	}
}

// TestRow9Refusals: what a plugin may not have, in both formats.
func TestRow9Refusals(t *testing.T) {
	for name, c := range map[string]struct {
		list []entry
		why  string
	}{
		"escaping":          {[]entry{file("../x")}, `".."`},
		"escaping later":    {[]entry{file("a/../../x")}, `".."`},
		"absolute":          {[]entry{file("/x")}, "absolute"},
		"backslash":         {[]entry{file(`..\x`)}, "everywhere"},
		"drive":             {[]entry{file("C:/x")}, "everywhere"},
		"symlink":           {[]entry{{name: "x", mode: fs.ModeSymlink | 0o777, text: "/etc/passwd"}}, ""},
		"symlink inside":    {[]entry{file("y"), {name: "x", mode: fs.ModeSymlink | 0o777, text: "y"}}, ""},
		"symlink as folder": {[]entry{file("y"), {name: "x/", mode: fs.ModeSymlink | 0o777}}, ""},
		"pipe":              {[]entry{{name: "x", mode: fs.ModeNamedPipe | 0o644}}, ""},
		"duplicate":         {[]entry{file("x"), file("x")}, "second entry"},
		"case":              {[]entry{file("x/README"), file("x/Readme")}, "case alone"},
		"case of a folder":  {[]entry{file("x/a"), file("X/b")}, "case alone"},
		"file as folder":    {[]entry{file("x"), file("x/y")}, "no folder"},
		"large file":        {[]entry{zeros("x", 16<<20+1)}, "of a file"},
		"large in all":      {[]entry{zeros("a", 16<<20), zeros("b", 16<<20), zeros("c", 16<<20), zeros("d", 16<<20), file("e")}, "in all"},
		"many files":        {numbered(2001, "d/%d"), "more than 2000 files"},
		"many folders":      {numbered(1999, "%[1]d/a/%[1]d"), "more than 4000 entries"},
		"no files":          {[]entry{{name: "d/", mode: fs.ModeDir | 0o755}}, "no files"},
		"nothing":           {nil, "no files"},
	} {
		for format, pack := range formats {
			t.Run(name+" "+format, func(t *testing.T) {
				if testing.Short() && (strings.HasPrefix(name, "many") || name == "large in all") {
					t.Skip("thousands of files, or tens of megabytes")
				}
				packed := pack(t, c.list...)
				_, _, err := install(t, bytes.NewReader(packed), digest(packed))
				if !errors.As(err, new(*unpack.Refused)) || !strings.Contains(err.Error(), c.why) {
					t.Errorf("got %v, want a refusal with %q", err, c.why)
				}
			})
		}
	}
}

// TestRow9Limits: what is just allowed.
func TestRow9Limits(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of files")
	}
	for format, pack := range formats {
		t.Run(format, func(t *testing.T) {
			list := append(numbered(1996, "d/%d"), zeros("a", 16<<20-100<<10), zeros("b", 16<<20), zeros("c", 15<<20), zeros("e", 16<<20))
			packed := pack(t, list...)
			_, s, err := install(t, bytes.NewReader(packed), digest(packed))
			if err != nil || s.Files != 2000 {
				t.Errorf("2000 files of %d bytes: %+v, %v", MaxBytes, s, err)
			}
		})
	}
}

// TestRow9Pin: the archive is the pinned one, whatever else it is.
func TestRow9Pin(t *testing.T) {
	packed := tarGz(t, file("x"))
	right := digest(packed)
	for _, wrong := range [][]byte{nil, packed[1:], append(bytes.Clone(packed), 0), tarGz(t, file("y"))} {
		if _, _, err := install(t, bytes.NewReader(wrong), right); !errors.Is(err, ErrDigest) {
			t.Errorf("other bytes: %v, want %v", err, ErrDigest)
		}
	}
	for _, form := range []string{
		"", right[7:], "sha256:", right + "0", right[:70], "sha512:" + right[7:], "SHA256:" + right[7:],
		"sha256:" + strings.ToUpper(right[7:]), right + "\n", " " + right,
	} {
		if _, _, err := install(t, bytes.NewReader(packed), form); err == nil || CheckDigest(form) == nil {
			t.Errorf("the digest %q was taken", form)
		}
	}
	check(t, CheckDigest(right))
	if testing.Short() {
		return // the rest reads tens of megabytes
	}
	// One byte more than may be packed is read, and no more.
	endless := &counting{}
	if _, _, err := install(t, endless, right); !errors.As(err, new(*unpack.Refused)) {
		t.Errorf("an endless archive: %v", err)
	}
	if endless.n > MaxPacked+1 {
		t.Errorf("%d bytes were read, want at most %d", endless.n, MaxPacked+1)
	}
}

// counting is a stream without an end.
type counting struct{ n int }

func (c *counting) Read(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

// TestRow9Broken: archives that are none, or are cut, or have more behind them.
func TestRow9Broken(t *testing.T) {
	gz, zip := tarGz(t, file("x")), zipped(t, file("x"), zeros("z", 5000))
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	check(t, errors.Join(w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Mode: 0o644}), w.Close()))
	encrypted := bytes.Clone(zip)
	at := bytes.Index(encrypted, []byte("PK\x01\x02"))
	encrypted[at+8] |= 1
	shorter := bytes.Clone(zip) // the size in the list of contents, one less
	shorter[at+24]--
	longer := bytes.Clone(zip)
	longer[at+24]++
	for name, packed := range map[string][]byte{
		"plain tar": plain.Bytes(), "text": []byte("no archive at all"), "one byte": {0x1f},
		"gzip cut": gz[:len(gz)-1], "gzip cut early": gz[:20], "gzip twice": append(bytes.Clone(gz), gz...), "gzip and text": append(bytes.Clone(gz), "x"...),
		"zip cut": zip[:len(zip)-1], "zip start": zip[:4], "encrypted": encrypted,
		"zip says less": shorter, "zip says more": longer, "tar behind": append(bytes.Clone(plain.Bytes()), gz...),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := install(t, bytes.NewReader(packed), digest(packed))
			if !errors.As(err, new(*unpack.Refused)) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

// TestKeepsOther: a folder with something in it is left alone.
func TestKeepsOther(t *testing.T) {
	packed := tarGz(t, file("x"))
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644))
	if _, err := Install(context.Background(), bytes.NewReader(packed), digest(packed), dir); err == nil {
		t.Error("it was unpacked over something")
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("there is %v, want what was there", list)
	}
}

// TestCancelled: a context that ends is told as such.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	packed := zipped(t, file("x"))
	dir := filepath.Join(t.TempDir(), "to")
	if _, err := Install(ctx, bytes.NewReader(packed), digest(packed), dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
