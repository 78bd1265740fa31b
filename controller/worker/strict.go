package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"prp/protocol"
)

// wrongField is a member of an object that is not as expected.
type wrongField struct{ path, want string }

func (e *wrongField) Error() string { return e.path + ": " + e.want }

// decodeStrict reads one JSON object into a struct. A member that is not known,
// also one in other letters, is an error, since a name that is mistyped would
// mean its default; so is one that is given twice. Paths in errors begin with
// top.
func decodeStrict(raw []byte, into any, top string) error {
	if err := protocol.CheckJSON(raw); err != nil {
		return &wrongField{top, err.Error()}
	}
	if err := checkNames(raw, reflect.TypeOf(into).Elem(), top); err != nil {
		return err
	}
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return &wrongField{strings.TrimSuffix(top+"."+wrong.Field, "."), "expected another type than " + wrong.Value}
	case err != nil:
		return &wrongField{top, err.Error()}
	}
	return nil
}

// checkNames checks the names of the members of an object, and of objects in a
// list inside; package encoding/json does not tell names in other letters
// apart. A value of another type is found when it is decoded.
func checkNames(raw json.RawMessage, t reflect.Type, path string) error {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for i, one := range list {
			if err := checkNames(one, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return &wrongField{path, "expected an object"}
	}
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			known[name] = t.Field(i).Type
		}
	}
	for name, member := range members {
		field, ok := known[name]
		if !ok {
			return &wrongField{path, fmt.Sprintf("expected no member %q", name)}
		}
		if err := checkNames(member, field, path+"."+name); err != nil {
			return err
		}
	}
	return nil
}
