package process

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The code of this file runs between fork and exec, in memory that belongs to
// the process that has forked, with all signals blocked. So it calls nothing
// but system calls, allocates nothing, needs no more stack than it has
// (nosplit), and the race detector leaves it alone.

// lastSignal is the highest number of a signal (signal(7)).
const lastSignal = 64

// atCWD is AT_FDCWD, which is negative.
const atCWD = ^uintptr(-unix.AT_FDCWD - 1)

// forkFailed is the status of a child that could not execute its program. Its
// cause is in the outcome.
const forkFailed = 253

// forkWaiting forks the guardian and waits until it has executed its program,
// or is gone: vfork(2). Meanwhile this thread counts as one in a system call,
// so that the others do not wait for it. It gives the guardian's number, or an
// error's as a negative one.
//
//go:nosplit
//go:norace
func forkWaiting(p *forkPlan) int {
	enterSystemCall()
	pid := forkGuardian(unix.SYS_CLONE, forkFlags|unix.CLONE_PARENT_SETTID|uintptr(unix.SIGCHLD), 0,
		uintptr(unsafe.Pointer(&p.outcome.guardian)), p)
	exitSystemCall()
	return pid
}

// guardianNumber is 0 until the guardian has been forked. It is asked while the
// guardian may be writing it.
//
//go:noinline
//go:norace
func (o *outcome) guardianNumber() int32 { return o.guardian }

// call makes a system call and gives the error's number, 0 where it worked.
//
//go:nosplit
//go:noinline
//go:norace
func call(number, a1, a2, a3, a4 uintptr) uintptr {
	_, _, errno := syscall.RawSyscall6(number, a1, a2, a3, a4, 0, 0)
	return uintptr(errno)
}

// guardianChild is the guardian's life before its exec. It does not return.
//
//lint:ignore U1000 assembly calls it
//go:nosplit
//go:noinline
//go:norace
//go:nocheckptr
func guardianChild(p *forkPlan) {
	call(unix.SYS_SETSID, 0, 0, 0, 0)
	call(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0) // survives exec
	call(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&p.name)), 0, 0)
	o := p.outcome
	var pid int
	if p.intoLeaf {
		pid = forkHarness(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&p.clone)), unsafe.Sizeof(p.clone), 0, p)
	} else {
		pid = forkHarness(unix.SYS_CLONE, uintptr(p.clone.flags)|uintptr(unix.SIGCHLD), p.stackTop,
			uintptr(unsafe.Pointer(&o.harness)), p)
	}
	switch {
	case pid < 0:
		o.harnessErr = uintptr(-pid)
	case o.harnessErr != 0:
		call(unix.SYS_WAIT4, uintptr(pid), 0, unix.WALL, 0)
	default:
		call(unix.SYS_WRITE, uintptr(p.passed[0]), uintptr(unsafe.Pointer(&p.begun)), headerBytes, 0)
		if letGo(p) && harnessEnds(p, uintptr(pid)) {
			// It is this process's no more, but the runner's, which is the
			// next subreaper.
			o.left = 1
			leave(0)
		}
		becomeGuardian(p)
	}
	leave(forkFailed)
}

// leave does not return.
//
//go:nosplit
//go:noinline
//go:norace
func leave(status uintptr) {
	for {
		call(unix.SYS_EXIT_GROUP, status, 0, 0, 0)
	}
}

// letGo closes all descriptors but those that stay open, as the exec does: a pipe
// has ended only once nobody holds it. It fails on kernels before 5.9.
//
//go:nosplit
//go:noinline
//go:norace
func letGo(p *forkPlan) bool {
	for i := uintptr(0); i <= 2; i++ {
		call(unix.SYS_DUP3, uintptr(p.null), i, 0, 0)
	}
	for _, r := range p.closed {
		if call(unix.SYS_CLOSE_RANGE, r.first, r.last, 0, 0) != 0 {
			return false
		}
	}
	return true
}

// harnessEnds waits until the harness has exited, the runner has something to
// say or is dead, or the plan's patience is over. It tells the first, alone.
//
//go:nosplit
//go:noinline
//go:norace
//go:nocheckptr
func harnessEnds(p *forkPlan, harness uintptr) bool {
	if p.patience == (unix.Timespec{}) {
		return false
	}
	fd, _, errno := syscall.RawSyscall(unix.SYS_PIDFD_OPEN, harness, 0, 0)
	if errno != 0 {
		return false
	}
	runner, exit := &p.heard[0], &p.heard[1]
	runner.Fd, runner.Events = int32(p.passed[0]), unix.POLLIN
	exit.Fd, exit.Events = int32(fd), unix.POLLIN
	call(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p.heard)), uintptr(len(p.heard)), uintptr(unsafe.Pointer(&p.patience)), 0)
	return exit.Revents != 0 && runner.Revents == 0 && onlyOneChild(p)
}

// onlyOneChild tells that this process has one child at most, by the kernel's list
// of them, which needs CONFIG_PROC_CHILDREN: numbers with a blank behind each. Once
// the harness has exited that is the harness, and nothing has been left.
//
//go:nosplit
//go:noinline
//go:norace
//go:nocheckptr
func onlyOneChild(p *forkPlan) bool {
	fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, atCWD, uintptr(unsafe.Pointer(p.children)), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return false
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&p.list)), unsafe.Sizeof(p.list))
	call(unix.SYS_CLOSE, fd, 0, 0, 0)
	if errno != 0 || n >= unsafe.Sizeof(p.list) {
		return false
	}
	blanks := 0
	for _, c := range p.list[:n] {
		if c == ' ' {
			blanks++
		}
	}
	return blanks <= 1
}

// becomeGuardian executes this program; it returns where that has failed.
//
//go:nosplit
//go:noinline
//go:norace
//go:nocheckptr
func becomeGuardian(p *forkPlan) {
	for _, fd := range p.passed {
		if fd >= 0 {
			call(unix.SYS_FCNTL, uintptr(fd), unix.F_SETFD, 0, 0)
		}
	}
	p.outcome.guardianErr = call(unix.SYS_EXECVE, uintptr(unsafe.Pointer(p.guardPath)),
		uintptr(unsafe.Pointer(p.guardArgv)), uintptr(unsafe.Pointer(p.guardEnv)), 0)
	if p.forsake {
		harness := uintptr(p.outcome.harness)
		call(unix.SYS_KILL, -harness, uintptr(unix.SIGKILL), 0, 0)
		call(unix.SYS_KILL, harness, uintptr(unix.SIGKILL), 0, 0)
		call(unix.SYS_WAIT4, harness, 0, unix.WALL, 0)
	}
}

// harnessChild is the harness's life before its exec. It does not return.
//
//lint:ignore U1000 assembly calls it
//go:nosplit
//go:noinline
//go:norace
//go:nocheckptr
func harnessChild(p *forkPlan) {
	errno := call(unix.SYS_SETSID, 0, 0, 0, 0)
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		call(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&p.action)), 0, sigsetBytes)
	}
	if errno == 0 && p.dir != nil {
		errno = call(unix.SYS_CHDIR, uintptr(unsafe.Pointer(p.dir)), 0, 0, 0)
	}
	for i, fd := range p.fds {
		if errno == 0 {
			errno = call(unix.SYS_DUP3, uintptr(fd), uintptr(i), 0, 0)
		}
	}
	if p.files.Max != 0 {
		call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&p.files)), 0)
	}
	call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&p.mask)), 0, sigsetBytes)
	if errno == 0 {
		errno = call(unix.SYS_EXECVE, uintptr(unsafe.Pointer(p.path)),
			uintptr(unsafe.Pointer(p.argv)), uintptr(unsafe.Pointer(p.env)), 0)
	}
	p.outcome.harnessErr = errno
	leave(forkFailed)
}
