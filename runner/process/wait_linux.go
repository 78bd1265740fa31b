package process

import (
	"os"
	"os/signal"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Codes of a SIGCHLD that waitid gives (waitid(2)).
const (
	cldExited  = 1
	cldKilled  = 2
	cldDumped  = 3
	cldStopped = 5
)

// childInfo is the part of siginfo_t that waitid fills in.
type childInfo struct {
	code   int
	pid    int
	status int
}

func (c childInfo) exit() Exit {
	if c.code == cldKilled || c.code == cldDumped {
		return Exit{Signal: c.status, Signaled: true}
	}
	return Exit{Code: c.status}
}

// waitid calls waitid(2) and never blocks unless options leave WNOHANG out. A
// pid of 0 says that there are such children and that none has changed.
func waitid(idType, id, options int) (childInfo, error) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(idType, id, &info, options|unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return childInfo{}, err
		}
		break
	}
	// struct { signo, errno, code int32; [padding]; pid, uid, status int32 }
	at := 3 * unsafe.Sizeof(int32(0))
	if align := unsafe.Sizeof(uintptr(0)); at%align != 0 {
		at += align - at%align
	}
	field := func(i uintptr) int {
		return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), at+i*unsafe.Sizeof(int32(0)))))
	}
	return childInfo{code: int(info.Code), pid: field(0), status: field(2)}, nil
}

// peek tells the exit of a child without reaping it. gone is true where pid is
// no child of this process.
func peek(pid int) (info childInfo, exited, gone bool) {
	info, err := waitid(unix.P_PID, pid, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT)
	return info, err == nil && info.pid == pid, err == unix.ECHILD
}

// peekAny gives one exited child without reaping it. none is true where this
// process has no child at all, dead or alive.
func peekAny() (pid int, none bool) {
	info, err := waitid(unix.P_ALL, 0, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT)
	if err != nil {
		return 0, err == unix.ECHILD
	}
	return info.pid, false
}

// reap takes an exited child away; false where it has not exited. It names the
// child: a wait for any child would take those of an embedding program.
func reap(pid int) bool {
	info, err := waitid(unix.P_PID, pid, unix.WEXITED|unix.WNOHANG)
	return err != nil || info.pid == pid
}

// reapWithin reaps a child that is about to exit; false where it has not by
// then.
func reapWithin(pid int, d time.Duration) bool {
	if reap(pid) {
		return true
	}
	children := watchChildren()
	defer unwatch(children)
	bound := time.NewTimer(d)
	defer bound.Stop()
	for !reap(pid) {
		select {
		case <-children:
		case <-bound.C:
			return reap(pid)
		}
	}
	return true
}

// watchChildren subscribes to SIGCHLD: before the fork, so that none is missed.
func watchChildren() chan os.Signal {
	catchChildren()
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	return children
}

func unwatch(children chan os.Signal) { signal.Stop(children) }

// catchChildren catches SIGCHLD for the life of this process: os/signal hands
// the first subscription of a signal and the end of the last one to a thread
// that it keeps for that, and waits for it. To whom the signal means nothing it
// means nothing still.
var catchChildren = sync.OnceFunc(func() { signal.Notify(forgotten, unix.SIGCHLD) })

// withEmptyMask runs f on a thread that blocks no signal: a child takes the
// mask of the thread that forks, and Go's threads keep what the launcher had.
func withEmptyMask(f func()) { withMask(unix.Sigset_t{}, f) }

// withFullMask runs f on a thread that blocks every signal. A Go program that
// is started so keeps those blocked that do not end it (and not SIGCHLD).
func withFullMask(f func()) {
	var full unix.Sigset_t
	for i := range full.Val {
		full.Val[i] = ^full.Val[i]
	}
	withMask(full, f)
}

func withMask(mask unix.Sigset_t, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &mask, &old); err == nil {
		defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	}
	f()
}

// kernelSigaction is the start of the kernel's struct sigaction, which on
// every platform is large enough for a query: handler, flags, restorer, mask.
type kernelSigaction struct {
	handler uintptr
	rest    [7]uint64
}

const (
	sigDefault = 0
	sigIgnore  = 1
	// sigsetBytes is the size that rt_sigaction wants to be told.
	sigsetBytes = 8
	// firstRuntime to lastRuntime are kept for C libraries: Go neither
	// installs a handler for them nor lets a program catch them.
	firstRuntime, lastRuntime unix.Signal = 32, 34
)

// inheritable are the signals for which Go installs no handler at the start,
// or none where the launcher had them ignored. For all others it does, and
// exec resets a handler to the default.
var inheritable = [...]unix.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGCONT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU,
	firstRuntime, firstRuntime + 1, lastRuntime,
}

// undoIgnored makes every signal that the launcher had set to be ignored one
// that this process catches and forgets. For this process that is the same;
// exec resets a caught signal to its default, and an ignored one stays ignored
// in the child.
func undoIgnored() {
	for _, sig := range inheritable {
		var act kernelSigaction
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&act)), sigsetBytes, 0, 0)
		if errno != 0 || act.handler != sigIgnore {
			continue
		}
		if sig >= firstRuntime && sig <= lastRuntime {
			dispose(sig, sigDefault)
			continue
		}
		signal.Notify(forgotten, sig)
	}
}

// ignore has this process ignore a signal, and what it starts, past os/signal,
// whose first use for a signal costs a change of threads.
func ignore(sig unix.Signal) { dispose(sig, sigIgnore) }

func dispose(sig unix.Signal, handler uintptr) {
	act := kernelSigaction{handler: handler}
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, sigsetBytes, 0, 0)
}

// forgotten is where caught signals go that mean nothing: it is never read,
// and os/signal drops what does not fit.
var forgotten = make(chan os.Signal, 1)
