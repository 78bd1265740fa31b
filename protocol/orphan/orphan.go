package orphan

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// proc is where the kernel tells of processes.
const proc = "/proc"

// MakeDir makes a new folder in dir that only this user can look into. The prefix
// has no "*". The caller removes the folder.
func MakeDir(dir, prefix string) (path string, err error) {
	pattern := prefix + "-"
	if me, ok := look(proc, "self"); ok {
		pattern += me.String() + "-"
	}
	return os.MkdirTemp(dir, pattern)
}

// Remove calls remove for the folders in dir with this prefix whose process is
// dead, until it has removed so many: somebody is waiting, and a folder can be
// large. What cannot be told, or is not removed, stays for the next time.
func Remove(dir, prefix string, most int, remove func(path string) error) {
	removeIn(proc, dir, prefix, most, remove)
}

func removeIn(proc, dir, prefix string, most int, remove func(path string) error) {
	me, ok := look(proc, "self")
	if !ok {
		return
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return // making a folder there says it
	}
	for _, entry := range list {
		if most == 0 {
			return
		}
		o, ok := ownerOf(entry.Name(), prefix)
		if !ok || !entry.IsDir() || o.place != me.place || !o.gone(proc) {
			continue
		}
		if remove(filepath.Join(dir, entry.Name())) == nil {
			most--
		}
	}
}

// owner is a process, whatever else gets its number later.
type owner struct {
	pid int
	// start is when it was started, in the kernel's ticks since boot.
	start uint64
	// place stands for the boot and the space of process numbers that both count
	// in: in another container the same numbers are other processes.
	place string
}

func (o owner) String() string { return fmt.Sprintf("%d-%d-%s", o.pid, o.start, o.place) }

// look looks a process up by its number, or "self". It is false where that cannot
// be told. A process that only waits to be reaped is dead, and has no start.
func look(proc, pid string) (owner, bool) {
	stat, err := os.ReadFile(filepath.Join(proc, pid, "stat"))
	if err != nil {
		return owner{}, false
	}
	// The name is in brackets and may hold any character. Behind it come field 3,
	// the state, and field 22, the start (proc_pid_stat(5)).
	const state, start = 0, 22 - 3
	head, _, _ := strings.Cut(string(stat), " ")
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= start {
		return owner{}, false
	}
	o := owner{place: place(proc)}
	var errPID, errStart error
	o.pid, errPID = strconv.Atoi(head)
	if s := fields[state]; s != "Z" && s != "X" {
		o.start, errStart = strconv.ParseUint(fields[start], 10, 64)
	}
	return o, errPID == nil && errStart == nil && o.place != ""
}

// place is empty where it cannot be told.
func place(proc string) string {
	boot, errBoot := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	space, errSpace := os.Readlink(filepath.Join(proc, "self/ns/pid"))
	if errBoot != nil || errSpace != nil {
		return ""
	}
	h := fnv.New32a()
	h.Write(boot)
	h.Write([]byte(space))
	return fmt.Sprintf("%08x", h.Sum32())
}

// ownerOf reads the owner in the name of a folder.
func ownerOf(name, prefix string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, prefix+"-")
	parts := strings.Split(rest, "-")
	const count = 4 // pid, start, place, random
	if !ok || len(parts) != count {
		return owner{}, false
	}
	pid, errPID := strconv.Atoi(parts[0])
	start, errStart := strconv.ParseUint(parts[1], 10, 64)
	return owner{pid, start, parts[2]}, errPID == nil && pid > 0 && errStart == nil
}

// gone reports whether the process is known to be dead.
func (o owner) gone(proc string) bool {
	pid := strconv.Itoa(o.pid)
	if _, err := os.Lstat(filepath.Join(proc, pid)); err != nil {
		// Without the folder of this process nothing is known of others.
		_, self := os.Stat(filepath.Join(proc, "self"))
		return errors.Is(err, fs.ErrNotExist) && self == nil
	}
	now, ok := look(proc, pid)
	return ok && now.start != o.start
}
