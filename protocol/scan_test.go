package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheckJSON(t *testing.T) {
	for _, text := range validJSON() {
		if err := CheckJSON([]byte(text)); err != nil {
			t.Errorf("CheckJSON(%.60q) = %v, want nil", text, err)
		}
	}
	for _, text := range invalidJSON() {
		if CheckJSON([]byte(text)) == nil {
			t.Errorf("CheckJSON(%.60q) = nil, want an error", text)
		}
	}
}

// An error names the place and the rule and nothing of the content.
func TestSyntaxErrorsHaveNoContent(t *testing.T) {
	for text, want := range map[string]string{
		`{"secret":1,"secret":2}`:            "not valid JSON at byte 12 of 23: duplicate name",
		`{"secret":"x`:                       "not valid JSON at byte 12 of 12: unexpected end",
		`{"a":1} secret`:                     "not valid JSON at byte 8 of 14: more text after the value",
		"[\"a\xff\"]":                        "not valid JSON at byte 3 of 6: invalid UTF-8",
		`[1e999]`:                            "not valid JSON at byte 6 of 7: number outside the range of float64",
		`secret`:                             "not valid JSON at byte 0 of 6: unexpected character or escape",
		strings.Repeat("[", MaxDepth) + `[]`: "not valid JSON at byte 513 of 514: nested deeper than 512",
	} {
		if err := CheckJSON([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("CheckJSON(%.30q) = %v, want %s", text, err, want)
		}
	}
}

// What the standard library refuses is refused here too; what is accepted here
// means the same there.
func FuzzCheckJSON(f *testing.F) {
	for _, text := range append(validJSON(), invalidJSON()...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if CheckJSON(text) != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("%q is accepted and not valid JSON", text)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%q is accepted and cannot be read: %v", text, err)
		}
	})
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "1": 1, "1.0": 1, "1e0": 1, "10e-1": 1, "0.1e1": 1, "1E+2": 100, "1.5e1": 15,
		"9007199254740991": maxInteger, "9007199254740991.000": maxInteger, "9.007199254740991e15": maxInteger,
		"900719925474099100e-2": maxInteger, "1e15": 1e15, "123456789012345": 123456789012345,
	} {
		if got, ok := integer([]byte(text)); !ok || got != want {
			t.Errorf("integer(%s) = %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"-1", "1.5", "1e-1", "9007199254740992", "9007199254740993", "18446744073709551616", "18446744073709551617",
		"1e16", "1e100", "1e308", "1e-999999999999999999999", "99999999999999999", "0.99999999999999999999", "-1e2",
	} {
		if got, ok := integer([]byte(text)); ok {
			t.Errorf("integer(%s) = %d, want none", text, got)
		}
	}
}
