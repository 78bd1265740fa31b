//go:build unix

package files

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func put1(s *Space, r WriteRequest, text string) (*WriteResult, error) {
	r.Content = &text
	return s.Write(context.Background(), r)
}

func TestWriteModes(t *testing.T) {
	s, dir := space(t, map[string]string{"f": "one\ntwo\n"})
	if err := os.Chmod(filepath.Join(dir, "f"), 0o751); err != nil {
		t.Fatal(err)
	}
	_, err := put1(s, WriteRequest{Path: "f"}, "x")
	refused(t, "create what exists", err, Conflict)
	_, err = put1(s, WriteRequest{Path: "f", Mode: ModeOverwrite, ExpectedSHA256: hashOf([]byte("other"))}, "x")
	refused(t, "another hash", err, Conflict)
	_, err = put1(s, WriteRequest{Path: "n", ExpectedSHA256: hashOf(nil)}, "x")
	refused(t, "a hash of no file", err, Conflict)
	_, err = put1(s, WriteRequest{Path: "no/n"}, "x")
	refused(t, "no folder", err, NotFound)
	_, err = put1(s, WriteRequest{Path: "n", Mode: "replace"}, "x")
	refused(t, "mode", err, InvalidRequest)
	_, err = put1(s, WriteRequest{Path: "n", Encoding: Base64}, "&&")
	refused(t, "base64", err, InvalidRequest)
	_, err = s.Write(t.Context(), WriteRequest{Path: "n"})
	refused(t, "content", err, InvalidRequest)
	if got := tree(t, dir); !maps.Equal(got, map[string]string{"f": "one\ntwo\n"}) {
		t.Fatalf("a refusal left %q", got)
	}

	r, err := put1(s, WriteRequest{Path: "f", Mode: ModeOverwrite, ExpectedSHA256: hashOf([]byte("one\ntwo\n"))}, "one\n2\n")
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(r.Backup); string(b) != "one\ntwo\n" || r.Created || r.Size != 6 || r.SHA256 != hashOf([]byte("one\n2\n")) {
		t.Errorf("the result is %+v with backup %q", r, b)
	}
	if want := "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"; r.Text != want {
		t.Errorf("the diff is\n%s", r.Text)
	}
	if info, _ := os.Stat(filepath.Join(dir, "f")); info.Mode().Perm() != 0o751 {
		t.Errorf("the mode is %o", info.Mode().Perm())
	}
	if r, err := put1(s, WriteRequest{Path: "f", Mode: ModeAppend}, "no end"); err != nil || !strings.HasSuffix(r.Text, "+no end\n\\ No newline at end of file\n") {
		t.Errorf("append: %+v, %v", r, err)
	}
	if r, err := put1(s, WriteRequest{Path: "n", Encoding: Base64}, "AAH/"); err != nil || !r.Created || r.Omitted != "binary" || r.Backup != "" {
		t.Errorf("binary: %+v, %v", r, err)
	}
	if got := tree(t, dir); !maps.Equal(got, map[string]string{"f": "one\n2\nno end", "n": "\x00\x01\xff"}) {
		t.Errorf("the files are %q", got)
	}
}

// TestWriteThroughLink: a symlink inside stays one; its target is written.
func TestWriteThroughLink(t *testing.T) {
	s, dir := space(t, map[string]string{"real/f": "old"})
	os.Symlink("real/f", filepath.Join(dir, "link"))
	os.Symlink("real/made", filepath.Join(dir, "dangling"))
	for _, name := range []string{"link", "dangling"} {
		if _, err := put1(s, WriteRequest{Path: name, Mode: ModeOverwrite}, "new"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no symlink any more", name)
		}
	}
	if got := tree(t, dir); got["real/f"] != "new" || got["real/made"] != "new" {
		t.Errorf("the files are %q", got)
	}
}

// TestConcurrentWriters: readers see whole files only, and nothing is left.
func TestConcurrentWriters(t *testing.T) {
	s, dir := space(t, map[string]string{"f": strings.Repeat("0", 100_000)})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 25 {
				text := strings.Repeat(fmt.Sprint(i), 100_000)
				put1(s, WriteRequest{Path: "f", Mode: ModeOverwrite}, text) // a conflict is fine
				b, err := os.ReadFile(filepath.Join(dir, "f"))
				if err != nil || len(b) != 100_000 || strings.Count(string(b), string(b[:1])) != len(b) {
					t.Errorf("a torn file of %d bytes, %v", len(b), err)
				}
			}
		})
	}
	all.Wait()
	if got := tree(t, dir); len(got) != 1 {
		t.Errorf("%d files are left", len(got))
	}
}

// TestChangedMeanwhile: somebody else's change between the read and the rename
// is a conflict, and is kept.
func TestChangedMeanwhile(t *testing.T) {
	s, dir := space(t, map[string]string{"f": "old", "g": "old"})
	list := changes(t, s, map[string]string{"f": "new", "g": "new"})
	write(t, filepath.Join(dir, "g"), "somebody else's")
	refused(t, "commit", s.newCommit(list).run(t.Context()), Conflict)
	if got := tree(t, dir); !maps.Equal(got, map[string]string{"f": "old", "g": "somebody else's"}) {
		t.Errorf("the files are %q", got)
	}
}

func changes(t *testing.T, s *Space, after map[string]string) []change {
	t.Helper()
	var list []change
	for _, name := range []string{"a", "b", "f", "g", "new/deep/file", "gone"} {
		text, ok := after[name]
		if !ok {
			continue
		}
		p, err := s.find(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := snapshot(p)
		if err != nil {
			t.Fatal(err)
		}
		c.after = []byte(text)
		c.remove = name == "gone"
		list = append(list, c)
	}
	return list
}

// TestStoppedCommit stops a commit before every one of its steps, by an error
// and by SIGKILL: the files are as before, and after the last step all new.
func TestStoppedCommit(t *testing.T) {
	before := map[string]string{"a": "A", "b": "B", "gone": "G"}
	whole := map[string]string{"a": "a2", "b": "b2", "new/": "", "new/deep/": "", "new/deep/file": "made"}
	steps := 0
	for at := 0; ; at++ {
		s, dir := space(t, before)
		k := s.newCommit(changes(t, s, map[string]string{"a": "a2", "b": "b2", "gone": "", "new/deep/file": "made"}))
		steps = 0
		k.stop = func(string) error {
			if steps++; steps == at+1 {
				return syscall.ENOSPC
			}
			return nil
		}
		err := k.run(t.Context())
		got := tree(t, dir)
		if err == nil {
			if at < 8 || !maps.Equal(got, whole) {
				t.Errorf("after %d steps: %q", steps, got)
			}
			break
		}
		if !maps.Equal(got, before) {
			t.Errorf("stopped by an error at step %d: %q", at, got)
		}
	}
	for at := range steps {
		s, dir := space(t, before)
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledCommit$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("FILES_KILL=%d", at), "FILES_ROOT="+dir, "FILES_DIR="+s.dir)
		if err := cmd.Run(); err == nil {
			t.Fatalf("the child was not killed at step %d", at)
		}
		if n, err := s.Recover(); n != 1 || err != nil {
			t.Errorf("step %d: %d undone, %v", at, n, err)
		}
		if got := tree(t, dir); !maps.Equal(got, before) {
			t.Errorf("killed at step %d: %q", at, got)
		}
		if n, err := s.Recover(); n != 0 || err != nil {
			t.Errorf("step %d: a second time %d undone, %v", at, n, err)
		}
	}
}

// TestKilledCommit is the child of TestStoppedCommit.
func TestKilledCommit(t *testing.T) {
	at, ok := os.LookupEnv("FILES_KILL")
	if !ok {
		t.Skip("a child of another test")
	}
	s, err := Open(Config{Roots: []string{os.Getenv("FILES_ROOT")}, Dir: os.Getenv("FILES_DIR")})
	if err != nil {
		t.Fatal(err)
	}
	k := s.newCommit(changes(t, s, map[string]string{"a": "a2", "b": "b2", "gone": "", "new/deep/file": "made"}))
	steps := 0
	k.stop = func(string) error {
		if fmt.Sprint(steps) == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		steps++
		return nil
	}
	k.run(t.Context())
}

// TestRecoverOtherRoot: what was not finished in a root that is not given now is
// left as it is, and the error says what to do; a finished change waits for its
// root to be tidied up.
func TestRecoverOtherRoot(t *testing.T) {
	s, dir := space(t, map[string]string{"a": "A", "gone": "G"})
	k := s.newCommit(changes(t, s, map[string]string{"a": "a2", "gone": ""}))
	if err := k.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := Open(Config{Roots: []string{t.TempDir()}, Dir: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = other.Recover()
	for _, says := range []string{`"a"`, dir, "roots", s.recordPath(k.id, "json")} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want it to say %s", err, says)
		}
	}
	if n, err := s.Recover(); n != 1 || err != nil {
		t.Errorf("%d undone, %v", n, err)
	}
	if got := tree(t, dir); !maps.Equal(got, map[string]string{"a": "A", "gone": "G"}) {
		t.Errorf("the files are %q", got)
	}
	k = s.newCommit(changes(t, s, map[string]string{"a": "a2", "gone": ""}))
	if err := errors.Join(k.prepare(t.Context()), k.replace(), os.Rename(s.recordPath(k.id, "json"), s.recordPath(k.id, "done"))); err != nil {
		t.Fatal(err)
	}
	for _, space := range []*Space{other, s} {
		if n, err := space.Recover(); n != 0 || err != nil {
			t.Errorf("of a finished one %d undone, %v", n, err)
		}
	}
	if got := tree(t, dir); !maps.Equal(got, map[string]string{"a": "a2"}) {
		t.Errorf("the files are %q", got)
	}
}
