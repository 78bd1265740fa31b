package process

import (
	"os"

	"golang.org/x/sys/unix"
)

func makePipe() (r, w int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, os.NewSyscallError("pipe2", err)
	}
	for i := range p {
		if p[i], err = aside(p[i]); err != nil {
			unix.Close(p[1-i])
			return -1, -1, os.NewSyscallError("fcntl", err)
		}
	}
	return p[0], p[1], nil
}
