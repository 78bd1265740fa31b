//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// ErrSettled is returned by [Input.Read] once everything that had come when
// Settle was called has been read.
var ErrSettled = errors.New("everything that had come is read")

// settleReads bounds the reads after Settle, so that a writer that never
// pauses cannot keep it from being answered.
const settleReads = 4096

// Input reads a file that somebody else owns (the runner's stdin): it leaves
// the file's flags alone, which may be shared with a terminal or a parent,
// and can still be asked to stop when nothing more is there.
type Input struct {
	file    *os.File
	fd      int32
	wake    [2]int
	settled atomic.Bool
	reads   int
}

// NewInput returns a reader for f. Reads are for one goroutine.
func NewInput(f *os.File) *Input {
	in := &Input{file: f, fd: descriptor(f), wake: [2]int{-1, -1}}
	if err := unix.Pipe(in.wake[:]); err != nil {
		// Without a pipe to be woken by it reads plainly and never settles.
		in.wake = [2]int{-1, -1}
		return in
	}
	unix.CloseOnExec(in.wake[0])
	unix.CloseOnExec(in.wake[1])
	return in
}

// descriptor is the number of f, which stays open. os.File.Fd would change the
// flags of a file that is shared with others.
func descriptor(f *os.File) int32 {
	number := int32(-1)
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { number = int32(fd) })
	}
	return number
}

// Settle makes the reader return [ErrSettled] once it has read what is there
// now. It returns at once and reports false where it cannot do that. It may be
// called from another goroutine than Read, once.
func (in *Input) Settle() bool {
	if in.wake[1] < 0 {
		return false
	}
	in.settled.Store(true)
	_, err := unix.Write(in.wake[1], []byte{0})
	return err == nil
}

// Read reads what there is and blocks while there is nothing.
func (in *Input) Read(p []byte) (int, error) {
	if in.wake[0] < 0 {
		return in.file.Read(p)
	}
	for {
		timeout := -1
		if in.settled.Load() {
			timeout = 0
			if in.reads++; in.reads > settleReads {
				return 0, ErrSettled
			}
		}
		fds := []unix.PollFd{{Fd: in.fd, Events: unix.POLLIN}, {Fd: int32(in.wake[0]), Events: unix.POLLIN}}
		if timeout == 0 {
			fds = fds[:1]
		}
		n, err := unix.Poll(fds, timeout)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, os.NewSyscallError("poll", err)
		case n == 0:
			return 0, ErrSettled
		case fds[0].Revents == 0:
			continue // woken: settled is set now
		}
		return in.read(p)
	}
}

// read reads once; a file that was made non-blocking by somebody else and has
// nothing after all is polled again.
func (in *Input) read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(in.fd), p)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return in.Read(p)
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// WatchHangup returns a channel that is closed when nobody can read from f any
// more, also while nothing is written. On Linux that is known for pipes,
// sockets and terminals; where it cannot be known the channel stays open. The
// goroutine behind it ends with the process.
func WatchHangup(f *os.File) <-chan struct{} {
	gone := make(chan struct{})
	fd := descriptor(f)
	go func() {
		for {
			fds := []unix.PollFd{{Fd: fd, Events: 0}}
			_, err := unix.Poll(fds, -1)
			if err == unix.EINTR {
				continue
			}
			if err != nil || fds[0].Revents&unix.POLLNVAL != 0 {
				return
			}
			if fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				close(gone)
				return
			}
			// Nothing that we asked for; a system that returns early must
			// not make this spin.
			time.Sleep(time.Second)
		}
	}()
	return gone
}

// Buffered is the number of bytes that can be read from a pipe at once, 0
// where that cannot be told.
func Buffered(f *os.File) int {
	n := 0
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	if err := raw.Control(func(fd uintptr) {
		if k, err := unix.IoctlGetInt(int(fd), ioctlReadable); err == nil {
			n = k
		}
	}); err != nil {
		return 0
	}
	return n
}
