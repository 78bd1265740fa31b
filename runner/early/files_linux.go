package early

import "unsafe"

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

func read() Limit {
	var l Limit
	number := calls().limit
	if number == 0 || call(number, 0, resourceFiles, 0, uintptr(unsafe.Pointer(&l))) != 0 {
		return Limit{}
	}
	return l
}
