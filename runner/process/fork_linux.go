package process

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"prp/runner/early"
)

// fork is one start of a harness below a guardian of its own. This process
// forks the guardian; the guardian forks the harness, which executes its
// program at once, and then becomes a guardian in full by executing this
// program again. So the harness has the guardian as its parent from its first
// moment on, and does not wait for the guardian's start, which takes longer
// than its own. Until it has done that, or given it up, the fork is under way.
type fork struct {
	plan forkPlan
	// over is closed once the guardian has executed this program, or is gone.
	// The outcome is whole then, and pid is the guardian's, or an error's
	// number as a negative one.
	over chan struct{}
	pid  int
	// strings are what plan points to.
	path, guardPath *byte
	children        *byte
	dir             *byte
	argv, env       []*byte
	guardArgv       []*byte
	guardEnv        []*byte
	// stack is the harness's before its exec. Ours would not do: where
	// somebody kills the guardian at that moment this process goes on before
	// the harness has left its memory. For the same reason a fork is never
	// given to the garbage collector: see keepFork.
	stack [stackBytes]byte
}

// stackBytes is ten times what the children's code uses at most: Go's linker
// bounds what functions that do not grow their stack may use to 800 bytes. The
// room at its top is for an argument.
const (
	stackBytes = 8 << 10
	stackRoom  = 64
)

// forkPlan is all that the two children need between fork and exec. They share
// this process's memory, or have a copy of it where the platform wants that,
// and can neither allocate nor wait: see fork_child_linux.go.
type forkPlan struct {
	outcome *outcome

	path      *byte
	argv, env **byte
	dir       *byte // nil: stay
	fds       [3]int
	clone     cloneArgs // into a leaf; else its flags alone count
	intoLeaf  bool
	files     early.Limit // Max 0: as they are

	stackTop            uintptr // 0: the harness runs on a copy of ours
	guardPath           *byte
	guardArgv, guardEnv **byte
	null                int               // becomes the guardian's 0, 1 and 2
	passed              [3]int            // stay open in the guardian; -1 is none
	closed              [4]fdRange        // all others but 0, 1 and 2
	begun               [headerBytes]byte // a message of msgBegun
	patience            unix.Timespec     // see harnessEnds; none: zero
	heard               [2]unix.PollFd
	name                [16]byte // of the process, as package early sets it later
	children            *byte    // "/proc/thread-self/children"
	list                [64]byte
	// forsake has the guardian kill a harness that it cannot guard, since
	// this process would not become its parent.
	forsake bool

	action kernelSigaction // all zero: the default
	mask   unix.Sigset_t   // empty
}

// fdRange are the descriptors from first to last, as close_range(2) takes them.
type fdRange struct{ first, last uintptr }

// others are the descriptors from 3 on that are not kept: at most one range more
// than there are kept ones. Where there are fewer, one stands several times.
func others(kept []int) (ranges [4]fdRange) {
	n, first := 0, 3
	for _, fd := range slices.Sorted(slices.Values(kept)) {
		if fd > first {
			ranges[n] = fdRange{uintptr(first), uintptr(fd - 1)}
			n++
		}
		first = max(first, fd+1)
	}
	for ; n < len(ranges); n++ {
		ranges[n] = fdRange{uintptr(first), math.MaxUint32}
	}
	return ranges
}

// outcome is what the children tell. It lies in memory that they share with
// this process.
type outcome struct {
	guardian    int32   // the kernel writes both numbers, as pid_t
	harness     int32   // once there is such a process
	harnessErr  uintptr // why it is not the harness
	guardianErr uintptr // why the guardian could not execute this program
	left        uintptr // 1: the harness had exited, and the guardian has left it to us
}

// cloneArgs is struct clone_args of clone3(2), as far as CLONE_INTO_CGROUP
// (Linux 5.7) needs it.
type cloneArgs struct {
	flags      uint64
	_          [2]uint64 // pidfd, child_tid
	parentTID  uint64
	exitSignal uint64
	stack      uint64
	stackSize  uint64
	_          [3]uint64 // tls, set_tid, set_tid_size
	cgroup     uint64
}

// newFork makes everything ready for children that can allocate nothing. The
// descriptors stay the caller's; none of them is 0, 1 or 2.
func newFork(l launch, o Options, inLeaf bool, control, null int) (*fork, error) {
	f := &fork{over: make(chan struct{})}
	p := &f.plan
	var err error
	if p.outcome, err = newOutcome(); err != nil {
		return nil, err
	}
	p.fds, p.null, p.passed = l.fds, null, [3]int{control, -1, -1}
	f.prepareClone()
	leafDir := ""
	if inLeaf {
		leafDir, p.intoLeaf = l.leaf.dir, true
		p.passed[1], p.passed[2] = l.leaf.fd, l.leaf.killFD
		p.clone.flags |= unix.CLONE_INTO_CGROUP
		p.clone.cgroup = uint64(l.leaf.fd)
	}
	p.files = originalFiles()
	copy(p.name[:], guardianName)
	p.begun[0], p.closed = msgBegun, others(p.passed[:])
	args := []string{guardianName, l.name, leafDir}
	for _, fd := range p.passed {
		args = append(args, strconv.Itoa(fd))
	}
	str := func(to **byte, s string) {
		if err == nil {
			*to, err = syscall.BytePtrFromString(s)
		}
	}
	list := func(to *[]*byte, s []string) {
		if err == nil {
			*to, err = syscall.SlicePtrFromStrings(s)
		}
	}
	str(&f.path, l.path)
	if l.dir != "" {
		str(&f.dir, l.dir)
	}
	list(&f.argv, l.argv)
	list(&f.env, l.env)
	str(&f.children, "/proc/thread-self/children")
	str(&f.guardPath, cmp.Or(o.guardProgram, ownProgram))
	list(&f.guardArgv, args)
	list(&f.guardEnv, guardianEnv)
	if err != nil {
		return nil, err
	}
	p.path, p.dir, p.argv, p.env = f.path, f.dir, &f.argv[0], &f.env[0]
	p.children = f.children
	p.guardPath, p.guardArgv, p.guardEnv = f.guardPath, &f.guardArgv[0], &f.guardEnv[0]
	return f, nil
}

// prepareClone sets what both ways to clone the harness need.
func (f *fork) prepareClone() {
	p := &f.plan
	p.clone = cloneArgs{
		flags:      forkFlags | unix.CLONE_PARENT_SETTID,
		parentTID:  uint64(uintptr(unsafe.Pointer(&p.outcome.harness))),
		exitSignal: uint64(unix.SIGCHLD),
	}
	if forkFlags&unix.CLONE_VM == 0 {
		return
	}
	const align = 16 // of a stack, on every platform
	base := (uintptr(unsafe.Pointer(&f.stack)) + align - 1) &^ (align - 1)
	size := uintptr(stackBytes - stackRoom - align)
	p.stackTop = base + size
	p.clone.stack, p.clone.stackSize = uint64(base), uint64(size)
}

// originalFiles is the limit of open files that the harness is given: the one
// with which this program was started, unless somebody has set another since.
func originalFiles() early.Limit {
	was, ok := early.OpenFiles()
	if !ok {
		return early.Limit{}
	}
	var now unix.Rlimit
	// Go raises the soft limit to one below the hard one (package syscall).
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &now) != nil || uint64(now.Max) != was.Max || uint64(now.Cur) != was.Max-1 {
		return early.Limit{}
	}
	return was
}

// run forks, and returns when there is a harness, or can be none. words are the
// guardian's, children is subscribed to SIGCHLD.
func (f *fork) run(words <-chan said, children <-chan os.Signal) {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	go withFullMask(func() {
		f.pid = forkWaiting(&f.plan)
		close(f.over)
	})
	f.await(words, children)
}

// await returns with the first word of the guardian, or when the fork is over.
// A guardian that somebody stops before that is ended: it would be waited for
// without end.
func (f *fork) await(words <-chan said, children <-chan os.Signal) {
	for {
		select {
		case <-words:
			return
		case <-f.over:
			return
		case <-children:
			g := &guardian{pid: int(f.plan.outcome.guardianNumber())}
			if g.pid > 0 && g.stopped() {
				g.kill()
			}
		}
	}
}

// keepFork keeps a fork for the life of the process, some kilobytes for each
// start, which a runner has one of.
func keepFork(f *fork) {
	forksMu.Lock()
	defer forksMu.Unlock()
	forks = append(forks, f)
}

var (
	forksMu sync.Mutex
	forks   []*fork
)

// aside gives a descriptor that is not 0, 1 or 2 for fd, and closes fd where
// that is another one.
func aside(fd int) (int, error) {
	if fd > 2 {
		return fd, nil
	}
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	unix.Close(fd)
	return moved, err
}
