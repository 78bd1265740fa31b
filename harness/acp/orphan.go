package acp

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

// A process that is killed cannot remove its home. The name of a home tells
// whose it is, so that the next one that makes a home knows which are left:
//
//	prp-home-PID-START-PLACE-RANDOM
//
// In the name, and not in a file inside, since it is there from the first
// moment, and nothing of a stranger's folder has to be read.
const homePrefix = "prp-home-"

// maxOrphans bounds the homes that are removed before a new one is made: an
// agent is waiting, and a home can be large.
const maxOrphans = 8

// owner is a process, whatever else gets its number later.
type owner struct {
	pid int
	// start is when it was started, in the kernel's ticks since boot.
	start uint64
	// place stands for the boot and the space of process numbers that both
	// count in: in another container the same numbers are other processes.
	place string
}

func (o owner) String() string { return fmt.Sprintf("%d-%d-%s", o.pid, o.start, o.place) }

// readOwner looks a process up by its number, or "self". It is false where that
// cannot be told, as without /proc. A process that only waits to be reaped is
// as good as gone, and has no start.
func readOwner(pid string) (owner, bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return owner{}, false
	}
	// The name is in brackets and may hold any character: pid (name) state ...
	const state, start = 0, 19 // places behind the name; proc(5) counts from 3
	head, _, _ := strings.Cut(string(stat), " ")
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= start {
		return owner{}, false
	}
	o := owner{place: place()}
	var errPID, errStart error
	o.pid, errPID = strconv.Atoi(head)
	if s := fields[state]; s != "Z" && s != "X" {
		o.start, errStart = strconv.ParseUint(fields[start], 10, 64)
	}
	return o, errPID == nil && errStart == nil && o.place != ""
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

// ownerOf reads the owner in the name of a home.
func ownerOf(name string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, homePrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 4 {
		return owner{}, false
	}
	pid, errPID := strconv.Atoi(parts[0])
	start, errStart := strconv.ParseUint(parts[1], 10, 64)
	return owner{pid, start, parts[2]}, errPID == nil && pid > 0 && errStart == nil
}

// gone reports whether the process is known to be dead.
func (o owner) gone() bool {
	if _, err := os.Stat("/proc/self"); err != nil {
		return false
	}
	if _, err := os.Lstat(filepath.Join("/proc", strconv.Itoa(o.pid))); err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	now, ok := readOwner(strconv.Itoa(o.pid))
	return ok && now.start != o.start
}

// removeOrphans removes homes in dir whose owner, in this place, is dead. What
// cannot be removed is left to the next start, or belongs to somebody else.
func removeOrphans(dir, here string) {
	f, err := os.Open(dir)
	if err != nil {
		return // making the new home says it
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	n := 0
	for _, name := range names {
		if o, ok := ownerOf(name); !ok || o.place != here || !o.gone() {
			continue
		}
		if h := (&Home{root: filepath.Join(dir, name)}); h.removeOnce() == nil {
			n++
		}
		if n == maxOrphans {
			return
		}
	}
}
