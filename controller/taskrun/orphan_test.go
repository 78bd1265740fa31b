//go:build unix

package taskrun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestOrphans: the folder of a worker that was killed is removed at the next
// start, also with what may not be written in it, and no other one (remote.md
// rule 5).
func TestOrphans(t *testing.T) {
	t.Parallel()
	me, ok := ownerNow(os.Getpid())
	if !ok {
		t.Skip("who has made a folder cannot be told here")
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	zombie := exec.Command("true") // not reaped up to the end
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer zombie.Wait()
	for until := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		if now, ok := ownerNow(zombie.Process.Pid); ok && now.start == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the process does not end")
		}
	}
	name := func(pid int, start uint64, place string) string {
		return fmt.Sprintf("run-%d-%d-%s-1", pid, start, place)
	}
	dir := t.TempDir()
	for name, stays := range map[string]bool{
		name(dead.Process.Pid, 1, me.place):           false,
		name(os.Getpid(), me.start+1, me.place):       false, // its number was given again
		name(zombie.Process.Pid, me.start, me.place):  false,
		name(os.Getpid(), me.start, me.place):         true,
		name(dead.Process.Pid, 1, "00000000"):         true, // of another place
		fmt.Sprintf("run-%d", dead.Process.Pid):       true,
		"run-x-1-" + me.place + "-1":                  true,
		"other-1-1-" + me.place + "-1":                true,
		name(-1, 1, me.place):                         true,
		fmt.Sprintf("run-1-1-%s-1-1", me.place):       true,
		fmt.Sprintf("run-%d-x-%s-1", 1<<22, me.place): true,
	} {
		kept := filepath.Join(dir, name, "home", "kept")
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
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != stays {
			t.Errorf("%s: %v, want that it stays: %v", name, err, stays)
		}
	}
	made, err := newRunDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := ownerOf(filepath.Base(made)); !ok || o != me {
		t.Errorf("%s is of %+v, want %+v", made, o, me)
	}
}
