package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// ioctlReadable asks for the bytes that wait in a pipe (FIONREAD, ioctl(2)).
const ioctlReadable = unix.TIOCINQ

// EnlargePipe gives the pipe behind f room for size bytes, as far as the
// system allows it (fcntl(2), F_SETPIPE_SZ; without privileges at most
// /proc/sys/fs/pipe-max-size). It never makes a pipe smaller and does nothing
// where f is no pipe.
func EnlargePipe(f *os.File, size int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if have, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && have < size {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size)
		}
	})
}
