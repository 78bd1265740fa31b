package files

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user that owns nothing here.
const nobody = 65534

// unprivileged calls f on a thread whose file accesses are those of nobody,
// where this process is root; root may write anywhere. The thread is not used
// again.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	why := make(chan string, 1)
	go func() {
		defer close(why)
		runtime.LockOSThread() // and never unlocked
		// A user other than root loses the file capabilities as well.
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			why <- err.Error()
			return
		}
		if uid, _ := unix.SetfsuidRetUid(-1); uid != nobody {
			why <- fmt.Sprintf("it is user %d", uid)
			return
		}
		f()
	}()
	if text := <-why; text != "" {
		t.Skipf("root without the right to be user %d: %s", nobody, text)
	}
}

// open lets everybody through to a folder of a test, and write in what is below
// it.
func open(t *testing.T, dir string) {
	t.Helper()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o777)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoPermission: row 17. What the account may not do is refused with
// PERMISSION_DENIED, names the path, and changes nothing.
func TestNoPermission(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	for _, name := range []string{"locked/f", "secret", "free/f"} {
		write(t, filepath.Join(dir, name), "old\n")
	}
	s, err := Open(Config{Roots: []string{dir}, Dir: state})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	open(t, dir)
	open(t, state)
	for name, mode := range map[string]fs.FileMode{"locked": 0o555, "secret": 0} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(filepath.Join(dir, "locked"), 0o777)
	unprivileged(t, func() {
		ctx := context.Background()
		if _, err := put1(s, WriteRequest{Path: "free/f", Mode: ModeOverwrite}, "new\n"); err != nil {
			t.Errorf("what may be written: %v", err)
		}
		_, err := put1(s, WriteRequest{Path: "locked/f", Mode: ModeOverwrite}, "x")
		if e := refused(t, "overwrite", err, PermissionDenied); e.Details["path"] != "locked/f" {
			t.Errorf("the details are %v", e.Details)
		}
		_, err = put1(s, WriteRequest{Path: "locked/new"}, "x")
		refused(t, "create", err, PermissionDenied)
		_, err = s.Read(ctx, ReadRequest{Path: "secret"}, 100, nil)
		refused(t, "read", err, PermissionDenied)
		_, err = s.Patch(ctx, PatchRequest{Patch: "--- a/free/f\n+++ b/free/f\n@@ -1 +1 @@\n-new\n+newer\n--- a/locked/f\n+++ b/locked/f\n@@ -1 +1 @@\n-old\n+x\n"})
		refused(t, "patch", err, PermissionDenied)
	})
	if err := os.Chmod(filepath.Join(dir, "secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"locked/": "", "locked/f": "old\n", "secret": "old\n", "free/": "", "free/f": "new\n"}
	for name, text := range tree(t, dir) {
		if want[name] != text {
			t.Errorf("%s is %q, want %q", name, text, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
