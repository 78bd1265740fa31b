package secret

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestMaskEscaped: remote.md rule 7. A value is found in a JSON string however its
// characters are escaped there, as other encoders do it.
func TestMaskEscaped(t *testing.T) {
	m := NewMasker([]string{`pass+w"ö=/é😀'rd`, "first line\nsecond line\n"})
	for name, text := range map[string]string{
		"Python":              `pass+w\"\u00f6=/\u00e9\ud83d\ude00'rd`,
		"PHP":                 `pass+w\"\u00f6=\/\u00e9\ud83d\ude00'rd`,
		".NET":                `pass\u002Bw\u0022\u00F6=/\u00E9\uD83D\uDE00\u0027rd`,
		"Gson":                `pass+w\"ö\u003d/é😀\u0027rd`,
		"every character":     `\u0070\u0061\u0073\u0073\u002b\u0077\u0022\u00f6\u003d\u002f\u00e9\ud83d\ude00\u0027\u0072\u0064`,
		"mixed":               `p\u0061ss+w\"\u00F6=\/é\uD83d\uDe00'rd`,
		"Python in JSON":      `pass+w\\\"\\u00f6=/\\u00e9\\ud83d\\ude00'rd`,
		".NET in JSON":        `pass\\u002Bw\\u0022\\u00F6=/\\u00E9\\uD83D\\uDE00\\u0027rd`,
		"PHP in JSON":         `pass+w\\\"\\u00f6=\\/\\u00e9\\ud83d\\ude00'rd`,
		"plain in PHP in PHP": `pass+w\\\"\\u00f6=\\\/\\u00e9\\ud83d\\ude00'rd`,
		"a line":              `second\u0020line`,
		"lines":               `first line\u000asecond line\u000A`,
	} {
		if got := string(m.Mask([]byte("<<" + text + ">>"))); got != "<<[masked]>>" {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
	for _, text := range []string{
		`pass\u002cw\u0022\u00F6=/\u00E9\uD83D\uDE00\u0027rd`, // another character
		`pass\u002Bw\u0022\u00F6=/\u00E9\uD83D\u0027rd`,       // half of one
		`pass+w\"\u00f6=/\u00e9\ud83d\ude00'r`, `\u0070`, `\`, `\\`, `\u`, `\ud83d`, `\ud83d\`, `C:\pass\users`, `\x70ass`,
	} {
		if got := string(m.Mask([]byte(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// spelled is a value in a JSON string with escapes at random.
func spelled(r *rand.Rand, value string) string {
	var b strings.Builder
	slashes := r.IntN(2) == 0 // an encoder escapes all or none
	for _, c := range value {
		upper := "%04x"
		if r.IntN(2) == 0 {
			upper = "%04X"
		}
		named := map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}[c]
		switch n := r.IntN(4); {
		case n == 0 && c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u`+upper+`\u`+upper, high, low)
		case n == 0 || c < ' ' && named == "":
			fmt.Fprintf(&b, `\u`+upper, c)
		case named != "" && (slashes || c != '/'):
			b.WriteString(named)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// TestMaskSpelled: the same at random, also in pieces and in parts: nothing of a
// value is shown, and what is around it is.
func TestMaskSpelled(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	letters := []rune("ab\"\\/\n\té€😀+<&'=u0")
	for range 300 {
		value := make([]rune, 6+r.IntN(6))
		for i := range value {
			value[i] = letters[r.IntN(len(letters))]
		}
		// A line of it that begins or ends it would be a value of its own.
		s := strings.ReplaceAll(string(value), "\n", "n")
		m := NewMasker([]string{s})
		text := spelled(r, s)
		if r.IntN(2) == 0 {
			outer, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			text = string(outer[1 : len(outer)-1])
		}
		const before, after, want = "x:", ":y", "x:[masked]:y"
		whole := []byte(before + text + after)
		if got := string(m.Mask(whole)); got != want {
			t.Fatalf("%q as %q became %q", s, text, got)
		}
		for cut := range len(whole) + 1 {
			out, used := m.Scan(whole[:cut], false)
			rest, _ := m.Scan(append(whole[used:cut:cut], whole[cut:]...), true)
			if got := string(out) + string(rest); got != want {
				t.Fatalf("%q as %q, cut at %d, became %q", s, text, cut, got)
			}
			got := string(m.Part(whole, min(cut, 2), cut))
			if end := len(before) + len(text); cut > 2 && got != "[masked]"+after[:max(cut-end, 0)] {
				t.Fatalf("%q as %q: the part up to %d is %q", s, text, cut, got)
			}
		}
		if len(text) > m.Edge()+1 {
			t.Errorf("%q takes %d bytes, more than the edge of %d", s, len(text), m.Edge())
		}
	}
}

// TestScanNothingToHide: without values nothing is held back.
func TestScanNothingToHide(t *testing.T) {
	if out, used := NewMasker(nil).Scan([]byte(`a\`), false); string(out) != `a\` || used != 2 {
		t.Errorf("%q of %d bytes", out, used)
	}
}
