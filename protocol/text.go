package protocol

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Masks for eight bytes at a time: every low bit and every high bit of a byte.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special8 marks which of eight bytes of a string are not ordinary: control
// characters, quotation marks, backslashes and all beyond ASCII. The high bit of
// the first such byte is right; above it a borrow of the subtractions may have
// set more.
func special8(w uint64) uint64 {
	control := w - lowBits*' '
	quote := (w ^ lowBits*'"') - lowBits
	slash := (w ^ lowBits*'\\') - lowBits
	return (w | control | quote | slash) & highBits
}

// str checks the string that begins at at, and returns where it ends and
// whether it has escapes.
func (s *scanner) str(at int) (end int, escaped bool, err error) {
	src, i := s.src, at+1
	for {
		for i+8 <= len(src) {
			special := special8(binary.LittleEndian.Uint64(src[i:]))
			if special != 0 {
				i += bits.TrailingZeros64(special) / 8
				break
			}
			i += 8
		}
		if i >= len(src) {
			return 0, false, s.reject(len(src), "unexpected end")
		}
		switch c := src[i]; {
		case c == '"':
			return i + 1, escaped, nil
		case c == '\\':
			n := escapeLen(src[i:])
			if n == 0 {
				return 0, false, s.reject(i, "an escape that is unknown, cut short or a lone surrogate")
			}
			escaped = true
			i += n
		case c < ' ':
			return 0, false, s.reject(i, "control character inside a string")
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				return 0, false, s.reject(i, "invalid UTF-8")
			}
			i += n
		}
	}
}

// escapeLen is the length of the escape that b begins with, a pair of
// surrogates being one; 0 where it is not valid.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
	default:
		return 0
	}
	unit, ok := hex4(b[2:])
	switch {
	case !ok:
		return 0
	case !utf16.IsSurrogate(unit):
		return 6
	case len(b) < 12 || b[6] != '\\' || b[7] != 'u':
		return 0
	}
	low, ok := hex4(b[8:])
	if !ok || utf16.DecodeRune(unit, low) == utf8.RuneError {
		return 0
	}
	return 12
}

// hex4 is the number that four hexadecimal digits stand for.
func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var v rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// appendUnquoted appends the content of a checked JSON string.
func appendUnquoted(dst, quoted []byte) []byte {
	b := quoted[1 : len(quoted)-1]
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:i]...)
		n := escapeLen(b[i:])
		dst = appendUnescaped(dst, b[i:i+n])
		b = b[i+n:]
	}
}

// appendUnescaped appends what one checked escape stands for.
func appendUnescaped(dst, esc []byte) []byte {
	switch esc[1] {
	case 'b':
		return append(dst, '\b')
	case 'f':
		return append(dst, '\f')
	case 'n':
		return append(dst, '\n')
	case 'r':
		return append(dst, '\r')
	case 't':
		return append(dst, '\t')
	case 'u':
		r, _ := hex4(esc[2:])
		if len(esc) == 12 {
			low, _ := hex4(esc[8:])
			r = utf16.DecodeRune(r, low)
		}
		return utf8.AppendRune(dst, r)
	}
	return append(dst, esc[1])
}

// alias is a string that shares its bytes with b. It is used only for values
// whose documentation says that they live as long as the line.
func alias(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// CheckJSON checks that raw is exactly one JSON value under the rules of spec
// section 1: UTF-8, no duplicate name at any depth, no lone surrogate, nesting
// of at most [MaxDepth] (an outermost object or array counts as 1), every
// number within float64's range (too small to be told from zero is allowed).
// The error names the place and the rule and none of the content.
func CheckJSON(raw []byte) error {
	var s scanner
	s.reset(raw)
	if err := s.value(); err != nil {
		return err
	}
	return s.finish()
}
