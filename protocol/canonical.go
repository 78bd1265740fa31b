package protocol

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"
)

// AppendCanonical appends the canonical form of one JSON value to dst: names of
// every object sorted by UTF-16 code units as RFC 8785 does, no blanks,
// strings with the fewest escapes, numbers by their exact decimal value. Two
// values have the same form exactly where spec section 2 calls them equal. The
// form is itself valid JSON. The input is checked as [CheckJSON] does; on error
// dst is returned as it was.
//
// Unlike RFC 8785, numbers are not rounded to float64: 9007199254740993 and
// 9007199254740992 differ, 1, 1.0 and 1e0 do not, and -0 is 0.
func AppendCanonical(dst, json []byte) ([]byte, error) {
	var c canonicalizer
	return c.append(dst, json)
}

// canonicalizer prints one value. Names and member bounds of the objects that
// are open are kept in two stacks, so that nesting costs no allocation each.
type canonicalizer struct {
	s       scanner
	keys    []byte
	members []canonicalMember
	scratch []byte
}

// canonicalMember is one member of an open object: where its name stands in
// keys and its printed text, with a comma at the end, in the output.
type canonicalMember struct {
	key, keyEnd   int
	text, textEnd int
}

func (c *canonicalizer) append(dst, json []byte) ([]byte, error) {
	c.s.reset(json)
	out, err := c.value(dst)
	if err == nil {
		err = c.s.finish()
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (c *canonicalizer) value(dst []byte) ([]byte, error) {
	if err := c.s.next(); err != nil {
		return dst, err
	}
	return c.current(dst)
}

// current prints the value whose first token was just read.
func (c *canonicalizer) current(dst []byte) ([]byte, error) {
	token := c.s.src[c.s.start:c.s.end]
	switch c.s.kind {
	case kindObject:
		return c.object(dst)
	case kindArray:
		return c.array(dst)
	case kindString:
		c.scratch = appendUnquoted(c.scratch[:0], token)
		return appendQuoted(dst, c.scratch), nil
	case kindNumber:
		return appendNumber(dst, token), nil
	}
	return append(dst, token...), nil
}

func (c *canonicalizer) array(dst []byte) ([]byte, error) {
	dst = append(dst, '[')
	for first := true; ; first = false {
		if err := c.s.next(); err != nil {
			return dst, err
		}
		if c.s.kind == ']' {
			return append(dst, ']'), nil
		}
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = c.current(dst); err != nil {
			return dst, err
		}
	}
}

func (c *canonicalizer) object(dst []byte) ([]byte, error) {
	members, keys := len(c.members), len(c.keys)
	dst = append(dst, '{')
	body := len(dst)
	for {
		if err := c.s.next(); err != nil {
			return dst, err
		}
		if c.s.kind != kindString {
			break
		}
		m := canonicalMember{key: len(c.keys), text: len(dst)}
		c.keys = appendUnquoted(c.keys, c.s.src[c.s.start:c.s.end])
		m.keyEnd = len(c.keys)
		dst = append(appendQuoted(dst, c.keys[m.key:m.keyEnd]), ':')
		var err error
		if dst, err = c.value(dst); err != nil {
			return dst, err
		}
		dst = append(dst, ',')
		m.textEnd = len(dst)
		c.members = append(c.members, m)
	}
	c.sort(dst, body, c.members[members:])
	c.members, c.keys = c.members[:members], c.keys[:keys]
	if len(dst) > body {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}'), nil
}

// sort puts the printed members of one object, which fill dst from body on,
// into the order of their names.
func (c *canonicalizer) sort(dst []byte, body int, members []canonicalMember) {
	byName := func(a, b canonicalMember) int {
		return compareUTF16(c.keys[a.key:a.keyEnd], c.keys[b.key:b.keyEnd])
	}
	if slices.IsSortedFunc(members, byName) {
		return
	}
	slices.SortFunc(members, byName)
	c.scratch = append(c.scratch[:0], dst[body:]...)
	at := body
	for _, m := range members {
		at += copy(dst[at:], c.scratch[m.text-body:m.textEnd-body])
	}
}

// compareUTF16 compares two UTF-8 texts by their UTF-16 code units. It differs
// from the order of code points only where a surrogate pair meets a character
// from U+E000 to U+FFFF.
func compareUTF16(a, b []byte) int {
	for len(a) > 0 && len(b) > 0 {
		ra, na := utf8.DecodeRune(a)
		rb, nb := utf8.DecodeRune(b)
		if ra != rb {
			return cmp.Compare(utf16Rank(ra), utf16Rank(rb))
		}
		a, b = a[na:], b[nb:]
	}
	return bytes.Compare(a, b) // at most one of them is not empty
}

// utf16Rank orders characters as their first UTF-16 code unit does: those
// beyond U+FFFF begin with a surrogate, below U+E000.
func utf16Rank(r rune) rune {
	const (
		afterSurrogates = 0xE000
		supplementary   = 0x10000
		beyondUnicode   = 0x110000
	)
	if r >= afterSurrogates && r < supplementary {
		return r + beyondUnicode
	}
	return r
}
