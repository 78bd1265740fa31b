package bridge

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"
)

// Defaults of an outbox.
const (
	// DefaultSpoolBytes and DefaultSpoolAge bound what waits (remote.md rule 10).
	DefaultSpoolBytes = 64 << 20
	DefaultSpoolAge   = 24 * time.Hour
	// DefaultKeepSent bounds the frames that were sent and not acknowledged, for
	// a server that never acknowledges anything (worker.md row 19). One that
	// does may only be slow.
	DefaultKeepSent = 1000
)

// OutboxConfig bounds an outbox. Zero members are the defaults above.
type OutboxConfig struct {
	SpoolBytes int64
	SpoolAge   time.Duration
	KeepSent   int
	// Strict keeps every frame that is not soft until it is acknowledged,
	// whether it was sent or not (remote.md rule 10).
	Strict bool
	// Now is the wall clock; nil is the real one.
	Now func() time.Time
}

// Outbox is a numbered queue of frames on disk.
type Outbox struct {
	cfg OutboxConfig

	mu      sync.Mutex
	log     *file
	last    int64 // the number given out last
	acked   int64 // every frame up to here is done with
	live    int64 // bytes of the frames that are kept
	acks    bool  // the server has acknowledged something
	lastKey string
	waiting []entry
	changed chan struct{}
}

// entry is a frame that waits, or the gap where frames were.
type entry struct {
	seq  int64
	from int64 // of a gap, else seq
	key  string
	soft bool
	gap  bool
	sent bool
	at   time.Time
	line span
}

// outboxRecord is one line of the file; one of the groups of members is set.
type outboxRecord struct {
	Seq   int64           `json:"seq,omitempty"`
	Key   string          `json:"key,omitempty"`
	Soft  bool            `json:"soft,omitempty"`
	At    time.Time       `json:"at,omitzero"`
	Frame json.RawMessage `json:"frame,omitempty"`

	Acked    int64   `json:"acked,omitempty"`    // every frame up to it
	Gone     []int64 `json:"gone,omitempty"`     // these frames
	GapFrom  int64   `json:"gap_from,omitempty"` // dropped, and to be told
	GapTo    int64   `json:"gap_to,omitempty"`
	LastSeen int64   `json:"last,omitempty"` // numbers up to it are used
	LastKey  string  `json:"last_key,omitempty"`
}

// Frame is what is to be sent next.
type Frame struct {
	// Seq is the number; after it was sent, ask for what comes after it.
	Seq int64
	// Gap is a frame that is no more: those from From to Seq were dropped.
	Gap  bool
	From int64
	// Body is the frame as it was made; nil for a gap. It is the caller's.
	Body []byte
}

// OpenOutbox opens the outbox in the file at path, or makes it.
func OpenOutbox(path string, cfg OutboxConfig) (*Outbox, error) {
	Fill(&cfg.SpoolBytes, DefaultSpoolBytes)
	Fill(&cfg.SpoolAge, DefaultSpoolAge)
	Fill(&cfg.KeepSent, DefaultKeepSent)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	o := &Outbox{cfg: cfg, changed: make(chan struct{})}
	log, err := openFile(path, o.replay)
	if err != nil {
		return nil, err
	}
	o.log = log
	return o, nil
}

// replay takes one line of the file.
func (o *Outbox) replay(line []byte, at span) error {
	var r outboxRecord
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	switch {
	case r.Frame != nil:
		o.add(entry{seq: r.Seq, from: r.Seq, key: r.Key, soft: r.Soft, at: aged(r.At, o.cfg.Now()), line: at})
	case r.Acked > 0:
		o.acks = true
		o.ackTo(r.Acked)
	case r.Gone != nil:
		o.remove(func(e *entry) bool { return slices.Contains(r.Gone, e.seq) })
	case r.GapTo > 0:
		o.putGap(r.GapFrom, r.GapTo, at)
	}
	if r.LastSeen > 0 {
		o.last, o.lastKey = max(o.last, r.LastSeen), r.LastKey
	}
	return nil
}

func (o *Outbox) add(e entry) {
	o.waiting = append(o.waiting, e)
	if e.seq > o.last {
		o.last, o.lastKey = e.seq, e.key
	}
	o.live += int64(e.line.size)
}

// remove drops the entries that match.
func (o *Outbox) remove(match func(*entry) bool) {
	o.waiting = slices.DeleteFunc(o.waiting, func(e entry) bool {
		if !match(&e) {
			return false
		}
		o.live -= int64(e.line.size)
		return true
	})
	o.moveAcked()
}

func (o *Outbox) ackTo(seq int64) {
	n := o.search(seq + 1)
	for _, e := range o.waiting[:n] {
		o.live -= int64(e.line.size)
	}
	o.waiting = o.waiting[n:]
	o.acked = max(o.acked, min(seq, o.last))
	o.moveAcked()
}

// moveAcked moves the cursor over what is gone.
func (o *Outbox) moveAcked() {
	if len(o.waiting) == 0 {
		o.waiting = nil // nothing is kept alive by a part of it
		o.acked = o.last
	} else {
		o.acked = max(o.acked, o.waiting[0].from-1)
	}
}

// search is the index of the first entry with a number of at least seq.
func (o *Outbox) search(seq int64) int {
	i, _ := slices.BinarySearchFunc(o.waiting, seq, func(e entry, seq int64) int { return int(e.seq - seq) })
	return i
}

// Close closes the file.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log.close()
}

// Put numbers a frame, which build makes with its number as one JSON value, and
// writes it to disk. Frames with a key can be acknowledged by it. A soft frame
// may be dropped when the spool is full; the gap is told in its place. An error
// means that nothing was queued.
func (o *Outbox) Put(key string, soft bool, build func(seq int64) []byte) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	seq := o.last + 1
	e := entry{seq: seq, from: seq, key: key, soft: soft, at: o.cfg.Now()}
	line, err := json.Marshal(outboxRecord{Seq: seq, Key: key, Soft: soft, At: e.at, Frame: build(seq)})
	if err != nil {
		return 0, err
	}
	if len(line) > maxRecord {
		return 0, errors.New("expected a frame that fits into a record, got a larger one")
	}
	if e.line, err = o.log.append(line); err != nil {
		return 0, err
	}
	o.add(e)
	err = o.trim()
	close(o.changed)
	o.changed = make(chan struct{})
	return seq, err
}

// Changed is closed at the next Put.
func (o *Outbox) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

// Last is the number of the newest frame, Acked the cursor: every frame up to
// it is done with. Both are 0 at first.
func (o *Outbox) Last() int64 { o.mu.Lock(); defer o.mu.Unlock(); return o.last }

// LastKey is the key of the newest frame, also where that one is gone; empty at
// first.
func (o *Outbox) LastKey() string { o.mu.Lock(); defer o.mu.Unlock(); return o.lastKey }

// Bytes is what the frames take that are kept.
func (o *Outbox) Bytes() int64 { o.mu.Lock(); defer o.mu.Unlock(); return o.live }

// Acked is the cumulative cursor.
func (o *Outbox) Acked() int64 { o.mu.Lock(); defer o.mu.Unlock(); return o.acked }

// Next is the first frame that waits with a number above after; false where
// there is none.
func (o *Outbox) Next(after int64) (Frame, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.search(after + 1)
	if i == len(o.waiting) {
		return Frame{}, false, nil
	}
	e := &o.waiting[i]
	if e.gap {
		return Frame{Seq: e.seq, From: e.from, Gap: true}, true, nil
	}
	line, err := o.log.read(e.line)
	if err != nil {
		return Frame{}, false, err
	}
	var r outboxRecord
	if err := json.Unmarshal(line, &r); err != nil {
		return Frame{}, false, err
	}
	return Frame{Seq: e.seq, From: e.seq, Body: r.Frame}, true, nil
}

// Sent says that the frame was written to a connection: it may now be dropped
// where nobody acknowledges it.
func (o *Outbox) Sent(seq int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i, ok := slices.BinarySearchFunc(o.waiting, seq, func(e entry, seq int64) int { return int(e.seq - seq) })
	if ok {
		o.waiting[i].sent = true
	}
}

// Ack says that the server has every frame up to seq. Numbers that were never
// given out count as the last one.
func (o *Outbox) Ack(seq int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acks = true
	seq = min(seq, o.last)
	if seq <= o.acked {
		return nil
	}
	o.ackTo(seq)
	return o.write(outboxRecord{Acked: seq})
}

// AckKey says that the server has the frames of a key, as far as they were sent.
func (o *Outbox) AckKey(key string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acks = true
	return o.drop(func(e *entry) bool { return e.key == key && e.sent })
}

// drop removes entries and records it.
func (o *Outbox) drop(match func(*entry) bool) error {
	var gone []int64
	for i := range o.waiting {
		if match(&o.waiting[i]) {
			gone = append(gone, o.waiting[i].seq)
		}
	}
	if gone == nil {
		return nil
	}
	o.remove(func(e *entry) bool {
		_, ok := slices.BinarySearch(gone, e.seq)
		return ok
	})
	return o.write(outboxRecord{Gone: gone})
}

// write records a change and rewrites the file where it is mostly history.
func (o *Outbox) write(r outboxRecord) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := o.log.append(line); err != nil {
		return err
	}
	o.compact()
	return nil
}
