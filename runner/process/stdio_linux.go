package process

import (
	"errors"
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

// ErrNotNow is returned by [WriteNow] where a file cannot be written without
// the risk of blocking, now or ever.
var ErrNotNow = errors.New("the file cannot be written without blocking")

// WriteNow writes as much of p as f takes without blocking, and leaves the
// flags of f alone, which may be shared (pwritev2(2), RWF_NOWAIT). n may be
// short without an error. Pipes and sockets can do it, on kernels that can.
func WriteNow(f *os.File, p []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, ErrNotNow
	}
	const currentOffset = -1
	controlErr := raw.Control(func(fd uintptr) {
		for {
			n, err = unix.Pwritev2(int(fd), [][]byte{p}, currentOffset, unix.RWF_NOWAIT)
			if err != unix.EINTR {
				return
			}
		}
	})
	switch {
	case controlErr != nil:
		return 0, controlErr
	case err == unix.EAGAIN:
		return 0, nil
	case err == unix.EOPNOTSUPP || err == unix.ENOSYS || err == unix.EINVAL:
		return 0, ErrNotNow
	case err != nil:
		return 0, os.NewSyscallError("write", err)
	}
	return n, nil
}
