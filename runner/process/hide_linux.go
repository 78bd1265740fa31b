package process

import "golang.org/x/sys/unix"

// Hide makes this process undumpable: what a child of the same account could
// read in /proc of it, its environment at the start above all, only root can
// read then. [Open] does the same. Elsewhere than on Linux it does nothing.
func Hide() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
