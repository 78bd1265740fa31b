//go:build unix

package controller

import (
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"prp/controller/awaittest"
)

// TestDetach: the program is in a session of its own, has its input and the
// environment that it was given, and its end is told.
func TestDetach(t *testing.T) {
	ps, err := exec.LookPath("ps")
	if err != nil {
		t.Skipf("the session is shown by ps: %v", err)
	}
	input := strings.Repeat("x", 1<<20) // more than a pipe holds
	d, err := Detach([]string{"/bin/sh", "-c", "wc -c; echo $A-$HOME; " + ps + " -o sid= -p $$; echo $$"}, []string{"A=a", "PATH=/usr/bin:/bin"}, []byte(input))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Answer.Close()
	text, err := io.ReadAll(d.Answer)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	if len(words) != 4 || words[0] != "1048576" || words[1] != "a-" || words[2] != words[3] {
		t.Errorf("it says %q, want the size of its input, its environment, and its pid as its session", text)
	}
	awaittest.Came(t, "the end of the program", d.Done)
	if err := syscall.Kill(d.PID, 0); err != syscall.ESRCH {
		t.Errorf("process %d was not reaped: %v", d.PID, err)
	}
	if _, err := Detach([]string{"/no/such/program"}, nil, nil); err == nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, err := Detach(nil, nil, nil); err == nil {
		t.Error("no program is an error")
	}
}
