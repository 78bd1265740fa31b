package early

import "unsafe"

// Operations of prctl(2).
const (
	setDumpable       = 4
	setName           = 15
	getChildSubreaper = 37
)

// sigsetBytes is the size that rt_sigprocmask and rt_sigaction want to be told.
const sigsetBytes = 8

// Ignored are the signals that end a program and that Go does not let it block:
// SIGHUP, SIGINT, SIGQUIT, SIGABRT and SIGTERM (signal(7)).
var Ignored = [...]uintptr{1, 2, 3, 6, 15}

// action is the start of struct sigaction, and no shorter than any: handler, flags,
// restorer, mask. The handler is SIG_IGN.
type action struct {
	handler uintptr
	_       [7]uint64
}

// blocked are SIGUSR1, SIGUSR2 and SIGALRM, whose numbers are the same on all
// platforms of which the system calls are known here.
const blocked = 1<<(10-1) | 1<<(12-1) | 1<<(14-1)

// GuardianName is what ps shows of a guardian, at most 15 bytes.
const GuardianName = "prp-guardian"

// hidden says that this process was started as a guardian: it is undumpable
// (ptrace(2), "Ptrace access mode checking"), ignores the signals that it cannot
// block, and has its name.
var hidden = hide()

// Hidden tells that this process was started as a guardian, and is out of the
// harness's reach: undumpable, deaf to all signals but SIGKILL and SIGSTOP, and
// named as what it is.
func Hidden() bool { return hidden }

// hide knows a guardian by what it has from its life before the exec and no other
// program has: it is a subreaper, and blocks the signals that Go lets a program
// block. Packages are initialised on the main thread, whose name is the process's.
func hide() bool {
	n := calls()
	if n.control == 0 {
		return false
	}
	var subreaper int32
	var mask uint64 // low signals in the low bits: of two words the first is the low one
	if call(n.control, getChildSubreaper, uintptr(unsafe.Pointer(&subreaper)), 0, 0) != 0 || subreaper != 1 {
		return false
	}
	if call(n.mask, 0, 0, uintptr(unsafe.Pointer(&mask)), sigsetBytes) != 0 || mask&blocked != blocked {
		return false
	}
	if call(n.control, setDumpable, 0, 0, 0) != 0 {
		return false
	}
	ignore := action{handler: 1}
	for _, signal := range Ignored {
		call(n.action, signal, uintptr(unsafe.Pointer(&ignore)), 0, sigsetBytes)
	}
	name := [len(GuardianName) + 1]byte([]byte(GuardianName + "\x00"))
	call(n.control, setName, uintptr(unsafe.Pointer(&name)), 0, 0)
	return true
}
