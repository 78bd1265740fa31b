//go:build unix && !linux

package process

import (
	"errors"
	"sync"
	"syscall"
	"time"
)

// Supervisor is this process's part in the containment of one child.
type Supervisor struct {
	mu       sync.Mutex
	child    *Child
	started  bool
	closed   bool
	finished chan struct{}
}

// Main does nothing on this platform: there is no guardian.
func Main() {}

// Open prepares this process. It never fails.
func Open(Options) (*Supervisor, error) {
	return &Supervisor{finished: make(chan struct{})}, nil
}

// Means names the means that are in force, strongest first.
func (s *Supervisor) Means() []string {
	if canList {
		return []string{MeanParentLinks, MeanProcessGroup}
	}
	return []string{MeanProcessGroup}
}

// Notes says which means could not be had and why.
func (s *Supervisor) Notes() []string {
	notes := []string{
		"guardian: not on this platform; a harness outlives a runner that is killed",
		"subreaper: not on this platform; an orphan that was not seen before its parent died is not found",
	}
	if !canList {
		notes = append(notes, "parent_links: not on this platform; only the process group is ended")
	}
	return notes
}

// Start starts the child. The error is a [*StartError]. A supervisor has one
// child in its life; a start that failed may be tried again.
func (s *Supervisor) Start(spec Spec) (*Child, error) {
	path, startErr := resolve(spec)
	if startErr != nil {
		return nil, startErr
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.started {
		return nil, &StartError{Name: spec.Argv[0], Reason: "the supervisor is closed or has a child already"}
	}
	p, err := newPipes()
	if err != nil {
		return nil, explainPipes(err, spec)
	}
	defer p.closeTheirs()
	c := newChild(p)
	if c.pid, err = spawn(path, spec, p.fds()); err != nil {
		p.closeOurs()
		return nil, explain(err, spec, path)
	}
	s.started, s.child = true, c
	go s.watch(c)
	return c, nil
}

// spawn forks and executes; the leader leads a session of its own.
func spawn(path string, spec Spec, fds [3]int) (pid int, err error) {
	files := []uintptr{uintptr(fds[0]), uintptr(fds[1]), uintptr(fds[2])}
	for patience := time.Now().Add(busyPatience); ; time.Sleep(busyPause) {
		pid, err = syscall.ForkExec(path, spec.Argv, &syscall.ProcAttr{
			Dir: spec.Dir, Env: spec.Env, Files: files,
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if !errors.Is(err, syscall.ETXTBSY) || time.Now().After(patience) {
			return pid, err
		}
	}
}

// Close ends what is left of the child, at once.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	c := s.child
	s.closed = true
	s.mu.Unlock()
	if c != nil {
		c.Kill()
		<-s.finished
	}
	return nil
}

// watch is the life of a child: its exit, the ladder, the sweep.
func (s *Supervisor) watch(c *Child) {
	g := &group{leader: c.pid, known: make(map[int]link)}
	noticed := awaitExit(c.pid)
	asked := false
	var grace <-chan time.Time
	for over := false; !over; {
		select {
		case n := <-noticed:
			noticed = nil
			g.learn()
			g.exited(c, n)
		case <-c.order.changed:
			left := c.order.left()
			if !asked && left > 0 {
				g.learn()
				g.signal(syscall.SIGTERM)
				g.signal(syscall.SIGCONT)
			}
			asked = true
			grace = time.After(left)
		case <-grace:
			over = c.order.left() == 0
		}
		over = over || asked && g.exitSeen && !g.living()
	}
	deadline, _ := c.order.until()
	result := g.sweep(c, noticed, later(deadline, time.Now()).Add(hardBound))
	result.Means = s.Means()
	c.gone <- result
	close(s.finished)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Probe tells which means of containment this host offers.
func Probe() []Mean {
	return []Mean{
		{
			Name: MeanProcessGroup, Available: true, Used: true,
			Detail: "The harness leads a session and a process group of its own, which get SIGTERM and SIGKILL.",
		},
		{
			Name: MeanParentLinks, Available: canList, Used: canList,
			Detail: "Descendants outside the group are found by their parent links while their parents live.",
		},
		{Name: MeanGuardian, Detail: "Not on this platform: nothing ends the harness when the runner is killed."},
		{Name: MeanSubreaper, Detail: "Not on this platform: orphans go to the system's first process."},
	}
}
