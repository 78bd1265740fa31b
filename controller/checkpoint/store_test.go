package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// found lists the files of a store, by their path in it.
func found(t *testing.T, dir string) (list []string) {
	t.Helper()
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	}))
	return list
}

func get(t *testing.T, s PayloadStore, key string) string {
	t.Helper()
	r, size, err := s.Get(ctx, key)
	check(t, err)
	defer r.Close()
	text, err := io.ReadAll(r)
	check(t, err)
	if size != int64(len(text)) {
		t.Errorf("%s has %d bytes, announced were %d", key, len(text), size)
	}
	return string(text)
}

func TestDirStore(t *testing.T) {
	s := DirStore{Dir: filepath.Join(t.TempDir(), "made", "by", "put")}
	if _, _, err := s.Get(ctx, "a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before anything is stored: %v", err)
	}
	check(t, s.Put(ctx, "a/b", 3, strings.NewReader("one")))
	check(t, s.Put(ctx, "a/c", 0, strings.NewReader("")))
	check(t, s.Put(ctx, "a/b", 5, strings.NewReader("other")))
	if got := get(t, s, "a/b"); got != "other" {
		t.Errorf("got %q, want what was stored last", got)
	}
	if got := get(t, s, "a/c"); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	for name, r := range map[string]io.Reader{
		"short": strings.NewReader("12"), "long": strings.NewReader("1234"), "broken": iotest.ErrReader(io.ErrUnexpectedEOF),
	} {
		if err := s.Put(ctx, "a/b", 3, r); err == nil {
			t.Errorf("%s: it was stored", name)
		}
	}
	for _, key := range []string{"a", "a/b/c", "a/d"} {
		if _, _, err := s.Get(ctx, key); err == nil {
			t.Errorf("%s: there is something", key)
		}
	}
	if got := get(t, s, "a/b"); got != "other" {
		t.Errorf("got %q, want that failures change nothing", got)
	}
	if list := found(t, s.Dir); len(list) != 2 {
		t.Errorf("there are %q, want two files", list)
	}
	if info, err := os.Stat(filepath.Join(s.Dir, "a", "b")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v, want 0600", info.Mode(), err)
	}
}

func TestKeys(t *testing.T) {
	s := DirStore{Dir: filepath.Join(t.TempDir(), "store")}
	for _, key := range []string{
		"", "/a", "a/", "a//b", "..", "../a", "a/../b", ".a", "a/.b", "A", "a\\b", "a b", "a\n", "ü", "a:b", "a\x00",
		strings.Repeat("a", maxKey+1),
	} {
		if CheckKey(key) == nil {
			t.Errorf("CheckKey(%q) took it", key)
		}
		if err := s.Put(ctx, key, 1, strings.NewReader("x")); err == nil {
			t.Errorf("Put(%q) took it", key)
		}
		if _, _, err := s.Get(ctx, key); err == nil {
			t.Errorf("Get(%q) took it", key)
		}
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
	check(t, CheckKey(announced(nil).Key()))
}

// TestStoreConfined: a symlink in the store does not lead outside.
func TestStoreConfined(t *testing.T) {
	top := t.TempDir()
	check(t, os.Mkdir(filepath.Join(top, "store"), 0o700))
	check(t, files(top, "outside/x"))
	if err := os.Symlink(filepath.Join(top, "outside"), filepath.Join(top, "store", "a")); err != nil {
		t.Skip(err)
	}
	s := DirStore{Dir: filepath.Join(top, "store")}
	if _, _, err := s.Get(ctx, "a/x"); err == nil {
		t.Error("Get went outside")
	}
	if err := s.Put(ctx, "a/x", 1, strings.NewReader("y")); err == nil {
		t.Error("Put went outside")
	}
	if text, _ := os.ReadFile(filepath.Join(top, "outside", "x")); string(text) != "outside/x" {
		t.Errorf("outside there is %q", text)
	}
}

// TestStoreTogether: several writers of one key, and readers, see whole
// payloads only.
func TestStoreTogether(t *testing.T) {
	s := DirStore{Dir: t.TempDir()}
	texts := []string{strings.Repeat("a", 100<<10), strings.Repeat("b", 50<<10)}
	check(t, s.Put(ctx, "k", int64(len(texts[0])), strings.NewReader(texts[0])))
	var all sync.WaitGroup
	for _, text := range texts {
		all.Go(func() {
			for range 5 {
				if err := s.Put(ctx, "k", int64(len(text)), strings.NewReader(text)); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range 10 {
				r, _, err := s.Get(ctx, "k")
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(r)
				r.Close()
				if err != nil || string(got) != texts[0] && string(got) != texts[1] {
					t.Errorf("read %d bytes of a mixture (%v)", len(got), err)
				}
			}
		})
	}
	all.Wait()
	if list := found(t, s.Dir); len(list) != 1 {
		t.Errorf("there are %q, want one file", list)
	}
}

// TestSaveLoad: a folder goes through a store and comes back the same.
func TestSaveLoad(t *testing.T) {
	s := DirStore{Dir: t.TempDir()}
	scratch := t.TempDir()
	p, err := Save(ctx, s, tree(t, false), scratch)
	check(t, err)
	dir := filepath.Join(t.TempDir(), "to")
	check(t, Load(ctx, s, p, dir))
	if again, _ := capture1(t, dir); again != p {
		t.Errorf("got %+v, want %+v", again, p)
	}
	if left := found(t, scratch); len(left) != 0 {
		t.Errorf("in scratch there is %q", left)
	}
	missing := p
	missing.SHA256 = strings.Repeat("0", 64)
	if err := Load(ctx, s, missing, dir+"2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not stored: %v", err)
	}
	// A store that has other bytes under the key.
	path := filepath.Join(s.Dir, filepath.FromSlash(p.Key()))
	text, err := os.ReadFile(path)
	check(t, err)
	for _, wrong := range [][]byte{text[1:], bytes.Replace(text, text[len(text)-4:], []byte("abcd"), 1)} {
		check(t, os.WriteFile(path, wrong, 0o600))
		if err := Load(ctx, s, p, dir+"3"); !errors.Is(err, ErrHash) {
			t.Errorf("other bytes: %v", err)
		}
	}
	if _, err := os.Lstat(dir + "3"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}
