//go:build !(amd64 || arm64) || forkcopy

package process

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forkFlags: a child has a copy of this process's memory, and the thread that
// has forked waits as with vfork(2). That needs no assembly, and takes longer.
const forkFlags = unix.CLONE_VFORK

// forkGuardian forks the guardian. In the child it goes on with guardianChild
// and never comes back; in the parent it gives the child's number, or an
// error's as a negative one.
//
//go:nosplit
//go:noinline
//go:norace
func forkGuardian(number, a1, a2, a3 uintptr, p *forkPlan) int {
	pid := forkCopy(number, a1, a2, a3)
	if pid == 0 {
		guardianChild(p)
	}
	return pid
}

// forkHarness is the same for the harness.
//
//go:nosplit
//go:noinline
//go:norace
func forkHarness(number, a1, a2, a3 uintptr, p *forkPlan) int {
	pid := forkCopy(number, a1, a2, a3)
	if pid == 0 {
		harnessChild(p)
	}
	return pid
}

//go:nosplit
//go:norace
func forkCopy(number, a1, a2, a3 uintptr) int {
	if runtime.GOARCH == "s390x" && number == unix.SYS_CLONE {
		a1, a2 = a2, a1 // clone(2), "C library/kernel differences"
	}
	pid, _, errno := syscall.RawSyscall6(number, a1, a2, a3, 0, 0, 0)
	if errno != 0 {
		return -int(errno)
	}
	return int(pid)
}

// newOutcome gives memory that stays shared after a fork. Like the fork that it
// belongs to it is never given back.
func newOutcome() (*outcome, error) {
	page, err := unix.MmapPtr(-1, 0, nil, unsafe.Sizeof(outcome{}), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	return (*outcome)(page), err
}
