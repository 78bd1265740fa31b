package process

import (
	"slices"
	"syscall"
	"time"
)

// launch is a start whose program is found and whose pipes are there.
type launch struct {
	path string
	argv []string
	env  []string
	dir  string
	fds  [3]int // become 0, 1 and 2; all others are close-on-exec
	leaf *leaf  // nil: stay in our own cgroup
	// deathSignal has the kernel kill the leader when the calling thread
	// ends: the caller keeps that thread for the life of the child.
	deathSignal bool
}

// launchFDs is how many descriptors go along with a launch at most: those of
// the three pipes and the two of the leaf.
const launchFDs = 5

// descriptors are those that go along with the launch.
func (l *launch) descriptors() []int {
	fds := slices.Clone(l.fds[:])
	if l.leaf != nil {
		fds = append(fds, l.leaf.fd, l.leaf.killFD)
	}
	return fds
}

// claim takes the leaf's descriptors from those that came along, and gives
// those of the pipes. Where some are missing, since there was no room for them
// here, there is no leaf.
func (l *launch) claim(files []int) (pipes []int, leaf *leaf) {
	if l.leaf == nil || len(files) != launchFDs {
		return files[:min(len(files), len(l.fds))], nil
	}
	l.leaf.fd, l.leaf.killFD = files[3], files[4]
	return files[:len(l.fds)], l.leaf
}

// spawn forks and executes. It returns after the exec, so an error is the
// system's own; nothing is left of a child that failed. inLeaf tells whether
// the child was born in its cgroup leaf.
func spawn(l launch) (pid int, inLeaf bool, err error) {
	inLeaf = l.leaf != nil
	withEmptyMask(func() {
		patience := time.Now().Add(busyPatience)
		for {
			pid, err = syscall.ForkExec(l.path, l.argv, l.attr(inLeaf))
			switch {
			case err == nil:
				return
			case err == syscall.ETXTBSY && time.Now().Before(patience):
				time.Sleep(busyPause)
			case inLeaf && leafRefused(err):
				inLeaf = false
			default:
				return
			}
		}
	})
	return pid, inLeaf, err
}

func (l *launch) attr(inLeaf bool) *syscall.ProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true}
	if l.deathSignal {
		sys.Pdeathsig = syscall.SIGKILL
	}
	if inLeaf {
		sys.UseCgroupFD, sys.CgroupFD = true, l.leaf.fd
	}
	files := make([]uintptr, len(l.fds))
	for i, fd := range l.fds {
		files[i] = uintptr(fd)
	}
	return &syscall.ProcAttr{Dir: l.dir, Env: l.env, Files: files, Sys: sys}
}

// leafRefused tells errors that clone3 into a cgroup can give where a plain
// clone works: an old kernel, a filter, a cgroup that takes no processes. An
// exec that fails for the same number fails once more without the leaf.
func leafRefused(err error) bool {
	switch err {
	case syscall.ENOSYS, syscall.EPERM, syscall.EACCES, syscall.EBUSY, syscall.EINVAL,
		syscall.ENODEV, syscall.EOPNOTSUPP, syscall.EBADF, syscall.E2BIG, syscall.EAGAIN:
		return true
	}
	return false
}
