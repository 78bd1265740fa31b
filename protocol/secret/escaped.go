package secret

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// What other encoders write into a JSON string cannot be listed as forms: any
// character may stand there as \u and four digits, in either case of letters. So a
// text that has such an escape is also read as a JSON string, from each place on at
// which a value may begin, and as one inside another, where each backslash is
// doubled.

// escape is how such an escape begins.
var escape = []byte(`\u`)

// nesting is how many JSON strings inside one another are read.
const nesting = 2

// escapedByte is the most that a byte of a value takes in such a text, in bytes:
// a doubled backslash, u and four digits.
const escapedByte = 7

// matchEscaped is what match tells, where it may have found n bytes already, for
// values with escapes.
func (m *Masker) matchEscaped(b []byte, n int, partial bool) (int, bool) {
	if b[0] != '\\' {
		for _, value := range m.values[b[0]] {
			plain := 0
			for plain < len(value) && plain < len(b) && b[plain] == value[plain] && b[plain] != '\\' {
				plain++
			}
			if plain < len(value) && plain < len(b) && b[plain] != '\\' {
				continue // most end here
			}
			for depth := 1; depth <= nesting; depth++ {
				size, more := escaped(b, value, plain, depth)
				n, partial = max(n, size), partial || more
			}
		}
		return n, partial
	}
	for depth := 1; depth <= nesting; depth++ {
		r, size, more := character(b, depth)
		partial = partial || more
		if size == 0 {
			continue
		}
		var first [utf8.UTFMax]byte
		utf8.EncodeRune(first[:], r)
		for _, value := range m.values[first[0]] {
			size, more := escaped(b, value, 0, depth)
			n, partial = max(n, size), partial || more
		}
	}
	return n, partial
}

// escaped is the length of a value at the start of b, which is read as a string
// of a depth, and whether b may be the beginning of it. So many bytes of both are
// equal.
func escaped(b, value []byte, equal, depth int) (n int, partial bool) {
	n, value = equal, value[equal:]
	for len(value) > 0 {
		if n == len(b) {
			return 0, true
		}
		if b[n] != '\\' {
			if b[n] != value[0] {
				return 0, false
			}
			n++
			value = value[1:]
			continue
		}
		r, size, more := character(b[n:], depth)
		if size == 0 {
			return 0, more
		}
		var text [utf8.UTFMax]byte
		width := utf8.EncodeRune(text[:], r)
		if !bytes.HasPrefix(value, text[:width]) {
			return 0, false
		}
		n += size
		value = value[width:]
	}
	return n, false
}

// character reads the escape at the start of b, which begins with a backslash.
// Where there is none the size is 0; more tells that b may be the beginning of one.
func character(b []byte, depth int) (r rune, size int, more bool) {
	r, size, more = unit(b, depth)
	if size == 0 || !utf16.IsSurrogate(r) {
		return r, size, more
	}
	if size == len(b) {
		return 0, 0, true
	}
	low, rest, more := unit(b[size:], depth)
	if rest == 0 {
		return 0, 0, more
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, 0, false
	}
	return r, size + rest, false
}

// unit is character for one escape, which may be half of a character.
func unit(b []byte, depth int) (r rune, size int, more bool) {
	if depth == 2 && len(b) > 1 && b[1] != '\\' { // of the outer string alone
		depth = 1
	}
	for ; size < depth; size++ {
		if size == len(b) {
			return 0, 0, true
		}
		if b[size] != '\\' {
			return 0, 0, false
		}
	}
	// A quote, a backslash or a slash may be escaped once more by the outer string.
	if depth == 2 && size+1 < len(b) && b[size] == '\\' && bytes.IndexByte([]byte(`"\/`), b[size+1]) >= 0 {
		size++
	}
	if size == len(b) || depth == 2 && size+1 == len(b) && b[size] == '\\' {
		return 0, 0, true
	}
	switch c := b[size]; c {
	case '"', '\\', '/':
		return rune(c), size + 1, false
	case 'b', 'f', 'n', 'r', 't':
		return rune("\b\f\n\r\t"[bytes.IndexByte([]byte("bfnrt"), c)]), size + 1, false
	case 'u':
		return hex(b, size+1)
	}
	return 0, 0, false
}

// hex reads four hexadecimal digits.
func hex(b []byte, at int) (r rune, size int, more bool) {
	for i := at; i < at+4; i++ {
		if i == len(b) {
			return 0, 0, true
		}
		c := b[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, at + 4, false
}
