package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// leafOwner is the runner whose leaf it is: its number, the namespace in which
// that is its number, and its start time.
type leafOwner struct {
	namespace uint64
	pid       int
	start     uint64
}

const leafPrefix = "prp-"

// name is that of the owner's nth leaf.
func (o leafOwner) name(n int64) string {
	return fmt.Sprintf("%s%d-%d-%d-%d", leafPrefix, o.namespace, o.pid, o.start, n)
}

// parseLeaf gives the owner of a leaf; false where the name is no leaf's.
func parseLeaf(name string) (o leafOwner, ok bool) {
	rest, ok := strings.CutPrefix(name, leafPrefix)
	if !ok {
		return o, false
	}
	const fields = 4
	var n [fields]uint64
	parts := strings.Split(rest, "-")
	if len(parts) != fields {
		return o, false
	}
	for i, p := range parts {
		var err error
		if n[i], err = strconv.ParseUint(p, 10, 63); err != nil {
			return o, false
		}
	}
	return leafOwner{namespace: n[0], pid: int(n[1]), start: n[2]}, true
}

// pidNamespace is the number of the namespace of this process's number; 0 where
// it cannot be learned.
func pidNamespace() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		return 0
	}
	return st.Ino
}

// removeDeadLeaves takes away the empty leaves below a cgroup of runners that are
// dead, and whose guardian has died before it could. The leaf called own is left
// alone. A cgroup that holds a process cannot be removed.
func removeDeadLeaves(parent, own string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return e.Name() == own || !strings.HasPrefix(e.Name(), leafPrefix)
	})
	if len(entries) == 0 {
		return // as a rule
	}
	proc := openProc()
	if proc == nil {
		return
	}
	defer proc.close()
	ours := pidNamespace()
	for _, e := range entries {
		o, ok := parseLeaf(e.Name())
		if ok && o.namespace == ours && startOf(proc, o.pid) != o.start {
			_ = unix.Rmdir(filepath.Join(parent, e.Name()))
		}
	}
}
