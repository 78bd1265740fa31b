//go:build unix

package acp

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// homeMain makes a home in the folder that it is told and waits to be killed.
func homeMain(dir string) {
	h, err := NewHome(dir)
	if err != nil {
		panic(err)
	}
	fmt.Println(h.Root())
	time.Sleep(hang)
}

// homeOwner is a process that has a home in dir.
func homeOwner(t *testing.T, dir string) (cmd *exec.Cmd, home string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), role+"=home")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	home, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(home)
}

func needProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("whether a process is dead is known by /proc only")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestHomeOfTheKilled: a home outlives a killed process, and not the start of
// the next one; the home of a process that lives stays, whoever looks.
func TestHomeOfTheKilled(t *testing.T) {
	needProc(t)
	dir := t.TempDir()
	killed, orphan := homeOwner(t, dir)
	_, used := homeOwner(t, dir)
	deep := filepath.Join(orphan, "home", "deep")
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(deep, "file"), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(deep, 0o500); err != nil {
		t.Fatal(err)
	}
	again := func() {
		t.Helper()
		h, err := NewHome(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	again()
	if !exists(orphan) || !exists(used) {
		t.Fatal("the home of a process that lives is gone")
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Not reaped: dead is what runs no more.
	pid := strconv.Itoa(killed.Process.Pid)
	for o, ok := readOwner(pid); !ok || o.start != 0; o, ok = readOwner(pid) {
		time.Sleep(time.Millisecond)
	}
	if !exists(orphan) {
		t.Fatal("the home is gone with its process: there is nothing to show")
	}
	again()
	if exists(orphan) {
		t.Error("the home of a killed process is left")
	}
	if !exists(used) {
		t.Error("the home of a process that lives is gone")
	}
}

// TestOrphansAreKnown: only what is known to be dead is removed.
func TestOrphansAreKnown(t *testing.T) {
	needProc(t)
	me, ok := readOwner("self")
	if !ok || me.pid != os.Getpid() {
		t.Fatalf("the own process is %v", me)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	gone := dead.Process.Pid
	elsewhere := fmt.Sprintf("%08x", 0)
	dir := t.TempDir()
	keep, remove := []string{
		"prp-home-123", "prp-home-", "other", "prp-home--1-1-" + me.place + "-1",
		fmt.Sprintf("prp-home-%s-1", me),                          // alive
		fmt.Sprintf("prp-home-%d-%d-%s-1", gone, 1, elsewhere),    // another boot or container
		fmt.Sprintf("prp-home-%d-%d-%s-1-2", gone, 1, me.place),   // no name of ours
		fmt.Sprintf("prp-home-%d-x%d-%s-1", gone, 1, me.place),    // nor this one
		fmt.Sprintf("not-prp-home-%d-%d-%s-1", gone, 1, me.place), // nor this one
	}, []string{
		fmt.Sprintf("prp-home-%d-%d-%s-1", gone, 1, me.place),
		fmt.Sprintf("prp-home-%d-%d-%s-1", me.pid, me.start+1, me.place), // the number was given again
	}
	for _, name := range append(keep, remove...) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeOrphans(dir, me.place)
	for _, name := range keep {
		if !exists(filepath.Join(dir, name)) {
			t.Errorf("%s is gone", name)
		}
	}
	for _, name := range remove {
		if exists(filepath.Join(dir, name)) {
			t.Errorf("%s is left", name)
		}
	}
}
