package process

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// hardBound is how long after the grace SIGKILL may take to have its effect
// before what is left is named as a survivor (spec section 6, End).
const hardBound = 5 * time.Second

// Names of the means of containment, as they stand in [Containment] and
// [Mean].
const (
	MeanCgroup       = "cgroup"
	MeanGuardian     = "guardian"
	MeanSubreaper    = "subreaper"
	MeanPidfd        = "pidfd"
	MeanParentLinks  = "parent_links"
	MeanProcessGroup = "process_group"
	MeanJobObject    = "job_object"
	MeanUserNS       = "user_namespace"
	MeanPidNS        = "pid_namespace"
	MeanProcChildren = "proc_children"
)

// Spec is what to start.
type Spec struct {
	// Argv is the command and its arguments. A bare Argv[0] is looked up in
	// the PATH of Env, in absolute entries only; one with a slash that is not
	// absolute is relative to Dir.
	Argv []string
	// Dir is the working directory; "" is the caller's own.
	Dir string
	// Env is the complete environment, as "NAME=value".
	Env []string
}

// Exit is how the leader ended. A death by a signal has Signaled true, the
// number in Signal and no Code.
type Exit struct {
	Code     int
	Signal   int
	Signaled bool
}

// Containment says how it was made sure that nothing is left.
type Containment struct {
	// Means are the means in force at the end, strongest first.
	Means []string
	// Swept counts the descendants, not the leader, that were found alive
	// and were sent SIGKILL.
	Swept int
	// Survivors are processes that lived on when the hard bound had passed.
	Survivors []Survivor
}

// Survivor is a process that SIGKILL did not end.
type Survivor struct {
	PID   int
	Name  string // as the kernel shows it, at most 15 bytes
	State string // one letter, as in ps; "?" where it is not known
}

// Mean is one means of containment, as [Probe] reports it.
type Mean struct {
	Name      string
	Available bool
	Used      bool
	Detail    string // one sentence
}

// StartError says why a command could not be started. Nothing of it is left.
type StartError struct {
	Name   string // Argv[0] as it was given
	Reason string // the cause for a person, without values of the environment
	Err    error  // the system's error, or nil
}

func (e *StartError) Error() string { return fmt.Sprintf("start %q: %s", e.Name, e.Reason) }

// Unwrap gives the system's error.
func (e *StartError) Unwrap() error { return e.Err }

// Child is a started command, the leader, and everything that descends from
// it. Its methods may be called from any goroutine.
//
// The caller owns the three pipe ends and closes them. They are non-blocking
// and know deadlines. The caller has to call [Child.Stop] or [Child.Kill] once,
// also after a natural exit.
type Child struct {
	Stdin  *os.File
	Stdout *os.File
	Stderr *os.File

	pid    int
	order  *order
	exited chan Exit
	gone   chan Containment
}

func newChild(p *pipes) *Child {
	return &Child{
		Stdin: p.ours[0], Stdout: p.ours[1], Stderr: p.ours[2],
		order:  newOrder(),
		exited: make(chan Exit, 1),
		gone:   make(chan Containment, 1),
	}
}

func (c *Child) sawExit(e Exit) { c.exited <- e }

// PID is the leader's number. It is a stranger's once [Child.Gone] has spoken.
func (c *Child) PID() int { return c.pid }

// Exited gives one value once the leader has exited. On Linux the leader is
// then not reaped, so that its number stays its own until [Child.Gone]. Nothing
// is ever sent where the exit cannot be learned: [Child.Gone] comes all the
// same.
func (c *Child) Exited() <-chan Exit { return c.exited }

// Gone gives one value after [Child.Stop] or [Child.Kill]: when nothing is
// left, or when the grace and 5 s have passed. An exit that was seen is in
// [Child.Exited] before.
func (c *Child) Gone() <-chan Containment { return c.gone }

// Stop begins the stop ladder and returns at once: SIGTERM then SIGCONT to the
// group and to what else is known of the tree, at most grace while anything
// lives, SIGKILL, a sweep until nothing is left; then the leader is reaped. A
// later call can only shorten the grace. See spec section 6, End.
func (c *Child) Stop(grace time.Duration) { c.order.give(grace) }

// Kill is Stop without a grace. It is also what ends a run whose leader has
// exited by itself: what is left is killed, then the leader is reaped.
func (c *Child) Kill() { c.order.give(0) }

// order is the wish to stop: it is given once and can then only come earlier.
type order struct {
	mu       sync.Mutex
	given    bool
	deadline time.Time
	changed  chan struct{} // holds one token after a change
}

func newOrder() *order { return &order{changed: make(chan struct{}, 1)} }

func (o *order) give(grace time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	deadline := time.Now().Add(max(grace, 0))
	if o.given && !deadline.Before(o.deadline) {
		return
	}
	o.given, o.deadline = true, deadline
	o.again()
}

// again repeats an order to one who has not heard it.
func (o *order) again() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// until is the end of the grace; false where nobody has asked to stop.
func (o *order) until() (time.Time, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deadline, o.given
}

// left is what remains of the grace, never negative.
func (o *order) left() time.Duration {
	deadline, _ := o.until()
	return max(time.Until(deadline), 0)
}
