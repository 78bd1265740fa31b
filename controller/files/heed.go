package files

import (
	"io"
	"unicode/utf8"
)

// maxSteps is how many steps of an instruction and a byte a pattern may take in one
// go: some tenths of a second.
const maxSteps = 1 << 24

// steps is about what a line costs: its masking, byte by byte, and the pattern.
func (l *looker) steps(line []byte) (n int64) {
	if l.mask != nil {
		n = int64(len(line) + 2*l.mask.Edge)
	}
	if l.re != nil {
		n += int64(len(line)+1) * int64(len(l.prog.Inst))
	}
	return n
}

// heeding is a line that ends where the search is to end: package regexp cannot
// be told to stop.
type heeding struct {
	text []byte
	goOn func() bool
}

// ReadRune implements [io.RuneReader].
func (h *heeding) ReadRune() (rune, int, error) {
	if len(h.text) == 0 || !h.goOn() {
		return 0, 0, io.EOF
	}
	r, n := utf8.DecodeRune(h.text)
	h.text = h.text[n:]
	return r, n, nil
}
