package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	m := NewMasker([]string{"hunter2!", "hunter2!-and-more", "short", "", `a"b\c/<d>`, "first line\nsecond line\nx", "héllo€"})
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"nothing here", "nothing here"},
		{"hunter2!", "[masked]"},
		{"key=hunter2! end", "key=[masked] end"},
		{"hunter2!hunter2!", "[masked][masked]"},
		{"hunter2!-and-more", "[masked]"},
		{"hunter2!-and-mor", "[masked]-and-mor"},
		{"hunhunter2!", "hun[masked]"},
		{"short", "short"},
		{`plain a"b\c/<d> x`, "plain [masked] x"},
		{`{"k":"a\"b\\c/<d>"}`, `{"k":"[masked]"}`},
		{`{"k":"a\"b\\c\/<d>"}`, `{"k":"[masked]"}`},
		{`{"k":"a\"b\\c/\u003cd\u003e"}`, `{"k":"[masked]"}`},
		{"first line\nsecond line\nx", "[masked]"},
		{`"first line\nsecond line\nx"`, `"[masked]"`},
		{"only the second line of it", "only the [masked] of it"},
		{"x", "x"},
		{"héllo€", "[masked]"},
	} {
		if got := string(m.Mask([]byte(c.in))); got != c.want {
			t.Errorf("Mask(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

const (
	password = "p/w+\"q<é>&z !*'()"
	lines    = "first line of it\nsecond line of it\r\nx\n"
)

// TestMaskForms: remote.md rule 7.
func TestMaskForms(t *testing.T) {
	m := NewMasker([]string{password, lines, "short", ""})
	quoted, _ := json.Marshal(password)
	twice, _ := json.Marshal(string(quoted))
	for name, text := range map[string]string{
		"plain":       password,
		"a line":      "second line of it",
		"json":        string(quoted),
		"json twice":  string(twice),
		"query":       url.QueryEscape(password),
		"path":        url.PathEscape(password),
		"component":   `p%2Fw%2B%22q%3C%C3%A9%3E%26z%20!*'()`, // encodeURIComponent of JavaScript
		"whole":       `p/w+%22q%3C%C3%A9%3E&z%20!*'()`,       // encodeURI of JavaScript
		"every byte":  "%70%2F%77%2B%22%71%3C%C3%A9%3E%26%7A%20%21%2A%27%28%29",
		"lower case":  strings.ToLower(url.QueryEscape(password)),
		"base64":      base64.StdEncoding.EncodeToString([]byte(password)),
		"base64 at 1": base64.StdEncoding.EncodeToString([]byte("a" + password + "b")),
		"base64 at 2": base64.RawURLEncoding.EncodeToString([]byte("ab" + password + "cd")),
	} {
		got := string(m.Mask([]byte("<<" + text + ">>")))
		if !strings.Contains(got, Masked) || len(got) > len(Masked)+12 || !strings.HasPrefix(got, "<<") || !strings.HasSuffix(got, ">>") {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
	for _, text := range []string{"short", "x", "first line", ""} {
		if got := string(m.Mask([]byte(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestURLForms: the spellings are those of package url, which is not linked.
func TestURLForms(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	forms := urlForms(string(every))
	for name, want := range map[string]string{
		"query": url.QueryEscape(string(every)), "path": url.PathEscape(string(every)),
	} {
		if !slices.Contains(forms, want) {
			t.Errorf("the form for a %s is missing: %q", name, want)
		}
	}
}

// TestMaskPart: a secret that lies partly in a part is masked there, and what
// is around it stays.
func TestMaskPart(t *testing.T) {
	m := NewMasker([]string{"secret", "longer secret"})
	const text = "1 secret 2 longer secret 3"
	const whole = "1 [masked] 2 [masked] 3"
	for from := range len(text) + 1 {
		for to := from; to <= len(text); to++ {
			got := string(m.Part([]byte(text), from, to))
			rest := strings.ReplaceAll(got, Masked, "")
			if strings.ContainsAny(rest, "secretlong") || !strings.Contains(whole, got) {
				t.Errorf("%d to %d: %q", from, to, got)
			}
			for _, digit := range []string{"1", "2", "3"} {
				if strings.Contains(text[from:to], digit) != strings.Contains(got, digit) {
					t.Errorf("%d to %d: %q", from, to, got)
				}
			}
		}
	}
	if got := string(NewMasker(nil).Part([]byte("abc"), 1, 2)); got != "b" {
		t.Errorf("nothing to mask: %q", got)
	}
	if m.Edge() < len("longer secret")-1 {
		t.Errorf("the edge is %d", m.Edge())
	}
}

// TestScan: what may go on as a value is left, and no more; what is taken is as
// in the whole text.
func TestScan(t *testing.T) {
	m := NewMasker([]string{"secret", "longer secret"})
	for _, c := range []struct {
		in, out string
		used    int
	}{
		{"", "", 0},
		{"nothing here", "nothing here", 12},
		{"a sec", "a ", 2},
		{"secret sec", "[masked] ", 7},
		{"a longer secret", "a [masked]", 15},
		{"longer sec", "", 0},
		{"longer set", "longer set", 10},
	} {
		out, used := m.Scan([]byte(c.in), false)
		if string(out) != c.out || used != c.used {
			t.Errorf("%q: %q of %d bytes, want %q of %d", c.in, out, used, c.out, c.used)
		}
	}
}

func TestMaskLeavesItsInputAlone(t *testing.T) {
	in := []byte("a secret-value b")
	NewMasker([]string{"secret-value"}).Mask(in)
	if string(in) != "a secret-value b" {
		t.Errorf("the input has become %q", in)
	}
}

func TestMaskWithoutSecrets(t *testing.T) {
	m := NewMasker(nil)
	if got := m.Mask([]byte("text")); string(got) != "text" || m.Any() || m.Edge() != 0 {
		t.Errorf("got %q, any %v, edge %d", got, m.Any(), m.Edge())
	}
}

func FuzzMask(f *testing.F) {
	f.Add("secret-value", "before ", " after")
	f.Add("a\nb\"c\\d", "", "")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		m := NewMasker([]string{secret})
		if len(secret) < MinLength {
			return
		}
		got := m.Mask([]byte(before + secret + after))
		if !bytes.Contains(got, []byte(Masked)) {
			t.Fatalf("Mask(%q) = %q", before+secret+after, got)
		}
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		inner := quoted[1 : len(quoted)-1]
		if got := m.Mask(inner); bytes.Contains(got, inner) && !bytes.Contains([]byte(Masked), inner) {
			t.Fatalf("Mask(%q) = %q", inner, got)
		}
	})
}
