package limits

import (
	"runtime"
	_ "unsafe" // for linkname
)

// Limit is a struct rlimit64 of prlimit(2).
type Limit struct {
	Cur, Max uint64
}

// resourceFiles is RLIMIT_NOFILE, which is another number on some platforms.
const resourceFiles = 7

// original is the limit at the start, both members 0 where it is not known.
var original = read()

// OpenFiles is the limit of open files (RLIMIT_NOFILE) at the start of this
// program; ok is false where it could not be read.
func OpenFiles() (l Limit, ok bool) { return original, original != Limit{} }

// callNumber is that of prlimit64: the constants of package syscall would bring
// its initialisation along. It is 0 where it is not known here.
func callNumber() uintptr {
	switch runtime.GOARCH {
	case "amd64":
		return 302
	case "arm64", "riscv64", "loong64":
		return 261
	case "386":
		return 340
	case "arm":
		return 369
	case "ppc64", "ppc64le":
		return 325
	case "s390x":
		return 334
	}
	return 0
}

func read() Limit {
	var l Limit
	number := callNumber()
	if number == 0 || !get(number, &l) {
		return Limit{}
	}
	return l
}
