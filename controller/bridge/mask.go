package bridge

import (
	"slices"
	"sync"
	"sync/atomic"

	"prp/protocol/secret"
)

// The rule for what is masked, and with what (remote.md rule 7).
const (
	MinSecret = secret.MinLength
	Masked    = secret.Masked
)

// Masker hides secret values as [secret.Masker] does, also values that change
// while it is in use. It is safe for use by many goroutines.
type Masker struct{ now atomic.Pointer[secret.Masker] }

// NewMasker returns a masker of these values; see [secret.NewMasker].
func NewMasker(secrets []string) *Masker {
	m := &Masker{}
	m.Replace(secrets)
	return m
}

// Replace has these values masked instead of those before, from the next call
// on, also in streams that have begun: a token is renewed while texts flow.
func (m *Masker) Replace(secrets []string) { m.now.Store(secret.NewMasker(secrets)) }

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

// Any reports whether there is anything to hide.
func (m *Masker) Any() bool { return m != nil && m.now.Load().Any() }

// Mask returns b with [Masked] in the place of every secret. Where there
// is none it returns b itself; it never changes b.
func (m *Masker) Mask(b []byte) []byte {
	if m == nil {
		return b
	}
	return m.now.Load().Mask(b)
}

// String is Mask for a string.
func (m *Masker) String(s string) string {
	if !m.Any() {
		return s
	}
	return string(m.Mask([]byte(s)))
}

// Edge is how many bytes around a part of a text [Masker.Part] has to see.
func (m *Masker) Edge() int {
	if m == nil {
		return 0
	}
	return m.now.Load().Edge()
}

// Part is Mask for b[from:to], where a secret that lies only partly in it is
// masked as well. B has up to [Masker.Edge] bytes on both sides of the part.
func (m *Masker) Part(b []byte, from, to int) []byte {
	if m == nil {
		return b[from:to]
	}
	return m.now.Load().Part(b, from, to)
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
	out, used := s.m.now.Load().Scan(piece, false)
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
