//go:build unix

package taskrun

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOrphans: the folder of a worker that was killed is removed at the next
// start, also with what may not be written in it; that of one at work stays
// (remote.md rules 4 and 5; package orphan has the rest).
func TestOrphans(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	used, err := newRunDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(filepath.Base(used), "-") // run, pid, start, place, random
	if len(parts) != 5 {
		t.Skip("who has made a folder cannot be told here")
	}
	parts[2] += "1" // another start: the number was given again
	killed := filepath.Join(dir, strings.Join(parts, "-"))
	kept := filepath.Join(killed, "home", "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "file"), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(kept, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(kept, 0o700) // for who removes what stays
	removeOrphans(dir)
	if _, err := os.Lstat(killed); !os.IsNotExist(err) {
		t.Errorf("the folder of a worker that was killed is left: %v", err)
	}
	if _, err := os.Lstat(used); err != nil {
		t.Errorf("the folder of a worker at work is gone: %v", err)
	}
}
