package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// removePatience is how long an empty leaf may still be held by tasks that the
// kernel has not finished with; removePause lies between two tries.
const (
	removePatience = 200 * time.Millisecond
	removePause    = 2 * time.Millisecond
)

// leaf is a cgroup v2 of one harness, below our own. Its name tells its owner;
// no other cgroup is ever touched.
type leaf struct {
	dir    string
	fd     int // for CLONE_INTO_CGROUP
	killFD int // cgroup.kill
}

// newLeaf makes the leaf called name below a cgroup. Its error says which means
// is missing.
func newLeaf(parent, name string) (*leaf, error) {
	dir := filepath.Join(parent, name)
	err := unix.Mkdir(dir, 0o755)
	if err != nil {
		return nil, fmt.Errorf("no cgroup can be made below %q: %w", parent, err)
	}
	l := &leaf{dir: dir, fd: -1, killFD: -1}
	if l.killFD, err = unix.Open(filepath.Join(dir, "cgroup.kill"), unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		l.remove()
		return nil, fmt.Errorf("cgroup.kill (Linux 5.14): %w", err)
	}
	if l.fd, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		l.remove()
		return nil, fmt.Errorf("open the cgroup %q: %w", dir, err)
	}
	return l, nil
}

// reopen gives the leaf of a guardian that has gone, after [leaf.close]; nil
// where the leaf is gone as well.
func (l *leaf) reopen() *leaf {
	var err error
	if l.killFD, err = unix.Open(filepath.Join(l.dir, "cgroup.kill"), unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		l.killFD = -1
		return nil
	}
	return l
}

// kill ends everything in the leaf and below it; a fork cannot outrun it.
func (l *leaf) kill() {
	if l != nil {
		unix.Write(l.killFD, []byte("1"))
	}
}

// close lets go of the leaf and leaves it where it is.
func (l *leaf) close() {
	if l == nil {
		return
	}
	for _, fd := range []*int{&l.fd, &l.killFD} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// remove takes the leaf away, and what a harness has made below it.
func (l *leaf) remove() {
	if l == nil {
		return
	}
	l.close()
	for end := time.Now().Add(removePatience); ; time.Sleep(removePause) {
		err := removeCgroup(l.dir)
		if err != unix.EBUSY || time.Now().After(end) {
			return
		}
	}
}

// removeCgroup is rmdir of a cgroup and those below it, deepest first.
func removeCgroup(dir string) error {
	err := unix.Rmdir(dir)
	if err != unix.EBUSY {
		return err
	}
	entries, readErr := os.ReadDir(dir)
	if readErr != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(dir, e.Name()))
		}
	}
	return unix.Rmdir(dir)
}

// ownCgroup is the directory of the cgroup v2 that this process is in.
func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("own cgroup: %w", bare(err))
	}
	own := ""
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "0::"); ok {
			own = path
		}
	}
	if own == "" || strings.Contains(own, "/..") {
		return "", errors.New("this process is in no cgroup v2 that it can see")
	}
	text, err = os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("mounts: %w", bare(err))
	}
	for line := range strings.Lines(string(text)) {
		if dir, ok := cgroupDir(line, own); ok {
			return dir, nil
		}
	}
	return "", errors.New("no cgroup v2 is mounted")
}

// cgroupDir is where a line of mountinfo shows the cgroup own, if it does:
// "ID PARENT DEVICE ROOT MOUNTPOINT OPTIONS [TAGS] - TYPE SOURCE OPTIONS".
func cgroupDir(line, own string) (string, bool) {
	mount, kind, ok := strings.Cut(line, " - ")
	if !ok || !strings.HasPrefix(kind, "cgroup2 ") {
		return "", false
	}
	const rootField, pointField = 3, 4
	fields := strings.Fields(mount)
	if len(fields) <= pointField {
		return "", false
	}
	root, point := fields[rootField], unescapeMount(fields[pointField])
	if root == "/" {
		return filepath.Join(point, own), true
	}
	rest, ok := strings.CutPrefix(own, unescapeMount(root))
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return filepath.Join(point, rest), true
}

// unescapeMount undoes the four escapes of mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
