package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Patience of a runner with its guardian. answerBound is how long an exec may
// take, or a guardian need for its own start on a loaded machine; lateBound is
// how long after the hard bound its last word may be late; sendBound how long
// a message to it may wait; deathBound how long its death after SIGKILL.
const (
	answerBound = 30 * time.Second
	lateBound   = 2 * time.Second
	sendBound   = time.Second
	deathBound  = 2 * time.Second
)

// guardianEnv is a guardian's whole environment: what keeps a Go program that
// does next to nothing small. See doc.go for what it costs.
var guardianEnv = []string{"GOMAXPROCS=1", "GOGC=50", "GOTRACEBACK=none"}

// errGuardianGone says that the guardian had died before it was asked to start
// anything.
var errGuardianGone = errors.New("the guardian is gone")

// guardian is the runner's side of a guardian.
type guardian struct {
	pid     int
	control *os.File // non-blocking
	dead    sync.Once
}

// startGuardian starts this program once more as a guardian, in a session of
// its own, so that neither the terminal nor the launcher's group kill reaches
// it, and with all signals blocked. It takes no descriptor of ours along but
// its end of the control stream.
func startGuardian(leafName string) (*guardian, error) {
	if !mainCalled.Load() {
		return nil, errors.New("this program's main does not begin with process.Main")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	defer unix.Close(pair[1])
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(null)
		err = unix.SetNonblock(pair[0], true)
	}
	if err != nil {
		unix.Close(pair[0])
		return nil, err
	}
	var pid int
	withFullMask(func() {
		pid, err = owned.birth(func() (int, error) {
			fd := uintptr(null)
			return syscall.ForkExec("/proc/self/exe", []string{guardianName, leafName}, &syscall.ProcAttr{
				Env:   guardianEnv,
				Files: []uintptr{fd, fd, fd, uintptr(pair[1])},
				Sys:   &syscall.SysProcAttr{Setsid: true},
			})
		})
	})
	if err != nil {
		unix.Close(pair[0])
		return nil, fmt.Errorf("start this program once more: %w", err)
	}
	return &guardian{pid: pid, control: os.NewFile(uintptr(pair[0]), "guardian")}, nil
}

// kill ends the guardian: its number is ours until reap.
func (g *guardian) kill() { unix.Kill(g.pid, unix.SIGKILL) }

// stopped tells that somebody has stopped the guardian.
func (g *guardian) stopped() bool {
	info, err := waitid(unix.P_PID, g.pid, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT)
	return err == nil && info.pid == g.pid && info.code == cldStopped
}

// bury kills and reaps the guardian. What it was the parent of is then this
// process's.
func (g *guardian) bury() {
	g.dead.Do(func() {
		g.kill()
		reapWithin(g.pid, deathBound)
		g.control.Close()
		owned.remove(g.pid)
	})
}

// end lets an idle guardian go.
func (g *guardian) end() error {
	var err error
	g.dead.Do(func() {
		g.control.Close()
		if !reapWithin(g.pid, closeBound) {
			g.kill()
			if !reapWithin(g.pid, deathBound) {
				err = fmt.Errorf("expected the guardian %d to end, it lives", g.pid)
			}
		}
		owned.remove(g.pid)
	})
	return err
}

// sendLaunch sends a launch with its descriptors. sent is false where nothing
// has reached the guardian.
func (g *guardian) sendLaunch(message []byte, fds []int) (sent bool, err error) {
	raw, err := g.control.SyscallConn()
	if err != nil {
		return false, err
	}
	g.control.SetWriteDeadline(time.Now().Add(answerBound))
	head := message[:headerBytes]
	rights := unix.UnixRights(fds...)
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		sendErr = unix.Sendmsg(int(fd), head, rights, nil, unix.MSG_NOSIGNAL)
		return sendErr != unix.EAGAIN
	})
	if err = errors.Join(err, sendErr); err != nil {
		return false, err
	}
	_, err = g.control.Write(message[headerBytes:])
	return true, err
}

// startGuarded has the guardian start the harness.
func (s *Supervisor) startGuarded(l launch, c *Child) error {
	g := s.guard
	l.leaf = s.leaf
	sent, err := g.sendLaunch(packLaunch(l, s.opts), l.descriptors())
	if !sent {
		g.bury()
		s.note(fmt.Sprintf("guardian: it has died: %v", err))
		return errGuardianGone
	}
	var kind byte
	var u *unpacker
	if err == nil {
		g.control.SetReadDeadline(time.Now().Add(answerBound))
		kind, u, err = readMessage(g.control)
		g.control.SetReadDeadline(time.Time{})
	}
	switch {
	case err == nil && kind == msgFailed:
		return syscall.Errno(u.int())
	case err == nil && kind == msgStarted:
		b := unpackBirth(u)
		if b.inLeaf {
			s.leaf.close() // it is the guardian's
		} else {
			s.refuseLeaf()
		}
		c.pid = b.pid
		go (&proxy{s: s, guard: g, child: c, born: b}).run()
		return nil
	}
	// Whether it has started the harness is not known. Nothing may be left
	// of it, and it must not be started twice.
	g.bury()
	t := newTree(newOrder(), func(Exit) {})
	t.children, t.leaf, t.exitSeen = watchChildren(), s.leaf, true
	s.leaf = nil
	t.since = startOf(t.proc, t.self)
	t.order.give(0)
	t.run()
	return &StartError{Reason: fmt.Sprintf("the guardian died while it was starting it: %v", err), Err: err}
}

// proxy stands for a tree that a guardian watches, and takes it over when the
// guardian dies.
type proxy struct {
	s     *Supervisor
	guard *guardian
	child *Child
	born  birth

	exitSeen bool
}

type said struct {
	kind byte
	body *unpacker
}

func (p *proxy) run() {
	children := watchChildren()
	words := make(chan said)
	quit := make(chan struct{})
	defer close(quit)
	go p.listen(words, quit)
	late := time.NewTimer(0)
	<-late.C
	for {
		select {
		case w, ok := <-words:
			if !ok {
				p.takeOver(children)
				return
			}
			if result, gone := p.heard(w); gone {
				unwatch(children)
				result.Means = p.s.means(p.born.inLeaf, true)
				p.s.finish(p.child, result)
				return
			}
		case <-children:
			// A guardian that somebody stopped would leave the harness
			// unwatched. It is of no use any more.
			if p.guard.stopped() {
				p.guard.kill()
			}
		case <-p.child.order.changed:
			left := p.child.order.left()
			late.Reset(left + hardBound + lateBound)
			p.guard.control.SetWriteDeadline(time.Now().Add(sendBound))
			if _, err := p.guard.control.Write(packStop(left)); err != nil {
				p.guard.kill()
			}
		case <-late.C:
			p.guard.kill()
		}
	}
}

// listen reads until the guardian is gone; then it closes words.
func (p *proxy) listen(words chan<- said, quit <-chan struct{}) {
	defer close(words)
	for {
		kind, body, err := readMessage(p.guard.control)
		if err != nil {
			return
		}
		select {
		case words <- said{kind, body}:
		case <-quit:
			return
		}
	}
}

func (p *proxy) heard(w said) (result Containment, gone bool) {
	switch w.kind {
	case msgExited:
		p.exitSeen = true
		p.child.sawExit(unpackExit(w.body))
	case msgGone:
		return unpackGone(w.body), true
	}
	return Containment{}, false
}

// takeOver goes on in this process where the guardian has stopped. Everything
// that the guardian was the parent of is now ours, the leader too, alive or
// not yet reaped: its exit is still the true one.
func (p *proxy) takeOver(children chan os.Signal) {
	p.guard.bury()
	p.s.note("guardian: it died while the harness ran; the runner has taken over")
	t := newTree(p.child.order, p.child.sawExit)
	t.children = children
	t.leader, t.since = p.born.pid, p.born.since
	t.exitSeen, t.sweepOff = p.exitSeen, p.s.opts.noSweep
	if p.born.inLeaf {
		t.leaf = adoptLeaf(p.s.leafName)
	}
	if _, _, gone := peek(t.leader); gone {
		t.exitSeen, t.reaped = true, true
	} else {
		owned.birth(func() (int, error) { return t.leader, nil })
		defer owned.remove(t.leader)
	}
	// An order that the guardian had is the tree's now.
	if _, given := t.order.until(); given {
		t.order.again()
	}
	means := p.s.means(t.leaf != nil, false)
	result := t.run()
	adoptLeaf(p.s.leafName).remove() // one that was busy
	result.Means = means
	p.s.finish(p.child, result)
}
