package orphan

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// hang bounds what a test waits for.
const hang = time.Minute

// self is this process, where that can be told.
func self(t *testing.T) owner {
	t.Helper()
	me, ok := look(proc, "self")
	if !ok {
		t.Skip("who has made a folder cannot be told here")
	}
	if me.pid != os.Getpid() || me.start == 0 {
		t.Fatalf("this process is %v", me)
	}
	return me
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestOrphans: only what is known to be of a dead process is removed (remote.md
// rule 5: a process is known by pid and start time, and a zombie is dead).
func TestOrphans(t *testing.T) {
	me := self(t)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	gone := dead.Process.Pid
	zombie := exec.Command("true") // not reaped up to the end
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer zombie.Wait()
	for end := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		if o, ok := look(proc, strconv.Itoa(zombie.Process.Pid)); ok && o.start == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the process does not end")
		}
	}
	dir := t.TempDir()
	stays := map[string]bool{
		fmt.Sprintf("kind-%v-1", me):                          true,
		fmt.Sprintf("kind-%v-1", owner{gone, 1, "00000000"}):  true, // another boot or container
		fmt.Sprintf("kind-%v-1-2", owner{gone, 1, me.place}):  true, // no name of ours
		fmt.Sprintf("kind-%v", owner{gone, 1, me.place}):      true,
		fmt.Sprintf("kind-%d-x1-%s-1", gone, me.place):        true,
		fmt.Sprintf("kind-%v-1", owner{-1, 1, me.place}):      true,
		fmt.Sprintf("kind-%v-1", owner{0, 1, me.place}):       true,
		fmt.Sprintf("other-%v-1", owner{gone, 1, me.place}):   true,
		fmt.Sprintf("my-kind-%v-1", owner{gone, 1, me.place}): true,
		"kind-": true, "kind-123": true, "kind": true,
		fmt.Sprintf("kind-%v-1", owner{gone, 1, me.place}):                      false,
		fmt.Sprintf("kind-%v-1", owner{me.pid, me.start + 1, me.place}):         false, // the number was given again
		fmt.Sprintf("kind-%v-1", owner{zombie.Process.Pid, me.start, me.place}): false,
	}
	for name := range stays {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, fmt.Sprintf("kind-%v-2", owner{gone, 1, me.place}))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Remove(dir, "kind", 100, os.Remove)
	for name, want := range stays {
		if got := exists(filepath.Join(dir, name)); got != want {
			t.Errorf("%s is there: %v, want %v", name, got, want)
		}
	}
	if !exists(file) {
		t.Error("a file was removed: it is no folder of ours")
	}
}

// TestMakeDir: a folder is of the process that made it.
func TestMakeDir(t *testing.T) {
	me := self(t)
	dir := t.TempDir()
	path, err := MakeDir(dir, "kind")
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := ownerOf(filepath.Base(path), "kind"); !ok || o != me {
		t.Errorf("%s is of %v, want %v", path, o, me)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
	Remove(dir, "kind", 100, os.Remove)
	if !exists(path) {
		t.Error("the folder of a process that lives was removed")
	}
}

// TestMost: so many are removed, and one that cannot be removed is not counted.
func TestMost(t *testing.T) {
	me := self(t)
	dir := t.TempDir()
	const made, stuck, most = 5, 2, 2
	for n := range made {
		path := filepath.Join(dir, fmt.Sprintf("kind-%v-%d", owner{me.pid, me.start + 1, me.place}, n))
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tried := 0
	Remove(dir, "kind", most, func(path string) error {
		if tried++; tried <= stuck {
			return errors.New("it is in use")
		}
		return os.Remove(path)
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) != made-most || tried != stuck+most {
		t.Errorf("%d are left after %d tries, %v; want %d after %d", len(left), tried, err, made-most, stuck+most)
	}
}

// TestNoProc: where nothing is known of processes nothing is removed, also where
// that is so from one moment to the next.
func TestNoProc(t *testing.T) {
	me := self(t)
	dir, nowhere := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, fmt.Sprintf("kind-%v-1", owner{me.pid, me.start + 1, me.place}))
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	removeIn(nowhere, dir, "kind", 100, os.Remove)
	if !exists(path) {
		t.Error("a folder was removed")
	}
	if me.gone(nowhere) {
		t.Error("a process is known to be dead")
	}
}
