package translate

import (
	"bytes"

	"prp/harness/text"
)

// Repair makes a line of an agent valid Unicode: bytes that are no UTF-8 and
// escapes of lone surrogates become U+FFFD. It tells how many were replaced. A
// line that needs nothing is returned as it is.
func Repair(line []byte) (repaired []byte, replaced int) {
	s, bad := text.Valid(line)
	if bad > 0 {
		line = []byte(s)
	}
	if !bytes.Contains(line, []byte(`\u`)) {
		return line, bad
	}
	out, from := []byte(nil), 0
	for i := 0; i < len(line); {
		if line[i] != '\\' {
			i++
			continue
		}
		width, lone := escape(line[i:])
		if lone {
			out = append(append(out, line[from:i]...), `\ufffd`...)
			from = i + width
			bad++
		}
		i += width
	}
	if from == 0 {
		return line, bad
	}
	return append(out, line[from:]...), bad
}

const unicodeEscape = len(`\u0000`)

// escape is the width of the escape at the start of b, a surrogate pair being
// one; lone is an escape of half a pair.
func escape(b []byte) (width int, lone bool) {
	unit, ok := codeUnit(b)
	switch {
	case !ok:
		return min(2, len(b)), false
	case unit < 0xd800 || unit > 0xdfff:
		return unicodeEscape, false
	case unit <= 0xdbff:
		if low, ok := codeUnit(b[unicodeEscape:]); ok && low >= 0xdc00 && low <= 0xdfff {
			return 2 * unicodeEscape, false
		}
	}
	return unicodeEscape, true
}

// codeUnit reads \u and four hexadecimal digits.
func codeUnit(b []byte) (unit int, ok bool) {
	if len(b) < unicodeEscape || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:unicodeEscape] {
		unit <<= 4
		switch {
		case c >= '0' && c <= '9':
			unit |= int(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			unit |= int(c|0x20-'a') + 10
		default:
			return 0, false
		}
	}
	return unit, true
}
