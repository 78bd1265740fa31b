package taskrun

import (
	"bytes"
	"encoding/json"

	"prp/controller/bridge"
	"prp/protocol"
)

const (
	// maxVeiled bounds the lines that are held back, in bytes: a line waits
	// only while its text may end with the beginning of a secret.
	maxVeiled = 1 << 20
	// maxVeiledTexts bounds the texts that are followed at a time.
	maxVeiledTexts = 4096
)

// veil masks the lines of a run before they go anywhere (remote.md rule 7), also
// a secret that is split over several deltas of an item. Lines come out in their
// order; one is held back while the end of its text may be the beginning of a
// secret, at most until its item has ended. It is for one goroutine.
type veil struct {
	mask    *bridge.Masker
	decoder *protocol.Decoder
	// out takes a masked line with its newline, and its event where it has one.
	out func(line []byte, e *protocol.Event)

	queue []*veiled
	size  int
	texts map[textKey]*veiledText
}

// textKey tells texts apart: the deltas of a stream of an item.
type textKey struct{ turn, item, stream string }

// veiledText is a text that comes in deltas.
type veiledText struct {
	mask *bridge.Stream
	// last is the line whose end is held back, nil where nothing is.
	last *veiled
}

// veiled is a line on its way.
type veiled struct {
	line  []byte
	event *protocol.Event // nil where the line has none
	// member is the payload's text that is followed, payload the others; text is
	// what can be shown of it.
	member  string
	payload map[string]json.RawMessage
	text    []byte
	// open tells that more of the text may come out.
	open bool
}

func newVeil(mask *bridge.Masker, out func(line []byte, e *protocol.Event)) *veil {
	return &veil{mask: mask, decoder: protocol.NewDecoder(), out: out, texts: map[textKey]*veiledText{}}
}

// deltaMembers are the names under which harnesses put the text of a delta; they
// are those of package controller.
var deltaMembers = []string{"delta", "text", "content", "output"}

// add takes a line without its newline.
func (v *veil) add(line []byte) {
	l := &veiled{line: append([]byte(nil), line...)}
	if m, err := v.decoder.Stream(l.line); err == nil && m.Event != nil {
		l.event = m.Event
		v.follow(l)
	}
	v.queue = append(v.queue, l)
	v.size += len(l.line)
	v.release()
	for v.size > maxVeiled {
		v.give(v.queue[0])
		v.release()
	}
}

// follow looks for a text that goes on in the next event, or ends.
func (v *veil) follow(l *veiled) {
	e := l.event
	switch {
	case e.EventType == protocol.EventItemDelta:
		v.delta(l)
	case e.EventType == protocol.EventItemCompleted, e.EventType == protocol.EventItemFailed:
		v.end(func(k textKey) bool { return k.turn == e.TurnID && k.item == e.ItemID })
	case e.EventType.EndsTurn(), e.EventType.EndsSession(), e.EventType == protocol.EventHarnessExited, e.EventType == protocol.EventRunTerminal:
		v.end(func(textKey) bool { return true })
	}
}

func (v *veil) delta(l *veiled) {
	var stream string
	if json.Unmarshal(l.event.Payload, &l.payload) != nil {
		return
	}
	_ = json.Unmarshal(l.payload["stream"], &stream) // absent is a stream as well
	text := ""
	for _, name := range deltaMembers {
		if json.Unmarshal(l.payload[name], &text) == nil && text != "" {
			l.member = name
			break
		}
	}
	if l.member == "" {
		return
	}
	if len(v.texts) >= maxVeiledTexts {
		v.end(func(textKey) bool { return true })
	}
	key := textKey{l.event.TurnID, l.event.ItemID, stream}
	t := v.texts[key]
	if t == nil {
		t = &veiledText{mask: v.mask.Stream()}
		v.texts[key] = t
	}
	l.text = append(l.text, t.mask.Add([]byte(text))...)
	if t.last != nil {
		t.last.open = false // what was held back stands in this line now
		t.last = nil
	}
	if t.mask.Held() > 0 {
		l.open, t.last = true, l
	}
}

// end ends texts: what was held back was no secret.
func (v *veil) end(which func(textKey) bool) {
	for key, t := range v.texts {
		if !which(key) {
			continue
		}
		if t.last != nil {
			t.last.text = append(t.last.text, t.mask.End()...)
			t.last.open = false
		}
		delete(v.texts, key)
	}
}

// give gives a line up that is waited for too long: what may be the beginning of
// a secret is masked.
func (v *veil) give(l *veiled) {
	for key, t := range v.texts {
		if t.last == l {
			l.text = append(l.text, bridge.Masked...)
			delete(v.texts, key)
		}
	}
	l.open = false
}

// release hands on what waits for nothing.
func (v *veil) release() {
	for len(v.queue) > 0 && !v.queue[0].open {
		l := v.queue[0]
		v.queue[0] = nil
		v.queue = v.queue[1:]
		v.size -= len(l.line)
		v.emit(l)
	}
}

// close hands on everything that is left.
func (v *veil) close() {
	v.end(func(textKey) bool { return true })
	v.release()
}

func (v *veil) emit(l *veiled) {
	line, e := l.line, l.event
	if l.member != "" {
		l.payload[l.member] = protocol.AppendString(nil, string(l.text))
		if payload, err := json.Marshal(l.payload); err == nil {
			changed := *e
			changed.Payload = payload
			line = protocol.AppendEvent(nil, &changed)
			line, e = line[:len(line)-1], &changed
		}
	}
	masked := v.mask.JSON(line)
	if !bytes.Equal(masked, line) {
		// A line that is none any more, since a word of the protocol is a
		// secret, tells nothing.
		e = nil
		if m, err := v.decoder.Stream(masked); err == nil {
			e = m.Event
		}
	}
	v.out(append(append([]byte(nil), masked...), '\n'), e)
}
