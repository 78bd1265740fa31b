package secret

import (
	"bytes"
	"slices"
	"strings"
)

const (
	// MinLength is the length in bytes from which a value is masked (remote.md
	// rule 7). Shorter ones ("1", "true", "en_US") stand in ordinary text too
	// often, and could be guessed from where they are missing.
	MinLength = 6
	// Masked stands where a value was.
	Masked = "[masked]"
)

// Masker hides values in texts. It does not change, and is safe for use by many
// goroutines.
type Masker struct {
	forms   [256][][]byte // by their first byte, longest first
	values  [256][][]byte // the same of the values themselves, nil where there are none
	longest int           // bytes
}

// NewMasker returns a masker of these values and of each of their lines: as they
// are, and as they stand inside JSON strings, URLs and base64. Inside a JSON string,
// and one inside another, any of their characters may be a \u escape, as other
// encoders write it. Not found is what no known encoder writes: a string inside
// another whose own backslashes are \u005c, a third string around it, some slashes
// escaped and others not, a URL that escapes what needs it not. Values and lines
// under [MinLength] bytes are not masked.
func NewMasker(values []string) *Masker {
	m := &Masker{}
	known := map[string]bool{}
	for _, value := range values {
		if len(value) < MinLength {
			continue
		}
		for _, s := range append(strings.Split(value, "\n"), value) {
			if s = strings.TrimSuffix(s, "\r"); len(s) < MinLength {
				continue
			}
			for _, form := range append(forms(s), s) {
				if len(form) >= MinLength && !known[form] {
					known[form] = true
					m.forms[form[0]] = append(m.forms[form[0]], []byte(form))
					m.longest = max(m.longest, len(form), escapedByte*len(s))
				}
			}
			if !slices.ContainsFunc(m.values[s[0]], func(v []byte) bool { return string(v) == s }) {
				m.values[s[0]] = append(m.values[s[0]], []byte(s))
			}
		}
	}
	for i := range m.forms {
		for _, list := range [][][]byte{m.forms[i], m.values[i]} {
			slices.SortStableFunc(list, func(a, b []byte) int { return len(b) - len(a) })
		}
	}
	return m
}

// Any reports whether there is anything to hide.
func (m *Masker) Any() bool { return m.longest > 0 }

// Mask returns b with [Masked] in the place of every value, the longest one
// where several begin at the same place. Where there is none it returns b
// itself; it never changes b.
func (m *Masker) Mask(b []byte) []byte {
	out, _ := m.Scan(b, true)
	return out
}

// Edge is how many bytes around a part of a text [Masker.Part] has to see.
func (m *Masker) Edge() int { return max(m.longest-1, 0) }

// Part is Mask for b[from:to], where a value that lies only partly in it is
// masked as well. B has up to [Masker.Edge] bytes on both sides of the part.
func (m *Masker) Part(b []byte, from, to int) []byte {
	var out []byte
	done := from // what comes before it is in out
	escapes := bytes.Contains(b, escape)
	for i := 0; i < to; {
		if m.forms[b[i]] == nil && (!escapes || b[i] != '\\') {
			i++
			continue
		}
		n, _ := m.match(b[i:], escapes)
		if n == 0 {
			i++
			continue
		}
		if i+n > from {
			out = append(append(out, b[done:max(i, from)]...), Masked...)
			done = min(i+n, to)
		}
		i += n
	}
	return append(out, b[done:to]...)
}

// Scan is Mask for a text that may go on: where b is not the end, what could be
// the beginning of a value is left. Used tells how much of b is in out.
func (m *Masker) Scan(b []byte, end bool) (out []byte, used int) {
	from, i := 0, 0
	// What may go on may have its escape still to come.
	escapes := m.Any() && (bytes.Contains(b, escape) || !end && bytes.IndexByte(b, '\\') >= 0)
	for i < len(b) {
		if m.forms[b[i]] == nil && (!escapes || b[i] != '\\') {
			i++
			continue
		}
		n, partial := m.match(b[i:], escapes)
		if partial && !end {
			break
		}
		if n == 0 {
			i++
			continue
		}
		out = append(append(out, b[from:i]...), Masked...)
		i += n
		from = i
	}
	if from == 0 {
		return b[:i:i], i
	}
	return append(out, b[from:i]...), i
}

// match is the length of the longest value at the start of b, which is not empty,
// and whether b may be the beginning of a longer one. With escapes it is also read
// as a JSON string.
func (m *Masker) match(b []byte, escapes bool) (n int, partial bool) {
	for _, form := range m.forms[b[0]] {
		if len(b) < len(form) && bytes.HasPrefix(form, b) {
			partial = true
		} else if bytes.HasPrefix(b, form) {
			n = len(form)
			break
		}
	}
	if escapes {
		return m.matchEscaped(b, n, partial)
	}
	return n, partial
}
