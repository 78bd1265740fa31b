package process

import (
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"prp/runner/early"
)

// guardianName is argv[0] of a guardian: this program, executed anew by a
// process that is the harness's parent already. Its other arguments are the name
// of the harness's cgroup leaf, which tells whose guardian it is; the leaf's
// directory, "" where there is no leaf; and the numbers of three descriptors: its
// end of the control stream, and the leaf's two, -1 where there is none.
const guardianName = early.GuardianName

// guardianArgs is how many arguments a guardian has, its own name among them.
const guardianArgs = 6

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
	case len(os.Args) == guardianArgs && os.Args[0] == guardianName:
		os.Exit(serveGuardian(os.Args[2], os.Args[3:]))
	}
}

// guarding is the guardian's side of one control stream.
type guarding struct {
	control *os.File // blocking
}

// serveGuardian is the life of a guardian. It ends once it has said that
// nothing is left. The end of the control stream, because the runner is dead,
// is an order to kill at once.
func serveGuardian(leafDir string, numbers []string) int {
	var fds [guardianArgs - 3]int
	var err error
	for i, a := range numbers {
		if fds[i], err = strconv.Atoi(a); err != nil {
			break
		}
	}
	control := fds[0]
	if err == nil {
		_, err = unix.GetsockoptInt(control, unix.SOL_SOCKET, unix.SO_TYPE)
	}
	if err != nil {
		os.Stderr.WriteString("prp-guardian: expected a control socket; only a runner starts a guardian\n")
		return 2
	}
	if !early.Hidden() {
		hide()
	}
	g := &guarding{control: os.NewFile(uintptr(control), "control")}
	t := newTree(newOrder(), func(e Exit) { g.control.Write(packExit(e)) })
	t.exclusive = true
	t.children = watchChildren()
	if leafDir != "" {
		t.leaf = &leaf{dir: leafDir, fd: fds[1], killFD: fds[2]}
	}
	kind, u, err := readMessage(g.control)
	if err == nil && kind == msgWatch {
		born, o := unpackWatch(u)
		t.leader, t.since, t.sweepOff = born.pid, born.since, o.noSweep
		if !born.inLeaf {
			t.leaf.close() // the runner takes it away
			t.leaf = nil
		}
	} else {
		// The runner has died before it could say who the leader is: whoever
		// it is, it goes.
		t.exitSeen = true
		t.order.give(0)
	}
	g.attend(t)
	return 0
}

// hide is what package early does before, where it knows the platform's calls: a
// harness of the same user could look into this process, and send any signal. Those
// that Go lets a program block are blocked from before the start on; those that it
// does not, and that end a program, are ignored.
func hide() {
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	for _, sig := range early.Ignored {
		ignore(unix.Signal(sig))
	}
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
