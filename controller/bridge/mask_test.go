package bridge

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

const password = `p/w+"q<é>&z`

// TestMaskStream: in whatever pieces a text comes, the result is that of the
// whole text, and no piece shows a part of a secret.
func TestMaskStream(t *testing.T) {
	m := NewMasker([]string{password, "abcabcabd", "abcabc"})
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{password, "abcabcabd", "abcabc", "abc", "ab", "p/w", "é", "\n", "tail"}
	for range 2000 {
		var text string
		for range r.IntN(8) {
			text += parts[r.IntN(len(parts))]
		}
		want := m.String(text)
		s := m.Stream()
		var got []byte
		for rest := []byte(text); len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			got = append(got, s.Add(rest[:n])...)
			rest = rest[n:]
		}
		got = append(got, s.End()...)
		if string(got) != want {
			t.Fatalf("%q in pieces became %q, want %q", text, got, want)
		}
	}
}

func TestMaskNothing(t *testing.T) {
	var none *Masker
	if none.String("abcdef") != "abcdef" || string(none.Stream().Add([]byte("abcdef"))) != "abcdef" {
		t.Error("a masker without secrets changes text")
	}
}

// TestMaskJSON: secrets go out of strings, names and numbers; other numbers and
// the structure stay.
func TestMaskJSON(t *testing.T) {
	m := NewMasker([]string{"secret-value", "12345678"})
	got := m.JSON([]byte(`{"secret-value":["a secret-value",12345678,-12345678.50,98765432109876543210],"b":{"c":null,"d":true}}`))
	if want := `{"[masked]":["a [masked]","[masked]","[masked]",98765432109876543210],"b":{"c":null,"d":true}}`; string(got) != want {
		t.Errorf("masked to %s, want %s", got, want)
	}
	if raw := []byte(`{ "a" : 1 }`); string(m.JSON(raw)) != string(raw) {
		t.Error("a value without a secret was changed")
	}
}

// TestMaskJSONEscapes: a secret is found however its characters are escaped, and
// escapes without one stay as they are.
func TestMaskJSONEscapes(t *testing.T) {
	m := NewMasker([]string{"secret-value"})
	if got := string(m.JSON([]byte(`["\u0073ecret-\u0076alue"]`))); got != `["[masked]"]` {
		t.Errorf("masked to %s", got)
	}
	if raw := `{"b":"\u0061\n", "a":"\/"}`; string(m.JSON([]byte(raw))) != raw {
		t.Error("a value without a secret was changed")
	}
}

// TestHeld: what may be the beginning of a secret is held back, and no more.
func TestHeld(t *testing.T) {
	s := NewMasker([]string{"secret-value"}).Stream()
	for _, tt := range []struct {
		add, want string
		held      int
	}{{"a sec", "a ", 3}, {"ret-", "", 7}, {"valuable", "secret-valuable", 0}, {"s", "", 1}} {
		if got := string(s.Add([]byte(tt.add))); got != tt.want || s.Held() != tt.held {
			t.Errorf("after %q: %q, %d held", tt.add, got, s.Held())
		}
	}
	if got := string(s.End()); got != "s" || s.Held() != 0 {
		t.Errorf("the end is %q, %d held", got, s.Held())
	}
}

// TestMaskReplace: a value that is known only later is masked from then on, also
// in a stream that has begun, and what was held back is not lost.
func TestMaskReplace(t *testing.T) {
	m := NewMasker([]string{"first-token"})
	s := m.Stream()
	shown := string(s.Add([]byte("a first-to")))
	m.Replace([]string{"second-token"})
	shown += string(s.Add([]byte("ols second-to")))
	shown += string(s.Add([]byte("ken b")))
	if shown += string(s.End()); shown != "a first-tools "+Masked+" b" {
		t.Errorf("the stream shows %q", shown)
	}
	if got := m.String("first-token second-token"); got != "first-token "+Masked {
		t.Errorf("the text is %q", got)
	}
	m.Replace(nil)
	if got := m.String("second-token"); got != "second-token" {
		t.Errorf("without secrets the text is %q", got)
	}
}

// TestMaskTokens: each token is masked from when it is used, beside the secrets;
// those of long ago are not remembered.
func TestMaskTokens(t *testing.T) {
	m := NewMasker([]string{"a secret value"})
	n := 0
	token := m.Tokens([]string{"a secret value"}, func() (string, error) { n++; return fmt.Sprintf("token-%d-of-many", n), nil })
	for range 7 {
		got, err := token()
		if err != nil || got != fmt.Sprintf("token-%d-of-many", n) {
			t.Fatalf("the token is %q, %v", got, err)
		}
		if got := m.String(got + ", a secret value"); got != Masked+", "+Masked {
			t.Errorf("the text is %q", got)
		}
	}
	if got := m.String("token-1-of-many token-6-of-many"); got != "token-1-of-many "+Masked {
		t.Errorf("the text is %q", got)
	}
}
