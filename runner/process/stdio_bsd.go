//go:build unix && !linux

package process

import "os"

// ioctlReadable asks for the bytes that wait in a pipe: FIONREAD of
// <sys/filio.h>, which golang.org/x/sys does not name on all systems.
const ioctlReadable = 0x4004667f

// EnlargePipe does nothing: the system sizes its pipes itself.
func EnlargePipe(*os.File, int) {}
