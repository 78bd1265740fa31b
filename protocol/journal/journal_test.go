package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const limit = 1 << 10

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func open(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func TestAppendAcrossOpens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for _, lines := range []string{"a\n", "b\nc\n"} {
		j := open(t, path)
		if err := j.Append([]byte(lines)); err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := contents(t, path); got != "a\nb\nc\n" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyTheOwnerReadsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	open(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		t.Errorf("the mode is %v, want nothing for others", mode)
	}
}

func TestOpenCutsATornLine(t *testing.T) {
	long := strings.Repeat("x", 3*searchStep+7)
	for _, c := range []struct {
		name, there, want string
	}{
		{"empty", "", ""},
		{"whole", "a\nb\n", "a\nb\n"},
		{"torn", "a\nb", "a\n"},
		{"only a torn one", "abc", ""},
		{"long and torn", "a\n" + long, "a\n"},
		{"long and whole", long + "\n", long + "\n"},
		{"only long and torn", long, ""},
		{"newline at the edge of a step", "a\n" + strings.Repeat("x", searchStep), "a\n"},
		{"newline before the edge", strings.Repeat("x", searchStep-1) + "\n" + strings.Repeat("y", searchStep), strings.Repeat("x", searchStep-1) + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			if err := os.WriteFile(path, []byte(c.there), 0o600); err != nil {
				t.Fatal(err)
			}
			j := open(t, path)
			if got, want := j.Repaired(), int64(len(c.there)-len(c.want)); got != want {
				t.Errorf("%d bytes were cut, want %d", got, want)
			}
			if err := j.Append([]byte("next\n")); err != nil {
				t.Fatal(err)
			}
			if got := contents(t, path); got != c.want+"next\n" {
				t.Errorf("got %d bytes that end in %q", len(got), got[max(0, len(got)-20):])
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a directory: got %v", err)
	}
	if _, err := Open(os.DevNull); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a device: got %v", err)
	}
	if _, err := Open(filepath.Join(dir, "missing", "journal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: got %v", err)
	}
}

func TestAppendRefusesHalfALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	if err := j.Append([]byte("a\nb")); err == nil {
		t.Error("half a line was taken")
	}
	if err := j.Append([]byte("c\n")); err != nil {
		t.Errorf("a refusal has closed the journal: %v", err)
	}
	if got := contents(t, path); got != "c\n" {
		t.Errorf("got %q", got)
	}
}

func TestAppendKeepsItsError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	j.f.Close()
	first := j.Append([]byte("a\n"))
	if first == nil || !errors.Is(first, os.ErrClosed) {
		t.Fatalf("got %v, want an error that says that the file is closed", first)
	}
	if again := j.Append([]byte("b\n")); !errors.Is(again, os.ErrClosed) {
		t.Errorf("got %v, want the same error", again)
	}
}

// fullDisk is a file on a disk that takes only left more bytes.
type fullDisk struct {
	*os.File
	left int
}

var errFull = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) <= d.left {
		d.left -= len(p)
		return d.File.Write(p)
	}
	n, err := d.File.Write(p[:d.left])
	d.left = 0
	return n, errors.Join(err, errFull)
}

func TestAShortWriteLeavesWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	j.f = &fullDisk{File: j.f.(*os.File), left: 9}
	if err := j.Append([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := j.Append([]byte("two\nthree\n")); !errors.Is(err, errFull) {
			t.Fatalf("got %v, want the error of the disk", err)
		}
	}
	if got := contents(t, path); got != "one\n" {
		t.Errorf("got %q, want the lines before the short write", got)
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (string, error) {
		var got bytes.Buffer
		err := Read(path, limit, func(number int64, line []byte) error {
			got.WriteByte(byte('0' + number))
			got.Write(line)
			return nil
		})
		return got.String(), err
	}
	write("a\nb\n")
	if got, err := read(); err != nil || got != "1a2b" {
		t.Errorf("got %q, %v", got, err)
	}
	write("a\nbc")
	var torn *TornError
	if got, err := read(); !errors.As(err, &torn) || torn.Line != 2 || torn.Bytes != 2 || got != "1a" {
		t.Errorf("a torn line: got %q, %v", got, err)
	}
	write("a\n" + strings.Repeat("x", limit+1) + "\nb\n")
	if got, err := read(); err == nil || !strings.Contains(err.Error(), "line 2") || got != "1a" {
		t.Errorf("a long line: got %q, %v", got, err)
	}
	stop := errors.New("stop")
	if err := Read(path, limit, func(int64, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of fn", err)
	}
	if err := Read(filepath.Join(t.TempDir(), "missing"), limit, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing journal: got %v", err)
	}
}
