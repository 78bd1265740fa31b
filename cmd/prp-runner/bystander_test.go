//go:build linux

package main

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// bystander is a process in the runner's group that is none of the run's.
type bystander struct{ cmd *exec.Cmd }

// startBystander starts one in a group that exists.
func startBystander(t *testing.T, group int) *bystander {
	t.Helper()
	b := &bystander{exec.Command("sleep", "600")}
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b.cmd.ProcessState == nil {
			b.cmd.Process.Kill()
			b.cmd.Wait()
		}
	})
	return b
}

// livesOn fails where the bystander was hit; it ends it then.
func (b *bystander) livesOn(t *testing.T) {
	t.Helper()
	b.cmd.Process.Kill()
	b.cmd.Wait()
	ws := b.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
		t.Errorf("a process in the runner's group was hit: %v", b.cmd.ProcessState)
	}
}

// awaitFull waits until the runner cannot write: what it has written to its
// stdout does not grow any more though nobody reads.
func awaitFull(t *testing.T, r *run) {
	t.Helper()
	same, last := 0, -1
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		n := readable(t, r.stdout)
		if n == last && n > 0 {
			if same++; same >= 10 {
				return
			}
			continue
		}
		same, last = 0, n
	}
	t.Fatalf("the pipe did not fill: %d bytes", last)
}
