//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// proc is one living process as /proc shows it.
type proc struct {
	pid, ppid int
	state     byte
	args      string
}

func (p proc) String() string {
	return fmt.Sprintf("%d (parent %d, %c) %q", p.pid, p.ppid, p.state, p.args)
}

// alive lists what lives; a zombie is dead.
func alive() []proc {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var list []proc
	for _, name := range names {
		p, ok := look(name)
		if ok && p.state != 'Z' && p.state != 'X' {
			list = append(list, p)
		}
	}
	return list
}

// look reads one process; false where it is gone.
func look(dir string) (proc, bool) {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return proc{}, false
	}
	// The name is in parentheses and may hold anything.
	at := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[at+1:]))
	if at < 0 || len(fields) < 2 {
		return proc{}, false
	}
	pid, _ := strconv.Atoi(filepath.Base(dir))
	ppid, _ := strconv.Atoi(fields[1])
	args, _ := os.ReadFile(dir + "/cmdline")
	return proc{pid: pid, ppid: ppid, state: fields[0][0], args: string(bytes.TrimRight(bytes.ReplaceAll(args, []byte{0}, []byte(" ")), " "))}, true
}

// ofHarness lists what lives below a runner or carries the mark of its run,
// without the runner itself and its guardian.
func ofHarness(runner int, mark string) []proc {
	list := alive()
	below := map[int]bool{runner: true}
	for grown := true; grown; {
		grown = false
		for _, p := range list {
			if below[p.ppid] && !below[p.pid] {
				below[p.pid], grown = true, true
			}
		}
	}
	var found []proc
	for _, p := range list {
		if p.pid == runner || isGuardian(p, runner) {
			continue
		}
		if (below[p.pid] || marked(p.pid, mark)) && runs(p.pid) {
			found = append(found, p)
		}
	}
	return found
}

// isGuardian tells a runner's own helper; while it is being started it has the
// runner's own arguments.
func isGuardian(p proc, runner int) bool {
	leaf, ok := strings.CutPrefix(p.args, "prp-guardian prp-") // NAMESPACE-RUNNER-START-COUNT
	parts := strings.Split(leaf, "-")
	return ok && len(parts) > 2 && parts[1] == strconv.Itoa(runner) ||
		p.ppid == runner && strings.HasPrefix(p.args, runnerBin+" ")
}

// runs reports whether a process can still run code: one that is on its way to
// be a zombie has no executable any more.
func runs(pid int) bool {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil
}

func marked(pid int, mark string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(env, []byte(mark))
}

// statusKiB reads a member of /proc/PID/status in KiB, 0 where it is gone.
func statusKiB(pid int, name string) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return n
		}
	}
	return 0
}

// cpuTicks is the processor time of a process in ticks of 10 ms.
func cpuTicks(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("expected two numbers, got %q and %q", fields[11], fields[12])
	}
	return user + system, nil
}

// readable is the number of bytes that wait in a pipe.
func readable(t *testing.T, f *os.File) (n int) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	controlErr := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	if err := errors.Join(controlErr, err); err != nil {
		t.Fatal(err)
	}
	return n
}
