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

// Patience of a runner with its guardian. lateBound is how long after the hard
// bound its last word may be late; sendBound how long a message to it may wait;
// deathBound how long its death after SIGKILL.
const (
	lateBound  = 2 * time.Second
	sendBound  = time.Second
	deathBound = 2 * time.Second
)

// ownProgram is the file of this program, also where that has been replaced or
// deleted since.
const ownProgram = "/proc/self/exe"

// guardianEnv is a guardian's whole environment: what keeps a Go program that
// does next to nothing small. See doc.go for what it costs.
var guardianEnv = []string{"GOMAXPROCS=1", "GOGC=50", "GOTRACEBACK=none"}

// guardian is the runner's side of a guardian.
type guardian struct {
	pid     int
	control *os.File // non-blocking
	dead    sync.Once
}

// guardable says why there can be no guardian here; nil where there can.
func guardable() error {
	if !mainCalled.Load() {
		return errors.New("this program's main does not begin with process.Main")
	}
	if err := unix.Access(ownProgram, unix.X_OK); err != nil {
		return fmt.Errorf("this program cannot start itself: %s: %w", ownProgram, err)
	}
	return nil
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

// startGuarded starts the harness below a guardian, which is in a session of
// its own, so that neither the terminal nor the launcher's group kill reaches
// it, has all signals blocked, and takes no descriptor of ours along but its
// end of the control stream and the leaf's.
func (s *Supervisor) startGuarded(l launch, c *Child) error {
	ours, theirs, err := controlStream()
	if err != nil {
		return err
	}
	defer unix.Close(theirs)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		null, err = aside(null)
	}
	if err != nil {
		unix.Close(ours)
		return err
	}
	defer unix.Close(null)
	l.leaf = s.leaf
	p := &proxy{
		s: s, child: c, guard: &guardian{control: os.NewFile(uintptr(ours), "guardian")},
		words: make(chan said), quit: make(chan struct{}),
		children: watchChildren(), // before the fork, so that no death is missed
	}
	go p.listen()
	p.born.inLeaf, err = l.try(func(inLeaf bool) error {
		_, err := owned.birth(func() (int, error) {
			f, err := newFork(l, s.opts, inLeaf, theirs, null)
			if err != nil {
				return 0, err
			}
			keepFork(f)
			f.plan.forsake = !s.subreaper
			if s.subreaper {
				f.plan.patience = unix.NsecToTimespec(int64(s.opts.patience()))
			}
			return p.start(f)
		})
		return err
	})
	if err != nil {
		unwatch(p.children)
		close(p.quit)
		p.guard.control.Close()
		return err
	}
	c.pid = p.born.pid
	if proc := openProc(); proc != nil {
		p.born.since = startOf(proc, p.born.pid)
		proc.close()
	}
	if p.born.inLeaf {
		s.leaf.close() // it is the guardian's
	} else {
		s.refuseLeaf()
	}
	s.guard = p.guard
	go p.run()
	return nil
}

// start forks. It gives the guardian's number, or the error that there is no
// harness for.
func (p *proxy) start(f *fork) (int, error) {
	f.run(p.words, p.children)
	p.over, p.outcome = f.over, f.plan.outcome
	p.guard.pid = int(p.outcome.guardianNumber())
	p.born.pid = int(p.outcome.harness)
	select {
	case <-f.over:
		if f.pid < 0 {
			return 0, syscall.Errno(-f.pid)
		}
		if err := p.outcome.failure(); err != nil {
			p.guard.kill() // it has nothing to guard
			reapWithin(f.pid, deathBound)
			return 0, err
		}
	default:
	}
	return p.guard.pid, nil
}

// controlStream makes the stream between this process, whose end does not
// block, and a guardian.
func controlStream() (ours, theirs int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	if theirs, err = aside(pair[1]); err != nil {
		unix.Close(pair[0])
		return -1, -1, err
	}
	if err = unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		unix.Close(theirs)
		return -1, -1, err
	}
	return pair[0], theirs, nil
}

// failure is why there is no harness; nil where there is one.
func (o *outcome) failure() error {
	switch {
	case o.harnessErr != 0:
		return syscall.Errno(o.harnessErr)
	case o.harness == 0:
		return errors.New("the guardian was killed before it could start it")
	}
	return nil
}

// proxy stands for a tree that a guardian watches, and takes it over when the
// guardian dies or leaves it.
type proxy struct {
	s     *Supervisor
	guard *guardian
	child *Child
	born  birth

	over     chan struct{} // of the fork, nil once that has been heard
	outcome  *outcome      // of the fork, whole once that is over
	words    chan said     // closed when the guardian is gone
	quit     chan struct{} // ends who listens
	children chan os.Signal

	asked    bool // the guardian has been told whom to watch
	exitSeen bool
}

type said struct {
	kind byte
	body *unpacker
}

func (p *proxy) run() {
	defer close(p.quit)
	late := time.NewTimer(0)
	<-late.C
	for {
		select {
		case <-p.over:
			p.over = nil
			if p.abandoned() {
				p.takeOver()
				return
			}
			p.ask()
		case w, ok := <-p.words:
			if !ok {
				p.died()
				p.takeOver()
				return
			}
			if result, gone := p.heard(w); gone {
				result.Means = p.s.means(p.born.inLeaf, true)
				p.s.finish(p.child, result)
				unwatch(p.children)
				return
			}
		case <-p.children:
			// A guardian that somebody stopped would leave the harness
			// unwatched. It is of no use any more.
			if p.guard.stopped() {
				p.guard.kill()
			}
		case <-p.child.order.changed:
			left := p.child.order.left()
			late.Reset(left + hardBound + lateBound)
			p.ask()
			p.say(packStop(left))
		case <-late.C:
			p.guard.kill()
		}
	}
}

// ask tells the guardian whom to watch. One that has not executed its program
// yet does so then.
func (p *proxy) ask() {
	if !p.asked {
		p.asked = true
		p.say(packWatch(p.born, p.s.opts))
	}
}

// say sends a message to the guardian. Where it has died the proxy hears that.
func (p *proxy) say(message []byte) {
	p.guard.control.SetWriteDeadline(time.Now().Add(sendBound))
	if _, err := p.guard.control.Write(message); err != nil {
		p.guard.kill()
	}
}

// abandoned tells that the fork is over and has made no guardian.
func (p *proxy) abandoned() bool {
	if err := syscall.Errno(p.outcome.guardianErr); err != 0 {
		p.s.note(fmt.Sprintf("guardian: it could not be executed: %v", err))
	}
	return p.outcome.left != 0 || p.outcome.guardianErr != 0
}

// died notes the end of a guardian that should have lived.
func (p *proxy) died() {
	if p.over != nil {
		<-p.over
		if p.abandoned() {
			return
		}
	}
	p.s.note("guardian: it died while the harness ran; the runner has taken over")
}

// listen reads until the guardian is gone; then it closes words.
func (p *proxy) listen() {
	defer close(p.words)
	for {
		kind, body, err := readMessage(p.guard.control)
		if err != nil {
			return
		}
		select {
		case p.words <- said{kind, body}:
		case <-p.quit:
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
func (p *proxy) takeOver() {
	p.guard.bury()
	t := newTree(p.child.order, p.child.sawExit)
	t.children = p.children
	t.leader, t.since = p.born.pid, p.born.since
	t.exitSeen, t.sweepOff = p.exitSeen, p.s.opts.noSweep
	if p.born.inLeaf {
		t.leaf = p.s.leaf.reopen()
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
	// A guardian that has left because the harness had exited was there for all
	// of its life.
	means := p.s.means(t.leaf != nil, p.outcome.left != 0)
	result := t.run()
	result.Means = means
	p.s.finish(p.child, result)
}
