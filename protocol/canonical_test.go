package protocol

import (
	"bytes"
	"math/big"
	"strings"
	"testing"
)

func canonical(t *testing.T, text string) string {
	t.Helper()
	out, err := AppendCanonical(nil, []byte(text))
	if err != nil {
		t.Fatalf("AppendCanonical(%.80q): %v", text, err)
	}
	return string(out)
}

// Equal content has one canonical form: faults F10.
func TestF10EqualContent(t *testing.T) {
	classes := [][]string{
		{`{"a":1,"b":{"c":[1,2],"d":"x"}}`, ` { "b" : {"d":"x" , "c":[ 1 , 2 ]} ,	"a" : 1 } `, `{"\u0061":1.0,"b":{"c":[1e0,20E-1],"d":"\u0078"}}`},
		{`"a/b"`, `"a\/b"`, `"\u0061\u002F\u0062"`},
		{`"\n\u0001"`, `"\u000a\u0001"`, `"\u000A\u0001"`},
		{`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`},
		{`1`, `1.0`, `1e0`, `10e-1`, `0.1e1`, `0.001E+3`, `100000e-5`},
		{`0`, `-0`, `0.0`, `-0e7`, `0e99999999999999999999999`, `0.000e-5`},
		{`-150`, `-1.5e2`, `-15E1`, `-150.000`},
		{`1e-400`, `0.1e-399`, `10e-401`},
		{`1e-99999999999999999999`, `10e-100000000000000000000`, `0.1e-99999999999999999998`},
		{`1e-100000000000000000`, `0.1e-99999999999999999`, `10e-100000000000000001`, `1e-0000100000000000000000`},
		{`9007199254740993`, `9007199254740993.0`, `9.007199254740993e15`},
		{`true`, ` true `},
		{`{}`, `{ }`},
		{`[]`, `[ ]`},
		{`null`},
	}
	seen := map[string]int{}
	for i, class := range classes {
		for _, text := range class {
			form := canonical(t, text)
			if first := canonical(t, class[0]); form != first {
				t.Errorf("%s has the form %s, but %s has %s", text, form, class[0], first)
			}
			if other, ok := seen[form]; ok && other != i {
				t.Errorf("%s has the form of %s", text, classes[other][0])
			}
			seen[form] = i
		}
	}
}

// Other content has another form: faults F11, and numbers beyond 2^53.
func TestF11OtherContent(t *testing.T) {
	for _, pair := range [][2]string{
		{`{"a":{"b":1}}`, `{"a":{"b":2}}`},
		{`[1,2]`, `[2,1]`},
		{`{"a":1}`, `{"a":1,"b":null}`},
		{`{"a":1}`, `{"a":"1"}`},
		{`{"a":1}`, `{"A":1}`},
		{`{"controllerSeq":1}`, `{"controllerſeq":1}`},
		{`9007199254740993`, `9007199254740992`},
		{`0.1`, `0.10000000000000000001`},
		{`1e-400`, `0`},
		{`1e-400`, `1e-401`},
		{`1e-99999999999999999999`, `1e-99999999999999999998`},
		{`"a"`, `"\u00e1"`},
		{`"\u00e1"`, `"a\u0301"`},
		{`""`, `"\u0000"`},
		{`{"a":{},"b":1}`, `{"a":{"b":1}}`},
		{`[[],[]]`, `[[[]]]`},
	} {
		if a, b := canonical(t, pair[0]), canonical(t, pair[1]); a == b {
			t.Errorf("%s and %s have the same form %s", pair[0], pair[1], a)
		}
	}
}

// RFC 8785, section 3.2.3: the names of its example in the order that it
// gives.
func TestCanonicalOrder(t *testing.T) {
	got := canonical(t, `{"\u20ac":5,"\r":1,"\ufb33":7,"1":2,"\ud83d\ude00":6,"\u0080":3,"\u00f6":4}`)
	want := `{"\r":1,"1":2,` + "\"\u0080\":3,\"\u00f6\":4,\"\u20ac\":5,\"\U0001f600\":6,\"\ufb33\":7}"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestCanonicalRefusesInvalid(t *testing.T) {
	for _, text := range invalidJSON() {
		prefix := []byte("kept")
		if out, err := AppendCanonical(prefix, []byte(text)); err == nil || string(out) != "kept" {
			t.Errorf("AppendCanonical(%.60q) = %.60q, %v; want dst as it was and an error", text, out, err)
		}
	}
}

// A number as long as a command line costs linear time and no memory beyond
// its length.
func TestCanonicalLongNumbers(t *testing.T) {
	const digits = 1 << 20
	zeros, nines := strings.Repeat("0", digits), strings.Repeat("9", digits)
	if got := canonical(t, "0."+zeros+"1"); got != "1e-1048577" {
		t.Errorf("got %.40q", got)
	}
	if got := canonical(t, "1."+zeros); got != "1" {
		t.Errorf("got %.40q", got)
	}
	if got := canonical(t, "1e-"+nines); got != "1e-"+nines {
		t.Errorf("got %d bytes", len(got))
	}
	if got := canonical(t, "0.1e-"+nines); got != "1e-1"+zeros {
		t.Errorf("got %d bytes", len(got))
	}
}

// FuzzCanonical: the form is a fixed point, keeps validity, and does not depend
// on how the text was spelled.
func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"b":[1.50,-0,"\u0061\/"],"a":{"z":null,"y":true}}`))
	f.Add([]byte(`[1e-400,123456789012345678901234567890,"😀"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		form, err := AppendCanonical(nil, text)
		if (err == nil) != (CheckJSON(text) == nil) {
			t.Fatalf("AppendCanonical: %v, CheckJSON: %v", err, CheckJSON(text))
		}
		if err != nil {
			return
		}
		again, err := AppendCanonical(nil, form)
		if err != nil || !bytes.Equal(form, again) {
			t.Fatalf("the form %q has the form %q, %v", form, again, err)
		}
		spelled, err := AppendCanonical(nil, respell(t, text))
		if err != nil || !bytes.Equal(form, spelled) {
			t.Fatalf("respelled: %q instead of %q, %v", spelled, form, err)
		}
	})
}

// respell writes the same value with members reversed, blanks, every
// character of a string escaped and numbers with an exponent.
func respell(t *testing.T, text []byte) []byte {
	t.Helper()
	raw := bytes.TrimSpace(text)
	switch kindOf(raw) {
	case kindObject:
		f, err := readFields("", raw)
		if err != nil {
			t.Fatal(err)
		}
		out := []byte("{ ")
		for i := len(f.members) - 1; i >= 0; i-- {
			name := AppendString(nil, f.members[i].name)
			out = append(append(out, respell(t, name)...), " : "...)
			out = append(append(out, respell(t, f.members[i].raw)...), ',')
		}
		if len(f.members) > 0 {
			out = out[:len(out)-1]
		}
		return append(out, "\t}"...)
	case kindArray:
		out := []byte("[\r")
		for i, e := range elements(raw) {
			if i > 0 {
				out = append(out, " , "...)
			}
			out = append(out, respell(t, e)...)
		}
		return append(out, " ]"...)
	case kindString:
		return escapeAll(string(appendUnquoted(nil, raw)))
	case kindNumber:
		return shiftNumber(raw)
	}
	return raw
}

// FuzzNumber compares the canonical form with exact rationals.
func FuzzNumber(f *testing.F) {
	for _, pair := range [][2]string{{"1", "1.0"}, {"10e-1", "0.1e1"}, {"9007199254740993", "9007199254740992"}, {"-0", "0"}, {"1e300", "10e299"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := ratOf(a)
		y, okY := ratOf(b)
		if !okX || !okY {
			return
		}
		same := canonical(t, a) == canonical(t, b)
		if want := x.Cmp(y) == 0; same != want {
			t.Fatalf("%s and %s: forms %s and %s, equal values: %v", a, b, canonical(t, a), canonical(t, b), want)
		}
		back, ok := ratOf(canonical(t, a))
		if !ok || back.Cmp(x) != 0 {
			t.Fatalf("%s has the form %s, which is another value", a, canonical(t, a))
		}
	})
}

// ratOf is the exact value of a JSON number whose exponent is small enough to
// be written out.
func ratOf(num string) (*big.Rat, bool) {
	if CheckJSON([]byte(num)) != nil || kindOf([]byte(num)) != kindNumber || strings.ContainsAny(num, " \t\r\n") {
		return nil, false
	}
	if _, exp, ok := strings.Cut(strings.ToLower(num), "e"); ok && len(exp) > 4 {
		return nil, false
	}
	return new(big.Rat).SetString(num)
}
