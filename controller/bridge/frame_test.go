package bridge

import (
	"strings"
	"testing"
)

// TestOpenFrame: a frame is one object, read as strictly as the protocol's lines,
// and an error shows nothing of it.
func TestOpenFrame(t *testing.T) {
	for _, frame := range []string{
		"", "null", "1", `"sesame"`, `["sesame"]`, `{"sesame":1`, `{"sesame":1}{}`, `{"sesame":1,"sesame":2}`,
		`{"a":{"sesame":1,"sesame":2}}`, `{"sesame":"\ud800"}`, "{\"sesame\":\"\xff\"}",
		strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600),
	} {
		m, err := OpenFrame([]byte(frame))
		if err == nil || m != nil {
			t.Errorf("%.60q was read as %v", frame, m)
		} else if strings.Contains(err.Error(), "sesame") {
			t.Errorf("%.60q: the error shows the frame: %v", frame, err)
		}
	}
	m, err := OpenFrame([]byte(` {"a" : {"b":1}, "A":null} `))
	if err != nil || len(m) != 2 || string(m["a"]) != `{"b":1}` || string(m["A"]) != "null" {
		t.Errorf("got %v, %v", m, err)
	}
	if m, err = OpenFrame([]byte("{}")); err != nil || m == nil {
		t.Errorf("an empty object: %v, %v", m, err)
	}
}

func TestMemberText(t *testing.T) {
	m, err := OpenFrame([]byte(`{"a":"\u00e9é","null":null,"n":1,"list":["x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		most int
		want string
		ok   bool
	}{
		{"a", 2, "éé", true},
		{"a", 1, "", false},
		{"A", 2, "", true},
		{"missing", 2, "", true},
		{"null", 2, "", false},
		{"n", 2, "", false},
		{"list", 2, "", false},
	} {
		if got, err := m.Text(tt.name, tt.most); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s of at most %d characters: %q, %v", tt.name, tt.most, got, err)
		}
	}
}

// TestMemberDigest: remote.md rule 3.
func TestMemberDigest(t *testing.T) {
	digest := func(frame string) string {
		m, err := OpenFrame([]byte(frame))
		if err != nil {
			t.Fatal(err)
		}
		d := m.Digest()
		if len(d) != 64 || strings.Trim(d, "0123456789abcdef") != "" {
			t.Errorf("the digest of %s is %q", frame, d)
		}
		return d
	}
	one := digest(`{"a":1,"b":{"c":"é","d":[1,2]}}`)
	if same := digest(` { "b" : {"d":[1, 2],"c":"\u00e9"}, "a":1 }`); same != one {
		t.Error("space, escapes or the order of members count")
	}
	for _, other := range []string{`{"a":2,"b":{"c":"é","d":[1,2]}}`, `{"a":1,"b":{"c":"é","d":[2,1]}}`, `{"a":1}`, `{}`} {
		if digest(other) == one {
			t.Errorf("%s has the digest of another", other)
		}
	}
	if d := (Members{"a": []byte("{")}).Digest(); d != "" {
		t.Errorf("what is no JSON has the digest %q", d)
	}
}
