package process

import "sync"

// owned are the children of this process that no tree may take for adopted
// ones: guardians, and the leaders of supervisors without one.
var owned = &numbers{set: make(map[int]struct{})}

type numbers struct {
	mu  sync.Mutex
	set map[int]struct{}
}

// birth runs a fork and keeps its number. A tree that sees the new process
// before that waits in has.
func (n *numbers) birth(fork func() (int, error)) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pid, err := fork()
	if err == nil {
		n.set[pid] = struct{}{}
	}
	return pid, err
}

func (n *numbers) remove(pid int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.set, pid)
}

func (n *numbers) has(pid int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.set[pid]
	return ok
}
