package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// forms are the spellings of a value inside other text.
func forms(s string) []string {
	var out []string
	for _, once := range jsonForms(s) {
		out = append(out, once)
		out = append(out, jsonForms(once)...)
	}
	for _, escaped := range urlForms(s) {
		out = append(out, escaped, lowerPercent(escaped))
	}
	for skip := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			out = append(out, base64Form(enc, s, skip))
		}
	}
	return out
}

// jsonForms are the usual spellings inside a JSON string: with the fewest
// escapes, with <, > and & escaped as well, and either with \/ for /.
func jsonForms(s string) []string {
	var out []string
	for _, html := range []bool{false, true} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(s) != nil {
			continue // cannot be: every string can be encoded
		}
		quoted := bytes.TrimSpace(b.Bytes())
		form := string(quoted[1 : len(quoted)-1])
		out = append(out, form, strings.ReplaceAll(form, "/", `\/`))
	}
	return out
}

// urlForms are the usual spellings inside a URL. They are written here since
// package url brings the addresses of a network along.
func urlForms(s string) []string {
	query := percent(s, "")
	return []string{
		query,
		strings.ReplaceAll(query, "%20", "+"), // of a form; url.QueryEscape
		percent(s, "$&+=:@"),                  // url.PathEscape
		percent(s, "!*'()"),                   // encodeURIComponent of JavaScript
		percent(s, "!*'();,/?:@&=+$#"),        // encodeURI of JavaScript
		allPercent(s),
	}
}

const upperHex = "0123456789ABCDEF"

// percent escapes all but letters, digits, -._~ and the bytes of keep.
func percent(s, keep string) string {
	b := make([]byte, 0, 3*len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0, strings.IndexByte(keep, c) >= 0:
			b = append(b, c)
		default:
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return string(b)
}

func allPercent(s string) string {
	b := make([]byte, 0, 3*len(s))
	for i := range len(s) {
		b = append(b, '%', upperHex[s[i]>>4], upperHex[s[i]&15])
	}
	return string(b)
}

// lowerPercent writes the digits after each % in lower case.
func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// base64Form is the part of a base64 text that a value decides alone when skip
// bytes of something else come before it in its group of three.
func base64Form(enc *base64.Encoding, s string, skip int) string {
	text := enc.EncodeToString(append(make([]byte, skip), s...))
	from := []int{0, 2, 3}[skip]
	// The last character holds bits of what follows unless the group is full.
	to := len(text)
	if (skip+len(s))%3 != 0 {
		to--
	}
	return text[min(from, to):to]
}
