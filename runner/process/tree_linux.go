package process

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Pauses of a tree. scanGap is the shortest time between two scans of /proc
// that dying children ask for while the leader's zombie hides them; emptyGap
// the same during the grace. A sweep that finds nothing new waits for a dying
// child, at first firstRest, then longer up to lastRest.
const (
	scanGap   = 200 * time.Millisecond
	emptyGap  = 20 * time.Millisecond
	firstRest = 500 * time.Microsecond
	lastRest  = 20 * time.Millisecond
)

// tree watches one leader and everything that descends from it, and ends it.
// It runs in the process that is the leader's parent: the guardian, or the
// runner where there is none or where it has died. One goroutine owns it: the
// same that reaps also signals, so that the number of a child that is not
// reaped is certainly still its own.
type tree struct {
	self   int // our own number
	leader int // 0 where it is not known
	// since is the leader's start time: what started before is not ours.
	since uint64
	// exclusive says that every child of this process belongs to the tree:
	// true in the guardian. Then "no child left" is exact.
	exclusive bool
	session   int // our own session: a child in it is not of the tree
	proc      *procfs
	leaf      *leaf
	order     *order
	onExit    func(Exit)     // called once, in the tree's goroutine
	children  chan os.Signal // SIGCHLD, subscribed before the leader starts
	sweepOff  bool           // for tests: only the group is ended

	exitSeen bool
	reaped   bool
	lastScan time.Time
	pass     sweepPass
}

// newTree is a tree of this process. The caller sets leader, since and what it
// knows besides.
func newTree(o *order, onExit func(Exit)) *tree {
	sid, _ := unix.Getsid(0)
	return &tree{
		self: unix.Getpid(), session: sid,
		proc: openProc(), order: o, onExit: onExit,
	}
}

// run watches the leader until it is told to stop, then goes down the ladder.
// It returns when nothing is left or the hard bound has passed.
func (t *tree) run() Containment {
	defer t.close()
	t.look()
	for {
		select {
		case <-t.children:
			t.look()
		case <-t.order.changed:
			return t.end()
		}
	}
}

func (t *tree) close() {
	if !t.exclusive { // a guardian is at its end
		unwatch(t.children)
	}
	if t.proc != nil {
		t.proc.close()
	}
	t.leaf.remove()
}

// look takes notice of children that have exited. The leader is not reaped.
func (t *tree) look() {
	t.noticeExit()
	for {
		pid, _ := peekAny()
		if pid == 0 {
			return
		}
		if pid == t.leader || !t.exclusive {
			// This one hides the others, or may be a stranger's.
			t.reapByScan()
			return
		}
		reap(pid)
	}
}

func (t *tree) noticeExit() {
	if t.exitSeen || t.leader == 0 {
		return
	}
	info, exited, gone := peek(t.leader)
	switch {
	case exited:
		t.exitSeen = true
		t.onExit(info.exit())
		// The order to end comes next as a rule, and the end reaps them all:
		// no scan delays it.
		t.lastScan = time.Now()
	case gone:
		// Somebody else has reaped it: its exit cannot be learned, and its
		// number is not ours any more.
		t.exitSeen, t.reaped = true, true
	}
}

// reapByScan reaps the dead children that are ours, at most once in scanGap:
// meanwhile they cost a number each, and the end reaps them all.
func (t *tree) reapByScan() {
	if t.proc == nil || time.Since(t.lastScan) < scanGap {
		return
	}
	t.lastScan = time.Now()
	t.proc.scan(func(s stat) {
		if t.direct(s) && s.dead() {
			reap(s.pid)
		}
	})
}

// direct tells a child of this process that is of the tree and not the leader.
// Until we reap it, its number is its own.
func (t *tree) direct(s stat) bool {
	if s.ppid != t.self || s.pid == t.leader || s.thread {
		return false
	}
	if t.exclusive {
		return true
	}
	// An adopted child has a session that the harness made; it is not older
	// than the leader; and it is not the guardian or the leader of another
	// supervisor of this program.
	return s.sid != t.session && s.start >= t.since && !owned.has(s.pid)
}

// end is the stop ladder from SIGTERM on.
func (t *tree) end() Containment {
	if t.order.left() > 0 {
		t.ask()
		t.wait()
	}
	deadline, _ := t.order.until()
	if now := time.Now(); deadline.Before(now) {
		deadline = now
	}
	return t.sweep(deadline.Add(hardBound))
}

// ask sends SIGTERM, then SIGCONT so that who is stopped can obey: to the
// group, and to each descendant that has left it.
func (t *tree) ask() {
	t.signalGroup(unix.SIGTERM)
	t.signalGroup(unix.SIGCONT)
	if t.sweepOff {
		return
	}
	t.each(func(s stat, direct bool) {
		if s.pgrp != t.leader && !s.dead() {
			t.signal(s, direct, unix.SIGTERM)
			t.signal(s, direct, unix.SIGCONT)
		}
	})
}

// signalGroup signals the leader's group. The group's number is certain while
// the leader is not reaped.
func (t *tree) signalGroup(sig unix.Signal) {
	if t.leader > 0 && !t.reaped {
		unix.Kill(-t.leader, sig)
	}
}

// wait returns at the end of the grace, or once nothing lives. Only a dying
// child of ours can make the tree empty, and that is a SIGCHLD: there is no
// polling.
func (t *tree) wait() {
	timer := time.NewTimer(t.order.left())
	defer timer.Stop()
	again := time.After(0) // a look that is due, or was put off
	lastLook := time.Time{}
	for {
		select {
		case <-timer.C:
			if t.order.left() == 0 {
				return
			}
			timer.Reset(t.order.left())
			continue
		case <-t.order.changed:
			timer.Reset(t.order.left())
			continue
		case <-t.children:
		case <-again:
		}
		again = nil
		t.look()
		if !t.exitSeen {
			continue
		}
		if gap := emptyGap - time.Since(lastLook); gap > 0 {
			again = time.After(gap)
			continue
		}
		lastLook = time.Now()
		if t.empty() {
			return
		}
	}
}

// empty tells that the leader has exited and nothing else lives.
func (t *tree) empty() bool {
	if t.proc == nil {
		return false
	}
	if t.sweepOff {
		return true
	}
	if t.proc.onlyChild(t.leader) {
		return true
	}
	living := 0
	t.each(func(s stat, _ bool) {
		if !s.dead() {
			living++
		}
	})
	return living == 0
}
