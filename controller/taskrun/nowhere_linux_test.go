package taskrun

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// descendants are the processes below one, by their numbers.
func descendants(t *testing.T, top int) []string {
	t.Helper()
	parents := map[string]string{}
	list, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range list {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if err != nil || len(fields) < 2 {
			continue // it has ended
		}
		parents[filepath.Base(dir)] = fields[1] // behind the state
	}
	var below []string
	for pid := range parents {
		for up := parents[pid]; up != "" && up != "0"; up = parents[up] {
			if up == strconv.Itoa(top) {
				below = append(below, pid)
				break
			}
		}
	}
	return below
}

// TestTokenInNoProcess: the token of the run is in the arguments and the
// environment of no process that the worker starts, while each of them lives
// (remote.md rule 6). The control is a secret of the run, which its harness has.
func TestTokenInNoProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.shell()
	b.offer.Secrets = map[string]string{"SECRET": "a-value-of-the-run"}
	cmd, said := b.process()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.running()
	names, secret := map[string]bool{}, 0
	// The last process to come is the child of the harness.
	for ; !names["sleep"] && b.ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		for _, pid := range descendants(t, cmd.Process.Pid) {
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			names[strings.TrimSpace(string(name))] = true
			for _, file := range []string{"cmdline", "environ"} {
				text, err := os.ReadFile("/proc/" + pid + "/" + file)
				if err != nil {
					continue // it has ended, or lets nobody look
				}
				if bytes.Contains(text, []byte(b.token)) {
					t.Errorf("%s has the token in its %s: %q", name, file, text)
				}
				if bytes.Contains(text, []byte("SECRET=a-value-of-the-run")) {
					secret++
				}
			}
		}
	}
	if secret == 0 || !names["prp"] || !names["sh"] || !names["sleep"] {
		t.Errorf("the search sees %v, and the secret in %d of them", names, secret)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, said)
	}
}
