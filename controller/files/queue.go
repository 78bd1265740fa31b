package files

import (
	"sync"
	"sync/atomic"
)

// folder is an open folder that the parts of it share.
type folder struct {
	dir
	rel  string // below the folder that is searched, "" is itself
	uses atomic.Int32
}

func newFolder(d dir, rel string) *folder {
	f := &folder{dir: d, rel: rel}
	f.uses.Store(1)
	return f
}

func (f *folder) release() {
	if f.uses.Add(-1) == 0 {
		f.close()
	}
}

func (f *folder) join(name string) string {
	if f.rel == "" {
		return name
	}
	return f.rel + "/" + name
}

// part is a piece of a search: files of one folder, or a folder, which leads to
// more parts in its place.
type part struct {
	in    *folder
	names []string // files; nil for a folder
	// Of a folder: its name in its parent, its path below the root, and how
	// deep it is. The top is in no other: its name is empty.
	name, path string
	rules      *rules // of the folders above
	depth      int

	parts          []*part
	matches        []Match
	files, skipped int64

	// The lock of the queue is held for these.
	before, after *part
	taken, done   bool
}

// queue hands out the parts of a search. Whoever is free takes the first one in
// the order of the paths, so that what is found comes about in that order, and
// little waits for what comes before it.
type queue struct {
	mu   sync.Mutex
	wake sync.Cond
	// open is a ring of the parts that are not finished, in their order; it is
	// no part itself.
	open  part
	ready int // parts that are finished and not collected
	ended bool
}

func newQueue(first *part) *queue {
	q := &queue{}
	q.wake.L = &q.mu
	q.open.before, q.open.after = &q.open, &q.open
	q.put([]*part{first}, &q.open)
	return q
}

// put puts parts before another; the lock is held, or nobody else is there.
func (q *queue) put(parts []*part, at *part) {
	for _, p := range parts {
		p.before, p.after = at.before, at
		p.before.after, at.before = p, p
	}
}

// maxReady bounds the parts that wait for one before them. Where it is reached,
// only the very first one goes on.
const maxReady = 64

// take gives the next part; nil is the end.
func (q *queue) take() *part {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.ended && q.open.after != &q.open {
		p := q.open.after
		if q.ready < maxReady {
			for p.taken { // by no more than are searching
				p = p.after
			}
		}
		if p != &q.open && !p.taken {
			p.taken = true
			return p
		}
		q.wake.Wait()
	}
	return nil
}

// finish takes a part back, with the parts that it leads to in their order.
func (q *queue) finish(p *part, parts []*part) {
	p.in.release()
	q.mu.Lock()
	defer q.mu.Unlock()
	p.parts, p.done = parts, true
	q.put(parts, p)
	p.before.after, p.after.before = p.after, p.before
	q.ready++
	q.wake.Broadcast()
}

// collect calls f with each part in the order of the paths, from the first on,
// until that says no or all has ended.
func (q *queue) collect(first *part, f func(*part) bool) {
	for stack := []*part{first}; len(stack) > 0; {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !q.wait(p) || !f(p) {
			return
		}
		for i := len(p.parts) - 1; i >= 0; i-- {
			stack = append(stack, p.parts[i])
		}
	}
}

// wait waits until a part is done; false is the end.
func (q *queue) wait(p *part) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !p.done && !q.ended {
		q.wake.Wait()
	}
	if !p.done || q.ended {
		return false
	}
	if q.ready--; q.ready == maxReady-1 {
		q.wake.Broadcast()
	}
	return true
}

// end has nothing more be taken.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.wake.Broadcast()
}

// release gives back what nobody has finished; all are through.
func (q *queue) release() {
	for p := q.open.after; p != &q.open; p = p.after {
		p.in.release()
	}
}
