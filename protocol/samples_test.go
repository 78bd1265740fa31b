package protocol

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// invalidJSON are texts that spec section 1 calls invalid.
func invalidJSON() []string {
	return []string{
		``, ` `, `{`, `{"a":1`, `{"a":1,}`, `{"a":1}}`, `{"a":1}{"b":2}`, `{"a":1} x`, `{"a":1},`, `{a:1}`, `{'a':1}`,
		`[1,]`, `[1 2]`, `undefined`, `NaN`, `Infinity`, `nul`, `01`, `+1`, `1.`, `.5`, `1e`, `-`, `0x10`,
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"x":{"y":[{"a":1,"b":2,"a":3}]}}`,
		"\"\x80\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "{\"\xff\":1}",
		`"\ud800"`, `"\udc00"`, `"\ud800\ud800"`, `"\ud800x"`, `"\ude00\ud83d"`, `{"\ud800":1}`,
		`"\x41"`, `"\u12"`, `"\u12g4"`, "\"a\nb\"", "\"a\x00b\"", "\"a\tb\"", "\x00{}", "{}\x00", "\ufeff{}",
		`1e309`, `-1e309`, `1e99999999999999999999`, `[1.8e308]`, strings.Repeat("9", 310), `{"a":{"b":1e400}}`,
		nested(MaxDepth + 1), nestedObjects(MaxDepth + 1), `// c` + "\n" + `{}`, `{}/**/`,
	}
}

// validJSON are texts at the edges of what is valid.
func validJSON() []string {
	return []string{
		`{}`, `[]`, `""`, `0`, `-0`, `null`, `true`, `false`, " \t\r\n{} \t\r\n",
		`1e308`, `1.7976931348623157e308`, `1e-999999999999`, `0e999999999999`, strings.Repeat("9", 308),
		`123456789012345678901234567890123456789012345678901234567890`,
		`{"a":1,"A":2,"á":3}`, `[{"a":1},{"a":1}]`, `{"a":{"a":{"a":1}}}`, `{"":1}`,
		`"\ud83d\ude00"`, `"\u0000"`, "\"\u2028\u2029\u0085<>&\ufeff\x7f\"", `"\"\\\/\b\f\n\r\t"`,
		nested(MaxDepth), nestedObjects(MaxDepth),
	}
}

func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

func nestedObjects(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}

// escapeAll writes every UTF-16 code unit of s as an escape.
func escapeAll(s string) []byte {
	out := []byte{'"'}
	for _, u := range utf16.Encode([]rune(s)) {
		out = fmt.Appendf(out, `\u%04X`, u)
	}
	return append(out, '"')
}

// shiftNumber writes the same number with one more zero and an exponent that
// is smaller by one, where it has no exponent; otherwise with a plus or a zero
// more in its exponent.
func shiftNumber(num []byte) []byte {
	mantissa, exponent, ok := bytes.Cut(bytes.ToLower(num), []byte("e"))
	if ok {
		sign, digits := "+", string(exponent)
		if digits[0] == '-' || digits[0] == '+' {
			sign, digits = digits[:1], digits[1:]
		}
		return []byte(string(mantissa) + "E" + sign + "0" + digits)
	}
	whole, fraction, _ := strings.Cut(string(num), ".")
	if len(whole) > 300 {
		return num
	}
	return []byte(whole + "." + fraction + "00e" + strconv.Itoa(0))
}
