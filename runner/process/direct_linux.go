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
		if !s.opts.noCgroup {
			l.leaf, _ = s.makeLeaf()
			t.leaf = l.leaf
		}
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
		if t.leaf != nil && !inLeaf {
			s.note("cgroup: the kernel refused to start the harness in one")
			t.leaf.remove()
			t.leaf = nil
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

func (s *Supervisor) makeLeaf() (*leaf, error) {
	l, err := newLeaf(s.leafName)
	if err != nil {
		s.note("cgroup: " + err.Error())
	}
	return l, err
}
