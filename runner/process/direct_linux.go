package process

import "runtime"

// startDirect makes this process the parent of the harness: the way without a
// guardian. The goroutine that forks keeps its thread for the life of the
// child, because the death signal of a child belongs to the forking thread.
func (s *Supervisor) startDirect(l launch, c *Child) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		undoIgnored()
		t := newTree(c.order, c.sawExit)
		t.sweepOff = s.opts.noSweep
		t.children = watchChildren()
		l.leaf = s.leaf
		l.deathSignal = true
		var inLeaf bool
		pid, err := owned.birth(func() (pid int, err error) {
			pid, inLeaf, err = spawn(l)
			return pid, err
		})
		if err != nil {
			t.close()
			started <- err
			return
		}
		if inLeaf {
			t.leaf, s.leaf = s.leaf, nil
		} else {
			s.refuseLeaf()
		}
		c.pid, t.leader = pid, pid
		t.since = startOf(t.proc, pid)
		means := s.means(t.leaf != nil, false)
		started <- nil
		result := t.run()
		owned.remove(pid)
		result.Means = means
		s.finish(c, result)
	}()
	return <-started
}

// startOf is the start time of a child that is not reaped; 0 where it cannot
// be read.
func startOf(p *procfs, pid int) uint64 {
	if p == nil {
		return 0
	}
	s, _ := p.stat(pid)
	return s.start
}

// makeLeaf makes the harness's cgroup leaf, where that can be had, and gives the
// cgroup above it, "" where there is none.
func (s *Supervisor) makeLeaf() string {
	parent, err := ownCgroup()
	if err == nil {
		s.leaf, err = newLeaf(parent, s.leafName)
	}
	if err != nil {
		s.note("cgroup: " + err.Error())
	}
	return parent
}

// refuseLeaf takes a leaf away in which the harness was not born.
func (s *Supervisor) refuseLeaf() {
	if s.leaf != nil {
		s.note("cgroup: the kernel refused to start the harness in one")
		s.leaf.remove()
		s.leaf = nil
	}
}
