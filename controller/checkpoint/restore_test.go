package checkpoint

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"prp/controller/unpack"
)

// packed compresses an archive with these entries. A size that is not the
// content's makes an archive that is cut.
func packed(t testing.TB, list ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range list {
		h.Mode |= 0o700
		check(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := w.Write(make([]byte, h.Size))
			check(t, err)
		}
	}
	check(t, w.Close())
	return compressed(t, out.Bytes())
}

func compressed(t testing.TB, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := newWriter(&out)
	check(t, err)
	_, err = z.Write(plain)
	check(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

// announced are the numbers of these bytes.
func announced(stored []byte) Payload {
	sum := sha256.Sum256(stored)
	return Payload{Format: Format, SHA256: hex.EncodeToString(sum[:]), SizeBytes: int64(len(stored))}
}

// restoreFails restores what must not be, and returns the error. Nothing is
// left, neither at the target nor beside it.
func restoreFails(t *testing.T, l Limits, stored []byte, want Payload) error {
	t.Helper()
	top := t.TempDir()
	err := l.Restore(ctx, bytes.NewReader(stored), want, filepath.Join(top, "to"))
	if err == nil {
		t.Error("it was restored")
	}
	if left, _ := os.ReadDir(top); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	return err
}

// TestRow11RestoreRefusals: each refusal of the row, through the whole chain.
// The rules for names and links have a larger table in package unpack.
func TestRow11RestoreRefusals(t *testing.T) {
	small := Limits{MaxBytes: 100, MaxEntries: 2, MaxDepth: 2}
	reg, dir, sym := byte(tar.TypeReg), byte(tar.TypeDir), byte(tar.TypeSymlink)
	for name, c := range map[string]struct {
		limits Limits
		list   []tar.Header
		why    string
	}{
		"absolute":         {list: []tar.Header{{Typeflag: reg, Name: "/x"}}, why: "absolute"},
		"escaping":         {list: []tar.Header{{Typeflag: reg, Name: "../x"}}, why: `".."`},
		"duplicate":        {list: []tar.Header{{Typeflag: reg, Name: "x"}, {Typeflag: reg, Name: "x"}}, why: "second entry"},
		"hard link":        {list: []tar.Header{{Typeflag: tar.TypeLink, Name: "x", Linkname: "y"}}, why: "hard links"},
		"device":           {list: []tar.Header{{Typeflag: tar.TypeBlock, Name: "x"}}, why: "devices"},
		"pipe":             {list: []tar.Header{{Typeflag: tar.TypeFifo, Name: "x"}}, why: "pipes"},
		"absolute symlink": {list: []tar.Header{{Typeflag: sym, Name: "x", Linkname: "/x"}}, why: "absolute"},
		"escaping symlink": {list: []tar.Header{{Typeflag: sym, Name: "x", Linkname: "../x"}}, why: "outside"},
		"through symlink":  {list: []tar.Header{{Typeflag: sym, Name: "x", Linkname: "."}, {Typeflag: reg, Name: "x/y"}}, why: "no folder"},
		"entries":          {small, []tar.Header{{Typeflag: dir, Name: "a/"}, {Typeflag: dir, Name: "b/"}, {Typeflag: dir, Name: "c/"}}, "more than 2 entries"},
		"depth":            {small, []tar.Header{{Typeflag: dir, Name: "a/"}, {Typeflag: reg, Name: "a/b/c"}}, "deep"},
		"bytes":            {small, []tar.Header{{Typeflag: reg, Name: "a", Size: 60}, {Typeflag: reg, Name: "b", Size: 60}}, "in all"},
	} {
		t.Run(name, func(t *testing.T) {
			stored := packed(t, c.list...)
			err := restoreFails(t, c.limits, stored, announced(stored))
			if !errors.As(err, new(*unpack.Refused)) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want a refusal with %q", err, c.why)
			}
		})
	}
}

// TestRow11FormatLimits: without other limits there are those of the row.
func TestRow11FormatLimits(t *testing.T) {
	r := rules(Limits{}.filled())
	if r.MaxBytes != 4<<30 || r.MaxEntries != 500_000 || r.MaxDepth != 64 {
		t.Errorf("got %d bytes, %d entries, depth %d", r.MaxBytes, r.MaxEntries, r.MaxDepth)
	}
	deepest := strings.TrimSuffix(strings.Repeat("d/", 65), "/")
	if err := r.CheckName(deepest[:63*2+1]); err != nil {
		t.Errorf("64 parts: %v", err)
	}
	if err := r.CheckName(deepest); err == nil {
		t.Error("65 parts were taken")
	}
	large := tar.Header{Typeflag: tar.TypeReg, Name: "x", Mode: 0o600, Size: 4<<30 + 1}
	var out bytes.Buffer
	check(t, tar.NewWriter(&out).WriteHeader(&large))
	stored := compressed(t, out.Bytes())
	if err := restoreFails(t, Limits{}, stored, announced(stored)); !errors.As(err, new(*unpack.Refused)) {
		t.Errorf("a file of 4 GiB and a byte: %v", err)
	}
}

// TestRow11Bytes: the stored bytes are exactly those that were announced, and
// one archive.
func TestRow11Bytes(t *testing.T) {
	good := packed(t, tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 100})
	right := announced(good)
	other := right
	other.SHA256 = strings.Repeat("0", 64)
	shorter, longer := right, right
	shorter.SizeBytes--
	longer.SizeBytes++
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct {
		stored []byte
		want   Payload
	}{
		"other hash": {good, other}, "less announced": {good, shorter}, "more announced": {good, longer},
		"cut": {good[:len(good)-1], right}, "one more": {append(bytes.Clone(good), 0), right}, "a bit": {flipped, right},
		"nothing": {nil, right}, "no archive": {bytes.Repeat([]byte{1}, len(good)), right},
	} {
		t.Run(name, func(t *testing.T) {
			if err := restoreFails(t, Limits{}, c.stored, c.want); !errors.Is(err, ErrHash) {
				t.Errorf("got %v, want %v", err, ErrHash)
			}
		})
	}
	for name, stored := range map[string][]byte{
		"two archives":   append(bytes.Clone(good), good...),
		"text behind it": append(bytes.Clone(good), compressed(t, []byte("text"))...),
		"no zstd":        []byte("no archive"), "no tar": compressed(t, bytes.Repeat([]byte("no archive"), 200)),
		"cut and hashed": good[:len(good)-8],
	} {
		t.Run(name, func(t *testing.T) {
			if err := restoreFails(t, Limits{}, stored, announced(stored)); errors.Is(err, ErrHash) {
				t.Errorf("got %v, want what is wrong with the archive", err)
			}
		})
	}
}

// TestRow11Announced: numbers that cannot be right are refused before a byte is
// read.
func TestRow11Announced(t *testing.T) {
	good := announced([]byte("x"))
	for name, change := range map[string]func(*Payload){
		"format":       func(p *Payload) { p.Format = "tar.gz" },
		"no format":    func(p *Payload) { p.Format = "" },
		"prefix":       func(p *Payload) { p.SHA256 = "sha256:" + p.SHA256 },
		"upper case":   func(p *Payload) { p.SHA256 = strings.Repeat("A", 64) },
		"short":        func(p *Payload) { p.SHA256 = p.SHA256[:63] },
		"line":         func(p *Payload) { p.SHA256 += "\n" },
		"empty":        func(p *Payload) { p.SizeBytes = 0 },
		"negative":     func(p *Payload) { p.SizeBytes = -1 },
		"over 4 GiB":   func(p *Payload) { p.SizeBytes = 4<<30 + 1 },
		"no hash":      func(p *Payload) { p.SHA256 = "" },
		"path as hash": func(p *Payload) { p.SHA256 = "../" + p.SHA256[3:] },
	} {
		t.Run(name, func(t *testing.T) {
			p := good
			change(&p)
			err := Restore(ctx, unread{t}, p, filepath.Join(t.TempDir(), "to"))
			if err == nil || p.Check() == nil {
				t.Errorf("%+v was taken", p)
			}
		})
	}
	check(t, good.Check())
}

// unread is a stream that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("it was read")
	return 0, io.EOF
}

// TestRow11Bomb: a small payload that says it is large costs neither disk nor
// memory.
func TestRow11Bomb(t *testing.T) {
	l := Limits{MaxBytes: 1 << 20}
	// The header tells the truth: refused before a byte is written.
	honest := packed(t, tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 32 << 20})
	if len(honest) > 64<<10 {
		t.Fatalf("the bomb has %d bytes", len(honest))
	}
	err := restoreFails(t, l, honest, announced(honest))
	if !errors.As(err, new(*unpack.Refused)) {
		t.Errorf("got %v, want a refusal", err)
	}
	// Zeros for ever behind the end of the archive.
	behind := compressed(t, make([]byte, 32<<20))
	if err := restoreFails(t, l, behind, announced(behind)); !errors.As(err, new(*unpack.Refused)) {
		t.Errorf("got %v, want a refusal", err)
	}
	// A window that would have to be in memory as a whole.
	var wide bytes.Buffer
	z, err := zstd.NewWriter(&wide, zstd.WithWindowSize(2*maxWindow), zstd.WithEncoderConcurrency(1))
	check(t, err)
	_, err = z.Write(noise(1 << 20))
	check(t, errors.Join(err, z.Close()))
	if err := restoreFails(t, Limits{}, wide.Bytes(), announced(wide.Bytes())); !strings.Contains(err.Error(), "window") {
		t.Errorf("got %v, want a refusal of the window", err)
	}
}

// TestRow11Memory: what is allocated does not grow with the size of the files.
func TestRow11Memory(t *testing.T) {
	size := int64(256 << 20)
	if testing.Short() {
		size = 64 << 20
	}
	const most = 32 << 20 // windows of 2 MiB at both ends, and tables
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "large"))
	check(t, err)
	check(t, errors.Join(f.Truncate(size), f.Close())) // zeros that need no disk
	var out bytes.Buffer
	var p Payload
	if n := allocated(func() { p, err = Capture(ctx, dir, &out) }); err != nil || n > most {
		t.Errorf("Capture allocated %d bytes, want at most %d (%v)", n, int64(most), err)
	}
	if p.UncompressedBytes != size {
		t.Fatalf("captured %d bytes, want %d", p.UncompressedBytes, size)
	}
	to := filepath.Join(t.TempDir(), "to")
	if n := allocated(func() { err = Restore(ctx, &out, p, to) }); err != nil || n > most {
		t.Errorf("Restore allocated %d bytes, want at most %d (%v)", n, int64(most), err)
	}
	if info, err := os.Stat(filepath.Join(to, "large")); err != nil || info.Size() != size {
		t.Errorf("restored %v, %v", info, err)
	}
}

// allocated is how much was allocated in all, garbage too.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestRestoreKeeps: a target with something in it is left alone.
func TestRestoreKeeps(t *testing.T) {
	stored := packed(t, tar.Header{Typeflag: tar.TypeReg, Name: "x"})
	dir := t.TempDir()
	check(t, files(dir, "mine"))
	if err := Restore(ctx, bytes.NewReader(stored), announced(stored), dir); err == nil {
		t.Error("it was restored over something")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "mine")); string(text) != "mine" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("x: %v", err)
	}
}

// FuzzRestore: whatever the bytes, nothing is written outside, and what is
// restored gives the same again when it is captured.
func FuzzRestore(f *testing.F) {
	plain := func(stored []byte) []byte {
		z, err := zstd.NewReader(bytes.NewReader(stored))
		check(f, err)
		defer z.Close()
		text, err := io.ReadAll(z)
		check(f, err)
		return text
	}
	f.Add(plain(packed(f, tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 3})))
	f.Add(plain(packed(f, tar.Header{Typeflag: tar.TypeDir, Name: "d/"}, tar.Header{Typeflag: tar.TypeSymlink, Name: "d/l", Linkname: "../d"})))
	f.Add(plain(packed(f, tar.Header{Typeflag: tar.TypeReg, Name: "../x"})))
	f.Add(plain(packed(f, tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("ü", 90)})))
	f.Fuzz(func(t *testing.T, archive []byte) {
		top := t.TempDir()
		dir := filepath.Join(top, "to")
		stored := compressed(t, archive)
		l := Limits{MaxBytes: 1 << 16, MaxEntries: 64, MaxDepth: 8}
		err := l.Restore(ctx, bytes.NewReader(stored), announced(stored), dir)
		left, _ := os.ReadDir(top)
		if err != nil {
			if len(left) != 0 {
				t.Errorf("after %v there is %v", err, left)
			}
			return
		}
		if len(left) != 1 || left[0].Name() != "to" {
			t.Fatalf("there is %v, want the target alone", left)
		}
		inside(t, dir)
		var again bytes.Buffer
		if _, err := l.Capture(ctx, dir, &again); err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("what was restored cannot be captured: %v", err)
		}
	})
}

// inside checks that every path of a tree, through symlinks too, ends in it.
func inside(t *testing.T, dir string) {
	real, err := filepath.EvalSymlinks(dir)
	check(t, err)
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // so that the test can look and tidy up
		}
		if end, err := filepath.EvalSymlinks(path); err == nil && end != real && !strings.HasPrefix(end, real+string(filepath.Separator)) {
			t.Errorf("%s leads to %s", path, end)
		}
		return nil
	})
}
