package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
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
		`[1e999]`:                            "not valid JSON at byte 1 of 7: number outside the range of float64",
		`secret`:                             "not valid JSON at byte 0 of 6: unexpected character",
		strings.Repeat("[", MaxDepth) + `[]`: "not valid JSON at byte 512 of 514: nested deeper than 512",
	} {
		if err := CheckJSON([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("CheckJSON(%.30q) = %v, want %s", text, err, want)
		}
	}
}

// reference is the verdict of another tokenizer, with the two rules of ours that
// it does not have: nesting, and the range of numbers.
func reference(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	depth := 0
	for {
		tok, err := d.ReadToken()
		switch {
		case err == io.EOF && depth == 0 && d.InputOffset() > 0:
			return nil
		case err != nil:
			return err
		}
		switch tok.Kind() {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return errors.New("nested too deep")
			}
		case '}', ']':
			depth--
		case '0':
			if _, err := strconv.ParseFloat(tok.String(), 64); err != nil {
				return err
			}
		}
		if depth == 0 {
			if rest := bytes.TrimLeft(text[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
				return errors.New("more text")
			}
			return nil
		}
	}
}

// The scanner and jsontext accept and refuse the same texts.
func FuzzCheckJSON(f *testing.F) {
	for _, text := range append(validJSON(), invalidJSON()...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, want := CheckJSON(text), reference(text)
		if (got == nil) != (want == nil) {
			t.Fatalf("%q: got %v, jsontext says %v", text, got, want)
		}
		if got != nil {
			return
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%q is accepted and cannot be read: %v", text, err)
		}
	})
}

// Duplicate names are found among few and among many, at every depth, however
// they are spelled.
func TestDuplicateNamesEverywhere(t *testing.T) {
	for _, n := range []int{1, 2, manyNames - 1, manyNames, manyNames + 1, 100, 5000} {
		var b strings.Builder
		b.WriteString(`{"deep":[{"other":{}`)
		for i := range n {
			// The inner object has the same names as the outer one.
			fmt.Fprintf(&b, `,"name%d":{"name%d":%d}`, i, i, i)
		}
		whole := b.String()
		if err := CheckJSON([]byte(whole + `}]}`)); err != nil {
			t.Fatalf("%d names: %v", n, err)
		}
		for _, name := range []string{`"name0"`, fmt.Sprintf(`"name%d"`, n-1), `"nam\u00650"`, `"other"`} {
			if CheckJSON([]byte(whole+`,`+name+`:1}]}`)) == nil {
				t.Errorf("%d names: a second %s is accepted", n, name)
			}
		}
	}
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
