package logtail

import (
	"bytes"
	"encoding/json"
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

func TestMaskLeavesItsInputAlone(t *testing.T) {
	in := []byte("a secret-value b")
	NewMasker([]string{"secret-value"}).Mask(in)
	if string(in) != "a secret-value b" {
		t.Errorf("the input has become %q", in)
	}
}

func TestMaskWithoutSecrets(t *testing.T) {
	if got := NewMasker(nil).Mask([]byte("text")); string(got) != "text" {
		t.Errorf("got %q", got)
	}
}

func FuzzMask(f *testing.F) {
	f.Add("secret-value", "before ", " after")
	f.Add("a\nb\"c\\d", "", "")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		m := NewMasker([]string{secret})
		if len(secret) < MinSecret {
			return
		}
		got := m.Mask([]byte(before + secret + after))
		if !bytes.Contains(got, []byte(maskText)) {
			t.Fatalf("Mask(%q) = %q", before+secret+after, got)
		}
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		inner := quoted[1 : len(quoted)-1]
		if got := m.Mask(inner); bytes.Contains(got, inner) && !bytes.Contains([]byte(maskText), inner) {
			t.Fatalf("Mask(%q) = %q", inner, got)
		}
	})
}
