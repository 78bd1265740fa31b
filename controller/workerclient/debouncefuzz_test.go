package workerclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// model is what the rules allow of a list of deltas and of what the server did.
type model struct {
	t     *testing.T
	d     *DebouncedStreamSender
	s     *server
	taken strings.Builder
	at    []time.Duration // when each byte of taken came
}

// alphabet has characters of each length, and bytes that are none.
var alphabet = []string{"a", "\u00e9", "\u2603", "\U0001f600", "\xff", "\xe2", "\x98\x83", "\xf0\x9f"}

func (m *model) put(n int, r *rand.Rand) {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	err := m.d.SendDelta(m.t.Context(), "run", b.String())
	if err == nil {
		m.taken.WriteString(b.String())
		for range b.Len() {
			m.at = append(m.at, time.Since(m.s.start))
		}
	} else if status := statusOf(err); status != http.StatusNotFound && status != http.StatusConflict {
		m.t.Errorf("SendDelta returned %v", err)
	}
}

// check compares the posts with the rules: each post repeats the one before that
// failed, or goes on where it ended; nothing waits longer than it may.
func (m *model) check(whole bool) {
	m.t.Helper()
	text := m.taken.String()
	place, sent, tries := 0, 0, 0
	free := time.Duration(0) // when the post before ended
	for i, p := range m.s.posts {
		if tries == 0 && (place+len(p.text) > len(text) || text[place:place+len(p.text)] != p.text) {
			m.t.Fatalf("post %d is not what comes next", i)
		}
		if tries > 0 && p.text != m.s.posts[i-1].text {
			m.t.Fatalf("try %d of post %d has another text", tries, i)
		}
		if len(p.text) > maxDelta || p.text == "" {
			m.t.Errorf("post %d has %d bytes", i, len(p.text))
		}
		if tries == 0 {
			// The last byte of its first character cannot wait longer.
			size := 1
			for size < min(utf8.UTFMax, len(p.text)) && !utf8.FullRuneInString(p.text[:size]) {
				size++
			}
			due := max(free, m.at[place+size-1]+m.d.interval())
			// The beginning of a character alone waits for a flush.
			if p.began > due && utf8.FullRuneInString(p.text[:size]) {
				m.t.Errorf("post %d began at %s and was due at %s", i, p.began, due)
			}
		}
		again := p.err != nil && Temporary(p.err) && tries < len(retryWaits)
		if again {
			tries++
			continue
		}
		if p.err == nil {
			sent += len(p.text)
		}
		tries, free = 0, p.end
		place += len(p.text)
	}
	if !whole {
		return
	}
	if lost := m.d.Dropped(); int64(sent)+lost < int64(len(text)) {
		m.t.Errorf("%d bytes were taken, %d sent, %d dropped", len(text), sent, lost)
	}
	if m.d.Dropped() == 0 && m.s.got() != text {
		m.t.Error("nothing was dropped, and the server has another text")
	}
}

// FuzzDebounce plays deltas, waits and flushes against a server that is slow and
// fails, and compares what it saw with the rules (rows 1 to 3).
func FuzzDebounce(f *testing.F) {
	f.Add([]byte("\x01\x10\x02\x20\x03\x00\x00\x05"), uint64(1), false)
	f.Add([]byte("\x08\xff\x08\xff\x02\x01\x08\xff\x03"), uint64(2), true)
	f.Add([]byte("\x00\x01\x00\x02\x00\x03\x01\xff\x04\x01\x00\xff\x00"), uint64(3), true)
	f.Fuzz(func(t *testing.T, script []byte, seed uint64, fails bool) {
		if len(script) > 200 {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := &server{t: t, start: time.Now(), answer: moody(rand.New(rand.NewPCG(seed, 2)), fails)}
			m := &model{t: t, s: s, d: &DebouncedStreamSender{Inner: s, IntervalMs: r.IntN(200), MaxBytes: r.IntN(900)}}
			for len(script) >= 2 {
				what, n := script[0], int(script[1])
				script = script[2:]
				switch what % 5 {
				case 0, 1:
					m.put(n, r)
				case 2:
					m.put(n*400, r)
				case 3:
					time.Sleep(time.Duration(n) * time.Millisecond)
				case 4:
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond)
					_ = m.d.Flush(ctx, "run") // the posts tell
					cancel()
				}
			}
			err := m.d.Flush(t.Context(), "run")
			synctest.Wait()
			if !fails && err != nil {
				t.Errorf("Flush returned %v", err)
			}
			m.check(true)
			m.d.Stop()
		})
	})
}

// moody is a server that is slow, and fails where it may.
func moody(r *rand.Rand, fails bool) func(int, string) (time.Duration, error) {
	return func(int, string) (time.Duration, error) {
		takes := time.Duration(r.IntN(300)) * time.Millisecond
		if !fails {
			return takes, nil
		}
		switch n := r.IntN(20); {
		case n < 8:
			return takes, errors.New("no answer")
		case n < 10:
			return takes, &StatusError{Status: http.StatusBadRequest}
		case n == 10:
			return takes, &StatusError{Status: http.StatusConflict}
		}
		return takes, nil
	}
}
