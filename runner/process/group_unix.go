//go:build unix && !linux

package process

import (
	"syscall"
	"time"
)

// sweepPause lies between two passes of a sweep.
const sweepPause = 5 * time.Millisecond

// link is one process of the system's list.
type link struct {
	pid, ppid, pgrp int
	start           int64 // microseconds since 1970
	dead            bool
	name            string
}

// group is a leader, its process group, and what is known of the tree. This
// platform gives orphans to the system's first process: a descendant is found
// only where it was seen while its parent was in the tree. known keeps them,
// with their start times, so that a number that has gone to a stranger is told
// apart.
type group struct {
	leader   int
	known    map[int]link
	exitSeen bool
	reaped   bool
}

// notice is what is known of the leader's exit.
type notice struct {
	exit   Exit
	known  bool
	reaped bool
}

// reapNow waits for a child and takes it away.
func reapNow(pid int) notice {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		return notice{exit: exitOf(status), known: err == nil, reaped: true}
	}
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Signal: int(status.Signal()), Signaled: true}
	}
	return Exit{Code: status.ExitStatus()}
}

// exited takes notice of the leader's exit.
func (g *group) exited(c *Child, n notice) {
	g.exitSeen, g.reaped = true, n.reaped
	if n.known {
		c.sawExit(n.exit)
	}
}

// learn adds to known what descends from the leader or from one that is known,
// and forgets numbers that are somebody else's by now.
func (g *group) learn() {
	all := listProcesses()
	now := make(map[int]link, len(all))
	for _, l := range all {
		now[l.pid] = l
	}
	for pid, l := range g.known {
		if n, ok := now[pid]; !ok || n.start != l.start {
			delete(g.known, pid)
		}
	}
	for found := true; found; {
		found = false
		for _, l := range all {
			if _, ok := g.known[l.pid]; ok || l.pid == g.leader {
				continue
			}
			_, byParent := g.known[l.ppid]
			inTree := byParent || !g.reaped && (l.ppid == g.leader || l.pgrp == g.leader)
			if inTree {
				g.known[l.pid] = l
				found = true
			}
		}
	}
}

// signal sends to the group while its number is certain, and to each known
// descendant whose start time is still the same.
func (g *group) signal(sig syscall.Signal) (sent int) {
	if !g.reaped {
		syscall.Kill(-g.leader, sig)
	}
	for _, l := range listProcesses() {
		if k, ok := g.known[l.pid]; ok && k.start == l.start && !l.dead {
			syscall.Kill(l.pid, sig)
			sent++
		}
	}
	return sent
}

func (g *group) living() bool {
	g.learn()
	for _, l := range listProcesses() {
		if k, ok := g.known[l.pid]; ok && k.start == l.start && !l.dead {
			return true
		}
	}
	return false
}

// sweep kills what is known until nothing of it lives, then reaps the leader.
func (g *group) sweep(c *Child, noticed <-chan notice, bound time.Time) Containment {
	counted := make(map[int]int64)
	for {
		g.learn()
		for pid, l := range g.known {
			counted[pid] = l.start
		}
		sent := g.signal(syscall.SIGKILL)
		if g.exitSeen && sent == 0 {
			if !g.reaped {
				reapNow(g.leader)
				g.reaped = true
			}
			return Containment{Swept: len(counted)}
		}
		if time.Now().After(bound) {
			return Containment{Swept: len(counted), Survivors: g.survivors()}
		}
		select {
		case n := <-noticed:
			noticed = nil
			g.exited(c, n)
		case <-time.After(sweepPause):
		}
	}
}

func (g *group) survivors() []Survivor {
	var left []Survivor
	for _, l := range listProcesses() {
		k, ok := g.known[l.pid]
		if !l.dead && (ok && k.start == l.start || l.pid == g.leader && !g.reaped) {
			left = append(left, Survivor{PID: l.pid, Name: l.name, State: "?"})
		}
	}
	return left
}
