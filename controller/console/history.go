package console

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"prp/controller"
	"prp/protocol"
)

// history is what is kept of a run's stream, as lines for clients. It is
// guarded by the run's lock. The lines themselves never change, so that a
// client may write them without the lock.
type history struct {
	limit   int // of size, in bytes
	size    int
	records []record
	next    int64 // the index of the next record
	// reduced is true once anything was merged or left out.
	reduced bool
}

// record is one line of the runner, or what is left of several.
type record struct {
	first, next int64 // the indexes that it stands for: first <= i < next
	line        []byte
	event       *eventKey // nil for what is no event
	gap         *gap
}

// eventKey is what a reduction has to know of an event.
type eventKey struct {
	seq          int64
	priority     int
	essential    bool
	turnID, item string
	delta        string
}

// gap is what is told of events that are not kept.
type gap struct {
	// Events counts them; FromSeq and ToSeq are the first and last sequence
	// number. Receipts and diagnostics that went with them are not counted.
	Events  int64 `json:"events"`
	FromSeq int64 `json:"fromSeq"`
	ToSeq   int64 `json:"toSeq"`
	// Text is the text of the deltas among them, in order, neighbours merged.
	Text []gapText `json:"text"`
	// Cut is true where some of the text is not kept either.
	Cut bool `json:"cut"`

	textCost int // of Text, in bytes; it is asked for with every record that is merged
}

type gapText struct {
	TurnID string          `json:"turnId"`
	ItemID string          `json:"itemId"`
	Text   controller.Text `json:"text"`
}

// recordOverhead is what a record costs beside its line, in bytes, roughly.
const recordOverhead = 160

func (r *record) cost() int {
	n := recordOverhead + len(r.line)
	if r.event != nil {
		n += len(r.event.delta)
	}
	if r.gap != nil {
		n += r.gap.textCost
	}
	return n
}

// add appends a line of the runner.
func (h *history) add(line []byte, m *protocol.StreamMessage) {
	wrapped := make([]byte, 0, len(line)+40)
	wrapped = append(wrapped, `{"index":`...)
	wrapped = strconv.AppendInt(wrapped, h.next, 10)
	wrapped = append(wrapped, `,"line":`...)
	wrapped = append(wrapped, line...)
	h.push(record{line: append(wrapped, "}\n"...), event: keyOf(m)})
}

// addProblem appends a recorded line that cannot be read.
func (h *history) addProblem(p controller.Problem) {
	line, err := json.Marshal(struct {
		Index   int64              `json:"index"`
		Problem controller.Problem `json:"problem"`
	}{h.next, p})
	if err != nil { // strings and a number
		return
	}
	h.push(record{line: append(line, '\n')})
}

func (h *history) push(r record) {
	r.first, r.next = h.next, h.next+1
	h.next++
	h.records = append(h.records, r)
	h.size += r.cost()
	if h.size > h.limit {
		h.reduce()
	}
}

func keyOf(m *protocol.StreamMessage) *eventKey {
	if m.Kind != protocol.KindEvent {
		return nil
	}
	e := m.Event
	k := &eventKey{seq: e.SourceSeq, priority: e.Priority, essential: essential(e.EventType), turnID: e.TurnID, item: e.ItemID}
	if e.EventType == protocol.EventItemDelta {
		k.delta = controller.DeltaText(e)
	}
	return k
}

// essential are the events without which a page cannot be understood, and of
// which a sane run has few.
func essential(t protocol.EventType) bool {
	return t.Priority() == protocol.PriorityEnd || t.EndsRequest() || t == protocol.EventRequestCreated ||
		t == protocol.EventTurnSubmitted || t.EndsSession()
}

// reduction is one way to make a history smaller: which records become part of
// a gap, and whether gaps keep their text.
type reduction struct {
	merge func(*record) bool
	cut   bool
}

// reductions are tried in turn until the history is small enough: first deltas
// are merged, then their text goes, then what is ordinary, then all of it.
var reductions = []reduction{
	{merge: func(r *record) bool { return r.event != nil && r.event.priority == protocol.PriorityBulk }},
	{merge: func(r *record) bool { return r.event != nil && r.event.priority == protocol.PriorityBulk }, cut: true},
	{merge: func(r *record) bool { return r.event == nil || !r.event.essential }, cut: true},
	{merge: func(*record) bool { return true }, cut: true},
}

// reduce makes the history at most three quarters of its limit, so that it is
// not called again at once. The newest record stays whatever happens.
func (h *history) reduce() {
	h.reduced = true
	target := h.limit / 4 * 3
	for _, how := range reductions {
		if h.size <= target || len(h.records) < 2 {
			return
		}
		h.apply(how, target)
	}
}

// apply goes from the oldest record on until the target is reached.
func (h *history) apply(how reduction, target int) {
	last := len(h.records) - 1
	kept := make([]record, 0, len(h.records))
	size, i := h.size, 0
	for ; i < last && size > target; i++ {
		r := h.records[i]
		if r.gap == nil && !how.merge(&r) {
			kept = append(kept, r)
			continue
		}
		before := r.cost()
		if n := len(kept); n > 0 && kept[n-1].gap != nil {
			before += kept[n-1].cost()
			r = join(kept[n-1], r, how.cut)
			kept = kept[:n-1]
		} else {
			r = join(record{first: r.first, next: r.first, gap: &gap{}}, r, how.cut)
		}
		kept = append(kept, r)
		size += r.cost() - before
	}
	h.records = slices.Clip(append(kept, h.records[i:]...))
	h.size = size
}

// join is a, a gap, which from now on stands for b as well. It is changed in
// place and its texts grow in place: a long run has very many deltas, and to copy
// what was merged before with each of them would take minutes. Nobody else holds
// a gap; clients are given its text as it is at that moment.
func join(a, b record, cut bool) record {
	g, other := a.gap, b.gap
	if other == nil {
		other = gapOf(b.event)
	}
	if g.Events == 0 {
		g.FromSeq = other.FromSeq
	}
	if other.Events > 0 {
		g.ToSeq = other.ToSeq
	}
	g.Events += other.Events
	g.Cut = g.Cut || other.Cut
	if cut {
		g.Cut = g.Cut || len(g.Text)+len(other.Text) > 0
		g.Text, g.textCost = nil, 0
	} else {
		g.addTexts(other.Text)
	}
	return record{first: a.first, next: b.next, gap: g}
}

func gapOf(e *eventKey) *gap {
	if e == nil {
		return &gap{}
	}
	g := &gap{Events: 1, FromSeq: e.seq, ToSeq: e.seq}
	if e.delta != "" {
		g.addTexts([]gapText{{TurnID: e.turnID, ItemID: e.item, Text: controller.Text(e.delta)}})
	}
	return g
}

// addTexts appends texts; one of the same item as the one before it goes on there.
func (g *gap) addTexts(texts []gapText) {
	for _, t := range texts {
		g.textCost += len(t.Text)
		if n := len(g.Text); n > 0 && g.Text[n-1].TurnID == t.TurnID && g.Text[n-1].ItemID == t.ItemID {
			g.Text[n-1].Text = append(g.Text[n-1].Text, t.Text...)
			continue
		}
		g.textCost += recordOverhead
		g.Text = append(g.Text, t)
	}
}

// maxBatch bounds what is written to a client in one write, in bytes; one
// record always fits.
const maxBatch = 256 << 10

// read gives the lines from an index on, as many as one write should have, and
// the index after them. A client that stands inside a gap gets what is left of
// it without its text, a part of which it may have had.
func (h *history) read(from int64) (lines [][]byte, next int64) {
	i, _ := slices.BinarySearchFunc(h.records, from, func(r record, at int64) int {
		if r.next <= at {
			return -1
		}
		return 1
	})
	size := 0
	for ; i < len(h.records) && (size == 0 || size < maxBatch); i++ {
		r := &h.records[i]
		line := r.line
		if r.gap != nil {
			line = gapLine(max(from, r.first), r)
		}
		lines = append(lines, line)
		size += len(line)
		from = r.next
	}
	return lines, from
}

// gapLine is a gap as a client sees it that stands at an index inside it.
func gapLine(at int64, r *record) []byte {
	told := *r.gap
	if at > r.first && len(told.Text) > 0 {
		told.Text, told.Cut = nil, true
	}
	if told.Text == nil {
		told.Text = []gapText{}
	}
	line, err := json.Marshal(struct {
		Index int64 `json:"index"`
		Next  int64 `json:"next"`
		Gap   gap   `json:"gap"`
	}{at, r.next, told})
	if err != nil { // strings and numbers
		return nil
	}
	return append(bytes.TrimSpace(line), '\n')
}
