package worker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// identity is a process: its number, and its start, since the number alone is
// given to others later (remote.md rule 5).
type identity struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// identify finds who has a number now. Start is empty where nobody that lives
// has it, or where the system does not tell (it is asked by /proc).
func identify(pid int) identity {
	id := identity{PID: pid}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return id
	}
	// Behind the name in parentheses, which can hold anything: field 3 is the
	// state, field 22 the start in ticks since boot (proc_pid_stat(5)).
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const state, start = 0, 22 - 3
	if len(fields) <= start || fields[state] == "Z" || fields[state] == "X" {
		return id // a zombie is dead
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id
	}
	id.Start = strings.TrimSpace(string(boot)) + "/" + fields[start]
	return id
}

// alive tells whether this very process lives.
func (id identity) alive() bool { return id.Start != "" && identify(id.PID) == id }

// signal sends a signal to this very process, and to nobody where it is gone.
// The handle is taken before the identity is checked: where the kernel has
// pidfds no stranger can be hit, elsewhere the two are microseconds apart.
func (id identity) signal(s syscall.Signal) {
	p, err := os.FindProcess(id.PID)
	if err != nil {
		return
	}
	defer p.Release()
	if id.alive() {
		_ = p.Signal(s) // it has just ended, which is what was wanted
	}
}
