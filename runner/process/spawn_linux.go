package process

import (
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
	name string // of the leaf, also where there is none
	// deathSignal has the kernel kill the leader when the calling thread
	// ends: the caller keeps that thread for the life of the child.
	deathSignal bool
}

// try starts a launch by start, which is told whether the child is to be born
// in the cgroup leaf, and says whether it was. It tries again without the leaf
// where that was refused, and for a moment where the program's file is open for
// writing elsewhere.
func (l *launch) try(start func(inLeaf bool) error) (inLeaf bool, err error) {
	inLeaf = l.leaf != nil
	for patience := time.Now().Add(busyPatience); ; {
		err = start(inLeaf)
		switch {
		case err == nil:
			return inLeaf, nil
		case err == syscall.ETXTBSY && time.Now().Before(patience):
			time.Sleep(busyPause)
		case inLeaf && leafRefused(err):
			inLeaf = false
		default:
			return false, err
		}
	}
}

// spawn forks and executes. It returns after the exec, so an error is the
// system's own; nothing is left of a child that failed.
func spawn(l launch) (pid int, inLeaf bool, err error) {
	withEmptyMask(func() {
		inLeaf, err = l.try(func(inLeaf bool) (err error) {
			pid, err = syscall.ForkExec(l.path, l.argv, l.attr(inLeaf))
			return err
		})
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
