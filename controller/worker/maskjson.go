package worker

import (
	"bytes"
	"encoding/json"

	"prp/controller/bridge"
)

// maskStrings masks the strings inside a JSON value, not its structure.
func maskStrings(raw []byte, mask *bridge.Masker) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return json.RawMessage(`null`)
	}
	out, err := json.Marshal(maskValue(v, mask))
	if err != nil {
		return json.RawMessage(`null`)
	}
	return out
}

func maskValue(v any, mask *bridge.Masker) any {
	switch v := v.(type) {
	case string:
		return mask.String(v)
	case []any:
		for i := range v {
			v[i] = maskValue(v[i], mask)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[mask.String(name)] = maskValue(member, mask)
		}
		return out
	}
	return v
}
