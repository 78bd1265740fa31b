package process

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Numbers of a pursuit. A chain of processes that each fork one and exit gives
// the next one a number just above the last: pursuitAhead numbers above and
// pursuitBehind below the newest are looked at, pursuitRounds times between two
// full scans.
const (
	pursuitAhead  = 8
	pursuitBehind = 24
	pursuitRounds = 40
)

// emptyPasses is how many passes in a row find nothing before a process that
// has other children too takes its tree for empty. restlessPasses is how many
// are made without a pause where the kernel says that a child is left and no
// pass finds it.
const (
	emptyPasses    = 2
	restlessPasses = 50
)

// sweepPass is what one look at the tree found.
type sweepPass struct {
	living int              // descendants alive, without the leader
	fresh  int              // of these, how many were not known before
	struck map[int]uint64   // start times of those that were sent SIGKILL, by number
	ours   map[int]struct{} // numbers that belong to the tree
	others []stat           // processes that are not direct children
	groups []int            // led by direct children, killed after the count
	dead   []int            // direct children, reaped after that
	swung  bool             // groups have been killed in this sweep
}

// each visits the tree: first every direct child at the moment it is read,
// then the deeper descendants. The leader is visited as well where it is not
// reaped; direct is then true.
func (t *tree) each(visit func(s stat, direct bool)) {
	if t.proc == nil {
		return
	}
	p := &t.pass
	if p.ours == nil {
		p.ours = make(map[int]struct{})
	}
	clear(p.ours)
	p.others = p.others[:0]
	t.proc.scan(func(s stat) {
		switch {
		case t.direct(s):
			p.ours[s.pid] = struct{}{}
			visit(s, true)
		case s.pid == t.leader && s.ppid == t.self:
			p.ours[s.pid] = struct{}{}
		default:
			p.others = append(p.others, s)
		}
	})
	// A parent mostly has the lower number, so one round does nearly all.
	for found := true; found; {
		found = false
		for i := range p.others {
			s := p.others[i]
			if s.pid == 0 {
				continue
			}
			if _, ok := p.ours[s.ppid]; ok {
				p.ours[s.pid] = struct{}{}
				p.others[i].pid = 0
				found = true
				visit(s, false)
			}
		}
	}
}

// sweep kills until nothing is left, then reaps the leader. What lives on at
// the bound is named.
func (t *tree) sweep(bound time.Time) Containment {
	if t.sweepOff {
		return t.endGroup(bound)
	}
	if t.alone() {
		return Containment{}
	}
	t.pass.struck = make(map[int]uint64)
	empty, rest := 0, firstRest
	for pass := 0; ; pass++ {
		t.strike()
		t.noticeExit()
		if t.pass.living == 0 && t.exitSeen && !t.reaped {
			t.reaped = reap(t.leader)
		}
		if t.pass.living == 0 && t.reaped || t.leader == 0 && t.pass.living == 0 {
			empty++
			if t.nothingLeft(empty) {
				return Containment{Swept: len(t.pass.struck)}
			}
		} else {
			empty = 0
		}
		if time.Now().After(bound) {
			return Containment{Swept: len(t.pass.struck), Survivors: t.survivors()}
		}
		switch {
		case pass > 0 && t.pass.fresh > 0, empty > 0 && empty < restlessPasses:
			// Somebody forks while we sweep.
			rest = firstRest
			t.pursue()
		default:
			t.rest(rest)
			rest = min(rest*2, lastRest)
		}
	}
}

// nothingLeft is exact in a process that has no other children: the kernel
// says so. Where it has, a number of empty passes must do.
func (t *tree) nothingLeft(empty int) bool {
	if _, none := peekAny(); none {
		return true
	}
	return !t.exclusive && empty >= emptyPasses
}

// alone is the short way for the everyday end: the leader has exited and left
// nothing. Where the hint was wrong the sweep still finds everything, one by
// one instead of by the group.
func (t *tree) alone() bool {
	if !t.exitSeen || t.reaped || t.proc == nil || !t.proc.onlyChild(t.leader) {
		return false
	}
	t.reaped = reap(t.leader)
	if !t.nothingLeft(0) {
		return false
	}
	t.leaf.kill() // whom somebody else has put there
	return true
}

// rest waits for a dying child, at most d.
func (t *tree) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.children:
	case <-timer.C:
	}
}

// strike is one pass: it kills what is found and reaps what is dead. Direct
// children are killed at the moment they are read.
//
// The leader goes first and alone: one that sees its child die of SIGKILL
// could exit by itself, and its exit would not be the true one. Groups go after
// the count: who is killed with one before it is read would not be counted.
func (t *tree) strike() {
	t.pass.living, t.pass.fresh = 0, 0
	if t.leader > 0 && !t.reaped {
		unix.Kill(t.leader, unix.SIGKILL)
	}
	t.each(t.strikeOne)
	t.strikeGroups()
	t.leaf.kill()
	t.signalGroup(unix.SIGKILL)
	t.pass.swung = true
	if t.proc == nil && t.exclusive {
		t.reapBlind()
	}
}

func (t *tree) strikeOne(s stat, direct bool) {
	if s.dead() {
		if direct {
			// Its group may have members that it has just forked; the
			// number is its own until it is reaped.
			if s.pgrp == s.pid {
				t.pass.groups = append(t.pass.groups, s.pid)
			}
			t.pass.dead = append(t.pass.dead, s.pid)
			t.countKilled(s)
		}
		return
	}
	t.pass.living++
	if t.pass.struck[s.pid] != s.start {
		t.pass.struck[s.pid] = s.start
		t.pass.fresh++
	}
	t.signal(s, direct, unix.SIGKILL)
	if direct && s.pgrp == s.pid {
		t.pass.groups = append(t.pass.groups, s.pid)
	}
}

// countKilled counts a dead child that nobody has seen alive and that SIGKILL has
// ended: it was born while the last pass read the others, and went with a group.
func (t *tree) countKilled(s stat) {
	if !t.pass.swung || t.pass.struck[s.pid] == s.start {
		return
	}
	if info, exited, _ := peek(s.pid); exited && info.code == cldKilled && info.status == int(unix.SIGKILL) {
		t.pass.struck[s.pid] = s.start
	}
}

// strikeGroups kills the groups that strikeOne has found and reaps its dead.
func (t *tree) strikeGroups() {
	p := &t.pass
	for _, pgrp := range p.groups {
		unix.Kill(-pgrp, unix.SIGKILL)
	}
	for _, pid := range p.dead {
		reap(pid)
	}
	p.groups, p.dead = p.groups[:0], p.dead[:0]
}

// signal sends to one descendant and to nobody else. A direct child cannot
// lose its number before we reap it. Any other is held by a pidfd first, and
// then it must still be the process that was read; where there are no pidfds
// it is left alone until its parent is dead and it is a direct child.
func (t *tree) signal(s stat, direct bool, sig unix.Signal) {
	if direct {
		unix.Kill(s.pid, sig)
		return
	}
	fd, err := unix.PidfdOpen(s.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	now, ok := t.proc.stat(s.pid)
	if !ok || now.start != s.start {
		return
	}
	if _, ours := t.pass.ours[now.ppid]; !ours && !t.direct(now) {
		return
	}
	unix.PidfdSendSignal(fd, sig, nil, 0)
}

// pursue runs after whoever forks while it is swept. A full scan takes a
// millisecond, and a chain has moved on by then; the numbers around the newest
// take some microseconds.
func (t *tree) pursue() {
	if t.proc == nil {
		return
	}
	for range pursuitRounds {
		newest := t.proc.newest()
		if newest == 0 {
			return
		}
		for pid := max(newest-pursuitBehind, 1); pid <= newest+pursuitAhead; pid++ {
			if s, ok := t.proc.stat(pid); ok && t.direct(s) {
				t.strikeOne(s, true)
				t.strikeGroups()
			}
		}
		runtime.Gosched()
	}
}

// reapBlind is what can be done without /proc.
func (t *tree) reapBlind() {
	for {
		pid, _ := peekAny()
		if pid == 0 || pid == t.leader {
			return
		}
		reap(pid)
	}
}

// survivors names what is alive.
func (t *tree) survivors() []Survivor {
	if t.proc == nil {
		return []Survivor{{Name: "unknown", State: "?"}}
	}
	var left []Survivor
	add := func(s stat) {
		left = append(left, Survivor{PID: s.pid, Name: t.proc.comm(s.pid), State: string(s.state)})
	}
	t.each(func(s stat, _ bool) {
		if !s.dead() {
			add(s)
		}
	})
	if s, ok := t.proc.stat(t.leader); ok && t.leader > 0 && !t.reaped && !s.dead() {
		add(s)
	}
	return left
}

// endGroup is the end with the sweep switched off, for the tests that show
// what the sweep is for.
func (t *tree) endGroup(bound time.Time) Containment {
	for {
		t.signalGroup(unix.SIGKILL)
		t.noticeExit()
		if t.exitSeen || time.Now().After(bound) {
			t.reaped = t.reaped || reap(t.leader)
			return Containment{}
		}
		t.rest(lastRest)
	}
}
