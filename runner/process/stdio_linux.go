package process

import "golang.org/x/sys/unix"

// ioctlReadable asks for the bytes that wait in a pipe (FIONREAD, ioctl(2)).
const ioctlReadable = unix.TIOCINQ
