package process

import "golang.org/x/sys/unix"

// Hide makes this process undumpable: a process of the same user that has no
// privileges cannot read its memory or the environment that it was started
// with. It is for a program that starts runners and has a token.
func Hide() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// Options change how a [Supervisor] works. The zero value is right for every
// caller: the fields are switches that the tests of this package use to show
// that a child does live where a protection is off.
type Options struct {
	noGuardian  bool // parent of the harness is this process
	noCgroup    bool // no cgroup leaf
	noSubreaper bool // orphans go to init
	noSweep     bool // only the process group is ended
}
