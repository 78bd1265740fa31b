package conform

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// left is a process that belongs to a case.
type left struct {
	pid  int
	name string
}

// String is "name (pid)".
func (p left) String() string { return fmt.Sprintf("%s (%d)", p.name, p.pid) }

// processesOf finds the processes that have the path in their environment or
// work below it. A zombie has neither. It finds nothing where there is no /proc.
func processesOf(root string) []left {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var found []left
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// What cannot be read belongs to somebody else, or is gone.
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if !bytes.Contains(env, []byte(root)) && cwd != root && !strings.HasPrefix(cwd, root+"/") {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(dir, "comm"))
		found = append(found, left{pid, strings.TrimSpace(string(name))})
	}
	return found
}

// killAll ends what a failed case has left.
func killAll(list []left) {
	for _, p := range list {
		if one, err := os.FindProcess(p.pid); err == nil {
			_ = one.Kill() // gone is fine
		}
	}
}
