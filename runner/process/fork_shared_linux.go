//go:build (amd64 || arm64) && !forkcopy

package process

import "golang.org/x/sys/unix"

// forkFlags are those of vfork(2): a child uses this process's memory, and the
// thread that has forked waits until the child has executed its program or is
// gone. So nothing is copied, and nothing faults afterwards.
const forkFlags = unix.CLONE_VM | unix.CLONE_VFORK

// forkGuardian and forkHarness make the system call number, clone(2) or
// clone3(2), with three arguments. In the child they go on with guardianChild,
// on the stack of the thread that waits, or with harnessChild, on the stack that
// the call gives it, and never come back. In the parent they give the child's
// number, or an error's as a negative one.
//
//go:noescape
func forkGuardian(number, a1, a2, a3 uintptr, p *forkPlan) int

//go:noescape
func forkHarness(number, a1, a2, a3 uintptr, p *forkPlan) int

func newOutcome() (*outcome, error) { return new(outcome), nil }
