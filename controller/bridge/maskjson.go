package bridge

import (
	"bytes"
	"encoding/json"
)

// JSON returns a JSON value with every secret in its strings and names masked,
// not in its structure. A number whose digits have a secret becomes the string
// [Masked]; others stay digit for digit. A secret is found however
// its characters are escaped. Where there is none it returns raw itself; it
// never changes raw.
func (m *Masker) JSON(raw json.RawMessage) json.RawMessage {
	// Without an escape a string stands there as it is.
	if !m.Any() || bytes.IndexByte(raw, '\\') < 0 && bytes.Equal(m.Mask(raw), raw) {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return json.RawMessage(`null`)
	}
	changed := false
	masked := m.value(v, &changed)
	if !changed {
		return raw
	}
	out, err := json.Marshal(masked)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return out
}

// value masks a decoded value and tells whether that changed anything.
func (m *Masker) value(v any, changed *bool) any {
	text := func(s string) string {
		out := m.String(s)
		*changed = *changed || out != s
		return out
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case json.Number:
		if digits := v.String(); m.String(digits) != digits {
			*changed = true
			return Masked
		}
	case []any:
		for i := range v {
			v[i] = m.value(v[i], changed)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[text(name)] = m.value(member, changed)
		}
		return out
	}
	return v
}
