package bridge

import (
	"encoding/json"
	"slices"
	"time"
)

// trim keeps the limits: what was sent and is not acknowledged for too long is
// dropped, and where the spool is full the oldest soft frames are.
func (o *Outbox) trim() error {
	oldest := o.cfg.Now().Add(-o.cfg.SpoolAge)
	var err error
	if !o.cfg.Strict {
		err = o.trimSent(oldest)
	}
	dropped := false
	for err == nil {
		over := o.live > o.cfg.SpoolBytes
		if !over && (len(o.waiting) == 0 || !o.waiting[0].at.Before(oldest)) {
			break // later ones are younger
		}
		i := slices.IndexFunc(o.waiting, func(e entry) bool { return e.soft && !e.gap && (over || e.at.Before(oldest)) })
		if i < 0 {
			break
		}
		err = o.toGap(i)
		dropped = true
	}
	if err == nil && dropped {
		// Else the file would grow for as long as nobody acknowledges anything.
		o.compact()
	}
	return err
}

// trimSent drops what was sent and is not acknowledged for too long.
func (o *Outbox) trimSent(oldest time.Time) error {
	extra := -o.cfg.KeepSent
	for i := range o.waiting {
		if o.waiting[i].sent {
			extra++
		}
	}
	return o.drop(func(e *entry) bool {
		if !e.sent {
			return false
		}
		extra--
		return extra >= 0 && !o.acks || e.at.Before(oldest)
	})
}

// toGap replaces a soft frame by a gap and joins it with its neighbours.
func (o *Outbox) toGap(i int) error {
	from, to := o.waiting[i].from, o.waiting[i].seq
	if i > 0 && o.waiting[i-1].gap && o.waiting[i-1].seq == from-1 {
		from = o.waiting[i-1].from
	}
	line, err := json.Marshal(outboxRecord{GapFrom: from, GapTo: to})
	if err != nil {
		return err
	}
	at, err := o.log.append(line)
	if err != nil {
		return err
	}
	o.putGap(from, to, at)
	return nil
}

// putGap replaces what stands from one number to another.
func (o *Outbox) putGap(from, to int64, at span) {
	when := o.cfg.Now()
	o.remove(func(e *entry) bool { return e.from >= from && e.seq <= to })
	i, _ := slices.BinarySearchFunc(o.waiting, from, func(e entry, seq int64) int { return int(e.seq - seq) })
	o.waiting = slices.Insert(o.waiting, i, entry{seq: to, from: from, soft: true, gap: true, at: when, line: at})
	o.live += int64(at.size)
	o.last = max(o.last, to)
	o.acked = min(o.acked, from-1)
}

// compact has the file rewritten where that is due. It only saves room: a file
// that is broken says so at the next frame.
func (o *Outbox) compact() {
	var kept []entry
	var live int64
	o.log.compact(o.live, func(next *file) error {
		kept = make([]entry, 0, len(o.waiting))
		head, err := json.Marshal(outboxRecord{LastSeen: o.last, LastKey: o.lastKey})
		if err != nil {
			return err
		}
		if _, err := next.append(head); err != nil {
			return err
		}
		for _, e := range o.waiting {
			line, err := o.log.read(e.line)
			if err != nil {
				return err
			}
			if e.line, err = next.append(line); err != nil {
				return err
			}
			live += int64(e.line.size)
			kept = append(kept, e)
		}
		return nil
	}, func() {
		o.waiting, o.live = kept, live
		if len(kept) == 0 {
			o.acked = o.last
		}
	})
}
