//go:build unix && !linux

package process

import (
	"errors"
	"os"
)

// ioctlReadable asks for the bytes that wait in a pipe: FIONREAD of
// <sys/filio.h>, which golang.org/x/sys does not name on all systems.
const ioctlReadable = 0x4004667f

// EnlargePipe does nothing: the system sizes its pipes itself.
func EnlargePipe(*os.File, int) {}

// ErrNotNow is what [WriteNow] returns here.
var ErrNotNow = errors.New("the file cannot be written without blocking")

// WriteNow is not possible here.
func WriteNow(*os.File, []byte) (int, error) { return 0, ErrNotNow }
