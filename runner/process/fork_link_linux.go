package process

import _ "unsafe" // for linkname

// enterSystemCall and exitSystemCall are those of Go's runtime around every
// system call that may block. The runtime keeps both for those who link to
// them (go.dev/issue/67401).
//
//go:linkname enterSystemCall runtime.entersyscall
func enterSystemCall()

//go:linkname exitSystemCall runtime.exitsyscall
func exitSystemCall()
