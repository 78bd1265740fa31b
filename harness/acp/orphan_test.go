//go:build unix

package acp

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	for end := time.Now().Add(hang); exists(orphan); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the home of a killed process is left")
		}
		again()
	}
	if !exists(used) {
		t.Error("the home of a process that lives is gone")
	}
}
