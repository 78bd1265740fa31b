package process

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/windows"
)

// jobPoll is how often a job whose leader has exited is asked whether it is
// empty.
const jobPoll = 10 * time.Millisecond

// killedCode is the exit code of what [windows.TerminateJobObject] ends.
const killedCode = 1

// Supervisor is this process's part in the containment of one child.
type Supervisor struct {
	mu       sync.Mutex
	child    *Child
	started  bool
	closed   bool
	finished chan struct{}
}

// Main does nothing on this platform: the job object ends the harness when the
// runner dies.
func Main() {}

// Open prepares this process. It never fails.
func Open(Options) (*Supervisor, error) {
	return &Supervisor{finished: make(chan struct{})}, nil
}

// Means names the means that are in force, strongest first.
func (s *Supervisor) Means() []string { return []string{MeanJobObject} }

// Notes says which means could not be had and why.
func (s *Supervisor) Notes() []string { return nil }

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
		return nil, &StartError{Name: spec.Argv[0], Reason: fmt.Sprintf("no pipes: %v", err), Err: err}
	}
	defer p.closeTheirs()
	c := newChild(p)
	j, err := startInJob(path, spec, p)
	if err != nil {
		p.closeOurs()
		return nil, explain(err, spec, path)
	}
	c.pid = j.pid
	s.started, s.child = true, c
	go s.watch(c, j)
	return c, nil
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

// watch is the life of a child.
func (s *Supervisor) watch(c *Child, j *job) {
	defer j.close()
	noticed := j.awaitExit()
	asked, exited := false, false
	var grace, poll <-chan time.Time
	for over := false; !over; {
		select {
		case e := <-noticed:
			noticed, exited = nil, true
			c.sawExit(e)
		case <-c.order.changed:
			left := c.order.left()
			if !asked && left > 0 {
				j.ask()
			}
			asked = true
			grace = time.After(left)
		case <-grace:
			over = c.order.left() == 0
		case <-poll:
		}
		poll = nil
		if asked && exited {
			over = over || j.active() == 0
			poll = time.After(jobPoll)
		}
	}
	result := s.sweep(c, j, noticed)
	c.gone <- result
	close(s.finished)
}

// sweep terminates the job and waits until it is empty.
func (s *Supervisor) sweep(c *Child, j *job, noticed <-chan Exit) Containment {
	result := Containment{Means: s.Means(), Swept: j.active()}
	if noticed != nil && result.Swept > 0 {
		result.Swept-- // the leader is no descendant
	}
	for bound := time.Now().Add(hardBound); ; {
		windows.TerminateJobObject(j.handle, killedCode)
		if noticed == nil && j.active() == 0 {
			return result
		}
		if time.Now().After(bound) {
			result.Survivors = j.survivors()
			return result
		}
		select {
		case e := <-noticed:
			noticed = nil
			c.sawExit(e)
		case <-time.After(jobPoll):
		}
	}
}

// Probe tells which means of containment this host offers.
func Probe() []Mean {
	m := Mean{Name: MeanJobObject}
	h, err := newJob()
	if err != nil {
		m.Detail = fmt.Sprintf("Not available: %v.", err)
		return []Mean{m}
	}
	windows.CloseHandle(h)
	m.Available, m.Used = true, true
	m.Detail = "The harness and all its descendants are in a job that ends with its last handle."
	return []Mean{m}
}
