package bridge

import (
	"bytes"
	"encoding/json"
)

// JSON returns a JSON value with every secret in its strings and names masked,
// not in its structure; numbers stay digit for digit. Where there is none it
// returns raw itself; it never changes raw.
func (m *Masker) JSON(raw json.RawMessage) json.RawMessage {
	if !m.Any() || bytes.Equal(m.Mask(raw), raw) {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return json.RawMessage(`null`)
	}
	out, err := json.Marshal(m.value(v))
	if err != nil {
		return json.RawMessage(`null`)
	}
	return out
}

func (m *Masker) value(v any) any {
	switch v := v.(type) {
	case string:
		return m.String(v)
	case []any:
		for i := range v {
			v[i] = m.value(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[m.String(name)] = m.value(member)
		}
		return out
	}
	return v
}
