package process

import (
	"errors"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// closeBound is how long Close waits for a guardian that has nothing left to
// do before it is killed.
const closeBound = 2 * time.Second

// Supervisor is this process's part in the containment of one child. It is
// made by [Open] at the start of a runner.
type Supervisor struct {
	opts     Options
	leafName string

	guarded bool      // the harness is started below a guardian
	guard   *guardian // of the child; nil: none
	// ready is closed once there is a leaf, or cannot be.
	ready chan struct{}
	leaf  *leaf // who starts the harness hands it on

	mu        sync.Mutex
	subreaper bool
	notes     []string
	child     *Child
	started   bool
	closed    bool
	finished  chan struct{} // closed when the child's tree has been let go
}

// leafCount tells the leaves of several supervisors of one process apart.
var leafCount atomic.Int64

// Open prepares this process: it marks all descriptors but 0, 1 and 2
// close-on-exec, makes the process undumpable and a subreaper, and begins to
// make the harness's cgroup. A means that is missing is no error:
// [Supervisor.Means] and [Supervisor.Notes] tell.
//
// The guardian needs [Main] in main; without it the process itself becomes the
// parent of the harness.
func Open(o Options) (*Supervisor, error) {
	s := &Supervisor{opts: o, ready: make(chan struct{}), finished: make(chan struct{})}
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		markCloseOnExec()
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		s.note("undumpable: " + err.Error())
	}
	if !o.noSubreaper {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			s.note("subreaper: " + err.Error())
		} else {
			s.subreaper = true
		}
	}
	wakePoller()
	proc := openProc()
	if proc == nil {
		s.note("parent_links: /proc is not mounted, descendants outside the group cannot be found")
	} else {
		defer proc.close()
	}
	self := unix.Getpid()
	s.leafName = leafOwner{pidNamespace(), self, startOf(proc, self)}.name(leafCount.Add(1))
	if !o.noGuardian {
		if err := guardable(); err != nil {
			s.note("guardian: " + err.Error())
		} else {
			s.guarded = true
		}
	}
	go func() {
		catchChildren()
		parent := ""
		if !o.noCgroup {
			parent = s.makeLeaf()
		}
		close(s.ready)
		if parent != "" {
			removeDeadLeaves(parent, s.leafName)
		}
	}()
	return s, nil
}

func (s *Supervisor) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, text)
}

// Notes says, one sentence each, which means could not be had and why.
func (s *Supervisor) Notes() []string {
	<-s.ready
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notes)
}

// Means names the means that are in force or ready, strongest first. The
// cgroup is only known once a child has been started.
func (s *Supervisor) Means() []string {
	return s.means(false, s.guarded)
}

func (s *Supervisor) means(cgroup, guarded bool) []string {
	var m []string
	if cgroup {
		m = append(m, MeanCgroup)
	}
	if guarded {
		m = append(m, MeanGuardian)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subreaper || guarded {
		m = append(m, MeanSubreaper)
	}
	return append(m, MeanProcessGroup)
}

// Start starts the child, and the guardian with it. It blocks for as long as
// the two execs take. The error is a [*StartError]. A supervisor has one child
// in its life; a start that failed may be tried again.
func (s *Supervisor) Start(spec Spec) (*Child, error) {
	path, startErr := resolve(spec)
	if startErr != nil {
		return nil, startErr
	}
	if err := s.claim(); err != nil {
		return nil, &StartError{Name: spec.Argv[0], Reason: err.Error(), Err: err}
	}
	<-s.ready
	p, err := newPipes()
	if err != nil {
		s.release()
		return nil, explainPipes(err, spec)
	}
	defer p.closeTheirs()
	c := newChild(p)
	l := launch{path: path, argv: spec.Argv, env: spec.Env, dir: spec.Dir, fds: p.fds(), name: s.leafName}
	if s.guarded {
		err = s.startGuarded(l, c)
	} else {
		err = s.startDirect(l, c)
	}
	if err != nil {
		p.closeOurs()
		s.release()
		return nil, explain(err, spec, path)
	}
	s.mu.Lock()
	s.child = c
	s.mu.Unlock()
	return c, nil
}

func (s *Supervisor) claim() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("the supervisor is closed")
	case s.started:
		return errors.New("the supervisor has a child already")
	}
	s.started = true
	return nil
}

func (s *Supervisor) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = false
}

// finish hands the result over when a tree has been let go.
func (s *Supervisor) finish(c *Child, result Containment) {
	c.gone <- result
	close(s.finished)
}

// Close ends what is left of the child, at once, and the guardian. It returns
// when nothing of either is left, or after the hard bound. It must not be
// called while Start runs.
func (s *Supervisor) Close() error {
	<-s.ready
	s.mu.Lock()
	c, closed := s.child, s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	defer s.leaf.remove() // where nobody has
	if c != nil {
		c.Kill()
		<-s.finished
	}
	if s.guard == nil {
		return nil
	}
	return s.guard.end()
}

// wakePoller has Go's runtime open the two descriptors of its poller now. It
// does so at the first pipe otherwise, and ends the program where it cannot:
// later that could be in the place of a start that fails for the same reason.
func wakePoller() {
	var p [2]int
	if unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return
	}
	defer unix.Close(p[1])
	a, errA := unix.FcntlInt(uintptr(p[1]), unix.F_DUPFD_CLOEXEC, 0)
	b, errB := unix.FcntlInt(uintptr(p[1]), unix.F_DUPFD_CLOEXEC, 0)
	unix.Close(a)
	unix.Close(b)
	if errA != nil || errB != nil {
		unix.Close(p[0])
		return
	}
	os.NewFile(uintptr(p[0]), "poller").Close()
}

// markCloseOnExec is for kernels before 5.11.
func markCloseOnExec() {
	proc, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(proc)
	buf := make([]byte, 4<<10)
	for {
		n, err := unix.ReadDirent(proc, buf)
		if err != nil || n <= 0 {
			return
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if fd := int(number([]byte(name))); fd > 2 {
				unix.CloseOnExec(fd)
			}
		}
	}
}
