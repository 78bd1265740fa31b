package limits

import "unsafe"

// rawSyscall6 is syscall.RawSyscall6, which needs no initialisation. Go keeps
// the name and its form for those who link to it.
//
//go:linkname rawSyscall6 syscall.RawSyscall6
//go:noescape
func rawSyscall6(number, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2, errno uintptr)

func get(number uintptr, l *Limit) bool {
	_, _, errno := rawSyscall6(number, 0, resourceFiles, 0, uintptr(unsafe.Pointer(l)), 0, 0)
	return errno == 0
}
