package worker

import (
	"encoding/json"
	"errors"
	"strings"

	"prp/controller/bridge"
)

// wrongField is a member of an object that is not as expected.
type wrongField struct{ path, want string }

func (e *wrongField) Error() string { return e.path + ": " + e.want }

// decodeStrict reads one JSON object into a struct as [bridge.DecodeStrict] does;
// null is none. Paths in errors begin with top.
func decodeStrict(raw []byte, into any, top string) error {
	err := bridge.DecodeStrict(raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return &wrongField{strings.TrimSuffix(top+"."+wrong.Field, "."), "expected another type than " + wrong.Value}
	case err != nil:
		return &wrongField{top, err.Error()}
	case strings.TrimSpace(string(raw)) == "null":
		return &wrongField{top, "expected an object"}
	}
	return nil
}
