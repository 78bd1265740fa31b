package process

import (
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A guardian is this program, started anew under guardianName with the name of
// the harness's cgroup leaf as the only argument. controlFD is its end of the control
// stream.
const (
	guardianName = "prp-guardian"
	controlFD    = 3
)

// largeLaunch is the size of a launch, in bytes, after which a guardian gives
// memory back to the system.
const largeLaunch = 64 << 10

// mainCalled says that this program's main begins with Main, so that it can be
// started as a guardian.
var mainCalled atomic.Bool

// Main must be the first call in main of every program that calls [Open]:
// where this process was started as a guardian it serves as one and never
// returns.
func Main() {
	mainCalled.Store(true)
	switch {
	case len(os.Args) == 1 && os.Args[0] == probeName:
		os.Exit(0)
	case len(os.Args) == 2 && os.Args[0] == guardianName:
		os.Exit(serveGuardian(os.Args[1]))
	}
}

// guarding is the guardian's side of one control stream.
type guarding struct {
	control *os.File // blocking
}

// serveGuardian is the life of a guardian. It ends once it has said that
// nothing is left, or when the control stream ends, because the runner has
// closed it or is dead.
func serveGuardian(leafName string) int {
	if _, err := unix.GetsockoptInt(controlFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		os.Stderr.WriteString("prp-guardian: expected a control socket at descriptor 3; only a runner starts a guardian\n")
		return 2
	}
	unix.CloseOnExec(controlFD)
	// A harness of the same user could send any signal. Those that Go lets a
	// program block are blocked from before the start on; those that it does
	// not, and that end a program, are caught and forgotten. The harness gets
	// an empty mask, and exec resets what is caught.
	signal.Notify(forgotten, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGTERM)
	undoIgnored()
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	os.WriteFile("/proc/self/comm", []byte(guardianName), 0) // for ps
	g := &guarding{control: os.NewFile(controlFD, "control")}
	for {
		l, o, files, size, err := g.awaitStart()
		if err != nil {
			adoptLeaf(leafName).remove() // where the runner did not live to do it
			return 0
		}
		t, err := g.start(l, o, files)
		if err != nil {
			continue
		}
		if size > largeLaunch {
			debug.FreeOSMemory()
		}
		g.attend(t)
		return 0
	}
}

// awaitStart waits for the launch. An error is the end of the runner.
func (g *guarding) awaitStart() (l launch, o Options, files []int, size int, err error) {
	head := make([]byte, headerBytes)
	rights := make([]byte, unix.CmsgSpace(launchFDs*4))
	var n, oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(controlFD, head, rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil || n != len(head) {
		return l, o, nil, 0, io.ErrUnexpectedEOF
	}
	if _, size, err = parseHeader(head); err != nil {
		return l, o, nil, 0, err
	}
	body := make([]byte, size)
	if _, err = io.ReadFull(g.control, body); err != nil {
		return l, o, nil, 0, err
	}
	l, o, err = unpackLaunch(&unpacker{rest: body})
	return l, o, parseRights(rights[:oobn]), size, err
}

// parseRights gives the descriptors that came along.
func parseRights(oob []byte) []int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil
	}
	return fds
}

// start starts the harness and answers the runner.
func (g *guarding) start(l launch, o Options, files []int) (*tree, error) {
	defer func() {
		for _, fd := range files {
			unix.Close(fd)
		}
	}()
	var pipes []int
	if pipes, l.leaf = l.claim(files); l.leaf != nil {
		files = pipes // those of the leaf are the leaf's
	}
	t := newTree(newOrder(), func(e Exit) { g.control.Write(packExit(e)) })
	t.exclusive, t.sweepOff = true, o.noSweep
	t.children = watchChildren()
	pid, inLeaf := 0, false
	var err error = syscall.EMFILE // no room here for the harness's pipes
	if len(pipes) == len(l.fds) {
		l.fds = [3]int(pipes)
		pid, inLeaf, err = spawn(l)
	}
	if err != nil {
		t.close()
		l.leaf.close()
		errno, _ := err.(syscall.Errno)
		p := newMessage(msgFailed)
		p.int(int(errno))
		g.control.Write(p.bytes())
		return nil, err
	}
	t.leader, t.since = pid, startOf(t.proc, pid)
	if inLeaf {
		t.leaf = l.leaf
	} else {
		l.leaf.close()
	}
	g.control.Write(packBirth(birth{pid: pid, since: t.since, inLeaf: inLeaf}))
	return t, nil
}

// attend runs the tree and obeys the runner. A runner that is gone is an order
// to kill at once.
func (g *guarding) attend(t *tree) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			kind, u, err := readMessage(g.control)
			if err != nil {
				t.order.give(0)
				return
			}
			if kind == msgStop {
				t.order.give(unpackStop(u))
			}
		}
	}()
	result := t.run()
	g.control.Write(packGone(result))
	if len(result.Survivors) == 0 {
		return // the runner reads on while we end
	}
	<-over
	if t.leaf != nil {
		removeCgroup(t.leaf.dir) // a survivor may have held it before
	}
}
