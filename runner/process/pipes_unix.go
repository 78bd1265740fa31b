//go:build unix

package process

import (
	"os"
	"syscall"
)

// pipes are the three pipes of a child.
type pipes struct {
	ours   [3]*os.File // write end of stdin, read ends of stdout and stderr
	theirs [3]*os.File // the child's ends, blocking
}

func newPipes() (*pipes, error) {
	p := new(pipes)
	for i := range p.ours {
		r, w, err := makePipe()
		if err != nil {
			p.closeOurs()
			p.closeTheirs()
			return nil, err
		}
		ours, theirs := r, w
		if i == 0 {
			ours, theirs = w, r
		}
		// Only our end is non-blocking: the two ends have separate flags.
		if err := syscall.SetNonblock(ours, true); err != nil {
			syscall.Close(ours)
			syscall.Close(theirs)
			p.closeOurs()
			p.closeTheirs()
			return nil, os.NewSyscallError("fcntl", err)
		}
		names := [...]string{"harness stdin", "harness stdout", "harness stderr"}
		p.ours[i] = os.NewFile(uintptr(ours), names[i])
		p.theirs[i] = os.NewFile(uintptr(theirs), names[i])
	}
	return p, nil
}

// fds are the child's ends in the order 0, 1, 2. They stay p's.
func (p *pipes) fds() [3]int {
	var fds [3]int
	for i, f := range p.theirs {
		fds[i] = int(f.Fd())
	}
	return fds
}

func (p *pipes) closeOurs()   { closeAll(p.ours[:]) }
func (p *pipes) closeTheirs() { closeAll(p.theirs[:]) }

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
