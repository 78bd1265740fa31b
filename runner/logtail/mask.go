package logtail

import (
	"bytes"
	"encoding/json"
	"sort"
)

// MinSecret is the length in bytes from which a value is masked. Shorter ones
// ("1", "true", "en_US") stand in ordinary text too often, and could be guessed
// from where they are missing.
const MinSecret = 6

const maskText = "[masked]"

// Masker hides secrets in texts.
type Masker struct {
	values [][]byte // longest first
	first  [256]bool
}

// NewMasker returns a masker of the given values. Of each value of at least
// [MinSecret] bytes it knows the plain form and the forms in which it stands
// inside JSON strings; of a value of several lines also each line that is long
// enough, since a log may show them one by one. It makes copies.
func NewMasker(secrets []string) *Masker {
	m := &Masker{}
	known := map[string]bool{}
	add := func(s string) {
		if len(s) < MinSecret || known[s] {
			return
		}
		known[s] = true
		m.values = append(m.values, []byte(s))
		m.first[s[0]] = true
	}
	for _, s := range secrets {
		if len(s) < MinSecret {
			continue
		}
		for _, form := range append(lines(s), s) {
			add(form)
			for _, inJSON := range jsonForms(form) {
				add(inJSON)
			}
		}
	}
	sort.SliceStable(m.values, func(i, j int) bool { return len(m.values[i]) > len(m.values[j]) })
	return m
}

func lines(s string) []string {
	var out []string
	for _, l := range bytes.Split([]byte(s), []byte{'\n'}) {
		out = append(out, string(bytes.TrimSuffix(l, []byte{'\r'})))
	}
	return out
}

// jsonForms are the usual spellings of s inside a JSON string: with the fewest
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
		form := quoted[1 : len(quoted)-1]
		out = append(out, string(form), string(bytes.ReplaceAll(form, []byte("/"), []byte(`\/`))))
	}
	return out
}

// Mask returns b with every secret in it replaced by [masked], the longest one
// where several begin at the same place. Where there is none it returns b
// itself; else a new slice, and b is unchanged.
func (m *Masker) Mask(b []byte) []byte {
	var out []byte
	from := 0
	for i := 0; i < len(b); {
		n := m.match(b[i:])
		if n == 0 {
			i++
			continue
		}
		out = append(append(out, b[from:i]...), maskText...)
		i += n
		from = i
	}
	if from == 0 {
		return b
	}
	return append(out, b[from:]...)
}

// match is the length of the longest secret at the start of b, 0 where there is
// none.
func (m *Masker) match(b []byte) int {
	if !m.first[b[0]] {
		return 0
	}
	for _, v := range m.values {
		if bytes.HasPrefix(b, v) {
			return len(v)
		}
	}
	return 0
}
