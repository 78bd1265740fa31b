package text

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// MaxPiece is the size of a piece of text, in bytes. A byte can need six in
// JSON, so that a piece and the message around it stay under
// protocol.DefaultHarnessLine.
const MaxPiece = 8 << 10

// Valid returns b as valid UTF-8: every byte that is part of no character
// becomes U+FFFD. It tells how many bytes were replaced.
func Valid(b []byte) (s string, replaced int) {
	if utf8.Valid(b) {
		return string(b), 0
	}
	var out strings.Builder
	out.Grow(len(b) + len(b)/2)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			replaced++
		}
		out.WriteRune(r)
		b = b[size:]
	}
	return out.String(), replaced
}

// Pieces cuts s into pieces of at most [MaxPiece] bytes. An empty text has
// none.
func Pieces(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s != "" {
			n := boundary(s, MaxPiece)
			if !yield(s[:n]) {
				return
			}
			s = s[n:]
		}
	}
}

// Head is the start of s of at most limit bytes, and how many bytes it leaves
// out.
func Head(s string, limit int) (head string, cut int) {
	n := boundary(s, limit)
	return s[:n], len(s) - n
}

// HeadRunes is the start of s of at most limit characters.
func HeadRunes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for i := range s {
		if limit == 0 {
			return s[:i]
		}
		limit--
	}
	return s
}

// boundary is the last end of a character in s at or before limit, and at
// least one character.
func boundary(s string, limit int) int {
	if len(s) <= limit {
		return len(s)
	}
	n := limit
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(s)
	}
	return n
}

// Stream turns a stream of bytes that is read in chunks into valid UTF-8. A
// character that a chunk ends in is kept for the next one. The zero value is
// ready for use.
type Stream struct {
	carry []byte // at most utf8.UTFMax-1 bytes
}

// Add returns the text of the next chunk and how many bytes were replaced.
func (s *Stream) Add(chunk []byte) (text string, replaced int) {
	whole := chunk
	if len(s.carry) > 0 {
		whole = append(s.carry, chunk...)
	}
	n := len(whole) - unfinished(whole)
	text, replaced = Valid(whole[:n])
	s.carry = append([]byte(nil), whole[n:]...)
	return text, replaced
}

// End returns what was kept, now that nothing follows.
func (s *Stream) End() (text string, replaced int) {
	text, replaced = Valid(s.carry)
	s.carry = nil
	return text, replaced
}

// unfinished is how many bytes at the end of b are the start of a character
// that could go on.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
