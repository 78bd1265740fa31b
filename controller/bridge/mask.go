package bridge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// MinSecret is the length in bytes from which a value is masked (remote.md
	// rule 7).
	MinSecret = 6
	// Masked stands where a secret was.
	Masked = "[masked]"
)

// Masker hides secret values. It is safe for use by many goroutines.
type Masker struct{ spelled atomic.Pointer[spellings] }

// spellings are the forms of secret values. They are not changed.
type spellings struct {
	forms [][]byte // longest first
	first [256]bool
}

// NewMasker returns a masker of these values: as they are, each of their lines,
// and as they stand inside JSON strings (also inside one another), URLs and
// base64. Values and lines under [MinSecret] bytes are not masked.
func NewMasker(secrets []string) *Masker {
	m := &Masker{}
	m.Replace(secrets)
	return m
}

// Replace has these values masked instead of those before, from the next call
// on, also in streams that have begun: a token is renewed while texts flow.
func (m *Masker) Replace(secrets []string) { m.spelled.Store(spell(secrets)) }

// keptTokens is how many tokens are masked: the one in use, and those before it
// that a text may still show.
const keptTokens = 4

// Tokens returns token, and has each of its results masked beside the values of
// secrets before it is used: a token is renewed while runs go on. What it
// returns is safe for many goroutines where token is.
func (m *Masker) Tokens(secrets []string, token func() (string, error)) func() (string, error) {
	var mu sync.Mutex
	var known []string
	return func() (string, error) {
		text, err := token()
		if err != nil {
			return text, err
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(known, text) {
			known = append(known, text)
			known = known[max(0, len(known)-keptTokens):]
			m.Replace(slices.Concat(secrets, known))
		}
		return text, nil
	}
}

func spell(secrets []string) *spellings {
	m := &spellings{}
	known := map[string]bool{}
	add := func(form string) {
		if len(form) < MinSecret || known[form] {
			return
		}
		known[form] = true
		m.forms = append(m.forms, []byte(form))
		m.first[form[0]] = true
	}
	for _, secret := range secrets {
		if len(secret) < MinSecret {
			continue
		}
		for _, s := range append(strings.Split(secret, "\n"), secret) {
			if s = strings.TrimSuffix(s, "\r"); len(s) < MinSecret {
				continue
			}
			add(s)
			for _, form := range forms(s) {
				add(form)
			}
		}
	}
	slices.SortStableFunc(m.forms, func(a, b []byte) int { return len(b) - len(a) })
	return m
}

// forms are the spellings of a value inside other text.
func forms(s string) []string {
	var out []string
	for _, once := range jsonForms(s) {
		out = append(out, once)
		out = append(out, jsonForms(once)...)
	}
	for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s), allPercent(s)} {
		out = append(out, escaped, lowerPercent(escaped))
	}
	for skip := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			out = append(out, base64Form(enc, s, skip))
		}
	}
	return out
}

// jsonForms are the usual spellings inside a JSON string.
func jsonForms(s string) []string {
	var out []string
	for _, html := range []bool{false, true} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(s) != nil {
			continue // cannot be: every string can be encoded
		}
		quoted := bytes.TrimSpace(b.Bytes())
		form := string(quoted[1 : len(quoted)-1])
		out = append(out, form, strings.ReplaceAll(form, "/", `\/`))
	}
	return out
}

func allPercent(s string) string {
	const digits = "0123456789ABCDEF"
	b := make([]byte, 0, 3*len(s))
	for i := range len(s) {
		b = append(b, '%', digits[s[i]>>4], digits[s[i]&15])
	}
	return string(b)
}

// lowerPercent writes the digits after each % in lower case.
func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// base64Form is the part of a base64 text that a value decides alone when skip
// bytes of something else come before it in its group of three.
func base64Form(enc *base64.Encoding, s string, skip int) string {
	text := enc.EncodeToString(append(make([]byte, skip), s...))
	from := []int{0, 2, 3}[skip]
	// The last character holds bits of what follows unless the group is full.
	to := len(text)
	if (skip+len(s))%3 != 0 {
		to--
	}
	return text[min(from, to):to]
}

// Any reports whether there is anything to hide.
func (m *Masker) Any() bool { return m != nil && len(m.spelled.Load().forms) > 0 }

// Mask returns b with [Masked] in the place of every secret. Where there is
// none it returns b itself; it never changes b.
func (m *Masker) Mask(b []byte) []byte {
	if !m.Any() {
		return b
	}
	out, _ := m.spelled.Load().scan(nil, b, true)
	if out == nil {
		return b
	}
	return out
}

// String is Mask for a string.
func (m *Masker) String(s string) string {
	if !m.Any() {
		return s
	}
	if out, _ := m.spelled.Load().scan(nil, []byte(s), true); out != nil {
		return string(out)
	}
	return s
}

// Edge is how many bytes around a part of a text [Masker.Part] has to see.
func (m *Masker) Edge() int {
	if !m.Any() {
		return 0
	}
	return len(m.spelled.Load().forms[0]) - 1
}

// Part is Mask for b[from:to], where a secret that lies only partly in it is
// masked as well. B has up to [Masker.Edge] bytes on both sides of the part.
func (m *Masker) Part(b []byte, from, to int) []byte {
	if !m.Any() {
		return b[from:to]
	}
	return m.spelled.Load().part(b, from, to)
}

func (m *spellings) part(b []byte, from, to int) []byte {
	var out []byte
	done := from // what comes before it is in out
	for i := 0; i < to; {
		n := 0
		if m.first[b[i]] {
			n, _ = m.match(b[i:])
		}
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

// scan appends the masked b to dst. Where it is not the end, what could be the
// beginning of a secret is left: used tells how far it went. It returns nil
// where dst is nil, b is used whole and nothing was masked.
func (m *spellings) scan(dst, b []byte, end bool) (out []byte, used int) {
	from, i := 0, 0
	for i < len(b) {
		if !m.first[b[i]] {
			i++
			continue
		}
		n, partial := m.match(b[i:])
		if partial && !end {
			break
		}
		if n == 0 {
			i++
			continue
		}
		dst = append(append(dst, b[from:i]...), Masked...)
		i += n
		from = i
	}
	if dst == nil && from == 0 && i == len(b) && end {
		return nil, i
	}
	return append(dst, b[from:i]...), i
}

// match is the length of the longest secret at the start of b, and whether b
// may be the beginning of a longer one.
func (m *spellings) match(b []byte) (n int, partial bool) {
	for _, form := range m.forms {
		switch {
		case len(b) < len(form) && bytes.HasPrefix(form, b):
			partial = true
		case bytes.HasPrefix(b, form):
			return len(form), partial
		}
	}
	return 0, partial
}

// Stream masks a text that comes in pieces, also a secret that is split over
// several. It is for one goroutine.
type Stream struct {
	m    *Masker
	held []byte
}

// Stream returns a stream of its own.
func (m *Masker) Stream() *Stream { return &Stream{m: m} }

// Add takes a piece and returns what can be shown of it so far. It holds back
// less than the length of the longest secret. The result is valid until the
// next call.
func (s *Stream) Add(piece []byte) []byte {
	if len(s.held) == 0 && !s.m.Any() {
		return piece
	}
	if len(s.held) > 0 {
		piece = append(s.held, piece...)
	}
	out, used := s.m.spelled.Load().scan(nil, piece, false)
	s.held = append([]byte(nil), piece[used:]...)
	return out
}

// Held is how many bytes are held back: they may be the beginning of a secret.
func (s *Stream) Held() int { return len(s.held) }

// End returns what was held back.
func (s *Stream) End() []byte {
	out := s.m.Mask(s.held)
	s.held = nil
	return out
}
