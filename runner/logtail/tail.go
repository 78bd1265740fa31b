package logtail

import (
	"bytes"
	"unicode/utf8"
)

// Tail is a bounded tail of lines. The lines stand one after the other in one
// buffer, whose front is given up as they are dropped.
type Tail struct {
	maxLines, maxBytes int

	buf     []byte
	start   int   // of the oldest line in buf
	lengths []int // ring: the lengths of the lines in buf[start:]
	first   int   // place of the oldest line in lengths
	count   int
	dropped int64
}

// New returns an empty tail that keeps at most maxLines lines and maxBytes
// bytes; limits below 0 count as 0. With a limit of 0 every line is dropped.
func New(maxLines, maxBytes int) *Tail {
	return &Tail{maxLines: max(maxLines, 0), maxBytes: max(maxBytes, 0)}
}

// Add appends text as one line or, where it has newlines, as several, each with
// the prefix. It keeps no reference to text.
func (t *Tail) Add(prefix string, text []byte) {
	for {
		line, rest, more := bytes.Cut(text, []byte{'\n'})
		if more {
			line = bytes.TrimSuffix(line, []byte{'\r'})
		}
		t.add(prefix, line)
		if !more || len(rest) == 0 {
			return
		}
		text = rest
	}
}

// add appends one line and drops the oldest ones beyond the limits.
func (t *Tail) add(prefix string, line []byte) {
	if t.maxLines == 0 || t.maxBytes == 0 {
		t.dropped++
		return
	}
	if t.count == t.maxLines {
		t.dropOldest()
	}
	t.makeRoom()
	before := len(t.buf)
	t.buf = appendValid(t.buf, prefix, line, t.maxBytes)
	t.lengths[(t.first+t.count)%len(t.lengths)] = len(t.buf) - before
	t.count++
	for len(t.buf)-t.start > t.maxBytes {
		t.dropOldest()
	}
}

// makeRoom moves the lines to the front of the buffer once as much is dead as
// can be alive, so that each byte is moved once on average, and sees to a place
// for the length of one more line.
func (t *Tail) makeRoom() {
	if t.start >= t.maxBytes {
		t.buf = t.buf[:copy(t.buf, t.buf[t.start:])]
		t.start = 0
	}
	if t.count < len(t.lengths) {
		return
	}
	grown := make([]int, min(2*t.count+1, t.maxLines))
	n := copy(grown, t.lengths[t.first:])
	copy(grown[n:], t.lengths[:t.first])
	t.lengths, t.first = grown, 0
}

func (t *Tail) dropOldest() {
	t.start += t.lengths[t.first]
	t.first = (t.first + 1) % len(t.lengths)
	t.count--
	t.dropped++
}

// appendValid appends prefix and line, at most limit bytes of whole characters,
// with U+FFFD for each byte that is not UTF-8.
func appendValid(dst []byte, prefix string, line []byte, limit int) []byte {
	limit += len(dst)
	for _, r := range prefix {
		if len(dst)+utf8.RuneLen(r) > limit {
			return dst
		}
		dst = utf8.AppendRune(dst, r)
	}
	if utf8.Valid(line) {
		return append(dst, line[:cut(line, limit-len(dst))]...)
	}
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		if len(dst)+utf8.RuneLen(r) > limit {
			return dst
		}
		dst = utf8.AppendRune(dst, r)
		line = line[size:]
	}
	return dst
}

// cut is the largest length of whole characters of a valid text that is at
// most limit.
func cut(text []byte, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return limit
}

// Snapshot returns a copy of the retained lines, oldest first and never nil,
// how many bytes they have, and how many lines were dropped.
func (t *Tail) Snapshot() (lines []string, retainedBytes int, dropped int64) {
	lines = make([]string, t.count)
	at := t.start
	for i := range lines {
		n := t.lengths[(t.first+i)%len(t.lengths)]
		lines[i] = string(t.buf[at : at+n])
		at += n
	}
	return lines, len(t.buf) - t.start, t.dropped
}
