package taskrun

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"prp/controller/unpack"
)

// runPrefix begins the name of a run's private folder. Behind it stands who made
// it, so that the folder of a worker that was killed can be told from that of
// one that is at work.
const runPrefix = "run-"

// maxOrphans bounds the folders that are removed at a start: a run is waiting,
// and a folder can be large.
const maxOrphans = 8

// owner is a process, whatever else gets its number later (remote.md rule 5).
type owner struct {
	pid int
	// start is when it was started, in the kernel's ticks since boot.
	start uint64
	// place stands for the boot and the space of process numbers that both count
	// in: in another container the same numbers are other processes.
	place string
}

// ownerNow looks a process up; false is one that cannot be told, as without
// /proc. One that waits to be reaped is dead and has no start.
func ownerNow(pid int) (owner, bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return owner{}, false
	}
	// The name is in brackets and may hold any character. Behind it come field 3,
	// the state, and field 22, the start (proc_pid_stat(5)).
	const state, start = 0, 22 - 3
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= start {
		return owner{}, false
	}
	o := owner{pid: pid, place: place()}
	if s := fields[state]; s != "Z" && s != "X" {
		o.start, err = strconv.ParseUint(fields[start], 10, 64)
	}
	return o, err == nil && o.place != ""
}

// place is empty where it cannot be told.
func place() string {
	boot, errBoot := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, errSpace := os.Readlink("/proc/self/ns/pid")
	if errBoot != nil || errSpace != nil {
		return ""
	}
	h := fnv.New32a()
	h.Write(boot)
	h.Write([]byte(space))
	return fmt.Sprintf("%08x", h.Sum32())
}

// ownerOf reads the owner in the name of a run's folder.
func ownerOf(name string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, runPrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 4 {
		return owner{}, false
	}
	pid, errPID := strconv.Atoi(parts[0])
	start, errStart := strconv.ParseUint(parts[1], 10, 64)
	return owner{pid, start, parts[2]}, errPID == nil && pid > 0 && errStart == nil
}

// gone tells whether the process is known to be dead.
func (o owner) gone() bool {
	if _, err := os.Lstat(filepath.Join("/proc", strconv.Itoa(o.pid))); err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	now, ok := ownerNow(o.pid)
	return ok && now.start != o.start
}

// newRunDir makes a private folder of a run in dir.
func newRunDir(dir string) (string, error) {
	pattern := runPrefix
	if me, ok := ownerNow(os.Getpid()); ok {
		pattern = fmt.Sprintf("%s%d-%d-%s-", runPrefix, me.pid, me.start, me.place)
	}
	return os.MkdirTemp(dir, pattern)
}

// removeOrphans removes the folders in dir whose worker, in this place, is dead:
// nobody works on such a run again (remote.md rule 4). What cannot be told or
// removed stays.
func removeOrphans(dir string) {
	here := place()
	list, err := os.ReadDir(dir)
	if err != nil || here == "" {
		return // making the folder of the run says it
	}
	n := 0
	for _, entry := range list {
		o, ok := ownerOf(entry.Name())
		if !ok || o.place != here || !o.gone() || unpack.Remove(filepath.Join(dir, entry.Name())) != nil {
			continue
		}
		if n++; n == maxOrphans {
			return
		}
	}
}
