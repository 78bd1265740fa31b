package early

import (
	"runtime"
	_ "unsafe" // for linkname
)

// rawSyscall6 is syscall.RawSyscall6, which needs no initialisation. Go keeps
// the name and its form for those who link to it.
//
//go:linkname rawSyscall6 syscall.RawSyscall6
//go:noescape
func rawSyscall6(number, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2, errno uintptr)

// call makes a system call and gives its error's number, 0 where it worked.
func call(number, a1, a2, a3, a4 uintptr) uintptr {
	_, _, errno := rawSyscall6(number, a1, a2, a3, a4, 0, 0)
	return errno
}

// numbers are those of the system calls that are made here, prlimit64, prctl,
// rt_sigprocmask and rt_sigaction: the constants of package syscall would bring its
// initialisation along. They are 0 where they are not known here.
type numbers struct{ limit, control, mask, action uintptr }

func calls() numbers {
	switch runtime.GOARCH {
	case "amd64":
		return numbers{302, 157, 14, 13}
	case "arm64", "riscv64", "loong64":
		return numbers{261, 167, 135, 134}
	case "386":
		return numbers{340, 172, 175, 174}
	case "arm":
		return numbers{369, 172, 175, 174}
	case "ppc64", "ppc64le":
		return numbers{325, 171, 174, 173}
	case "s390x":
		return numbers{334, 172, 175, 174}
	}
	return numbers{}
}
