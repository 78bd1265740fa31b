package files

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
)

// nowhere is a folder without anything in it.
type nowhere struct{ dir }

func (nowhere) close() {}

// leaves are parts of a folder, named by their number.
func leaves(in *folder, n int) []*part {
	var parts []*part
	for i := range n {
		in.uses.Add(1)
		parts = append(parts, &part{in: in, name: strconv.Itoa(i)})
	}
	return parts
}

// TestQueueIsBounded: while the first part takes its time, the others go ahead
// so far and no further; then all come in their order.
func TestQueueIsBounded(t *testing.T) { synctest.Test(t, queueIsBounded) }

func queueIsBounded(t *testing.T) {
	in := newFolder(nowhere{}, "")
	top := &part{in: in}
	q := newQueue(top)
	q.finish(q.take(), leaves(in, 3*maxReady))
	slow := q.take()
	for range maxReady - 1 { // the top is ready as well
		q.finish(q.take(), nil)
	}
	waiting := make(chan *part)
	go func() { waiting <- q.take() }()
	var got []string
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		q.collect(top, func(p *part) bool { got = append(got, p.name); return true })
	}()
	// The top is collected, so one more is taken, and then none.
	next := <-waiting
	q.finish(next, nil)
	q.mu.Lock()
	if n := q.ready; n != maxReady {
		t.Errorf("%d parts are ready, want %d", n, maxReady)
	}
	q.mu.Unlock()
	go func() { waiting <- q.take() }()
	synctest.Wait()
	select {
	case p := <-waiting:
		t.Fatalf("part %q was taken beyond the bound", p.name)
	default:
	}
	q.finish(slow, nil)
	q.finish(<-waiting, nil)
	for p := q.take(); p != nil; p = q.take() {
		q.finish(p, nil)
	}
	<-collected
	want := []string{""}
	for i := range 3 * maxReady {
		want = append(want, strconv.Itoa(i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("collected %q", got)
	}
	// Whoever has made the folder has its last use.
	if n := in.uses.Load(); n != 0 {
		t.Errorf("the folder has %d uses", n)
	}
}

// TestQueueOrder: parts of a part that is finished late come in its place.
func TestQueueOrder(t *testing.T) {
	in := newFolder(nowhere{}, "")
	top := &part{in: in}
	q := newQueue(top)
	q.finish(q.take(), leaves(in, 2))
	first, second := q.take(), q.take()
	q.finish(second, leaves(in, 1))
	q.finish(first, leaves(in, 1))
	if p := q.take(); p != first.parts[0] {
		t.Error("what is taken next is not the first in order")
	}
	q.end()
	if p := q.take(); p != nil {
		t.Error("a part was taken after the end")
	}
	q.release()
	if n := in.uses.Load(); n != 0 {
		t.Errorf("the folder has %d uses", n)
	}
}
