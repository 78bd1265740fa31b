package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"prp/protocol"
)

func TestValid(t *testing.T) {
	tests := []struct {
		in, want string
		replaced int
	}{
		{"", "", 0},
		{"plain \u2603 \U0001F600", "plain \u2603 \U0001F600", 0},
		{"a\xffb", "a\ufffdb", 1},
		{"\xe2\x98", "\ufffd\ufffd", 2},
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd", 3}, // a surrogate in UTF-8
		{"\ufffd", "\ufffd", 0},                   // one that was there
	}
	for _, tt := range tests {
		if got, n := Valid([]byte(tt.in)); got != tt.want || n != tt.replaced {
			t.Errorf("Valid(%q) = %q, %d, want %q, %d", tt.in, got, n, tt.want, tt.replaced)
		}
	}
}

func TestPieces(t *testing.T) {
	for _, unit := range []string{"x", "\u00e9", "\u2603", "\U0001F600", "\x00"} {
		s := strings.Repeat(unit, 3*MaxPiece/len(unit)+1)
		var back strings.Builder
		n := 0
		for p := range Pieces(s) {
			if len(p) > MaxPiece || p == "" || !utf8.ValidString(p) {
				t.Fatalf("%q: a piece of %d bytes, valid %v", unit, len(p), utf8.ValidString(p))
			}
			if line := protocol.AppendString(nil, p); len(line) > protocol.DefaultHarnessLine-4<<10 {
				t.Fatalf("%q: a piece has %d bytes in JSON, no room for the message around it", unit, len(line))
			}
			back.WriteString(p)
			n++
		}
		if back.String() != s || n > 5 {
			t.Errorf("%q: %d pieces, %d bytes of %d", unit, n, back.Len(), len(s))
		}
	}
	for p := range Pieces("") {
		t.Errorf("a piece %q of nothing", p)
	}
}

func TestHead(t *testing.T) {
	tests := []struct {
		s     string
		limit int
		head  string
		cut   int
	}{
		{"abc", 3, "abc", 0},
		{"abc", 2, "ab", 1},
		{"a\u2603b", 2, "a", 4},
		{"a\u2603b", 4, "a\u2603", 1},
	}
	for _, tt := range tests {
		if head, cut := Head(tt.s, tt.limit); head != tt.head || cut != tt.cut {
			t.Errorf("Head(%q, %d) = %q, %d", tt.s, tt.limit, head, cut)
		}
	}
	if got := HeadRunes("\u2603\u2603\u2603", 2); got != "\u2603\u2603" {
		t.Errorf("HeadRunes gives %q", got)
	}
	if got := HeadRunes("ab", 2); got != "ab" {
		t.Errorf("HeadRunes gives %q", got)
	}
}

// TestStreamCutAnywhere: however the bytes are cut into chunks, the text and
// the number of replaced bytes are those of the whole.
func TestStreamCutAnywhere(t *testing.T) {
	for _, s := range []string{"a\u00e9\u2603\U0001F600z", "\xffa\xe2\x98b\xf0\x9f\x98", "\x80\x80\x80\x80\x80", "\xf0\x9f\x98\x80\xf0"} {
		want, replaced := Valid([]byte(s))
		for size := 1; size <= len(s); size++ {
			var stream Stream
			got, n := "", 0
			for i := 0; i < len(s); i += size {
				part, r := stream.Add([]byte(s[i:min(i+size, len(s))]))
				got, n = got+part, n+r
			}
			part, r := stream.End()
			got, n = got+part, n+r
			if got != want || n != replaced {
				t.Errorf("%q in chunks of %d: %q, %d replaced, want %q, %d", s, size, got, n, want, replaced)
			}
		}
	}
}
