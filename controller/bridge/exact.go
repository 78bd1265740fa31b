package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"prp/protocol"
)

// Decode reads one JSON value into what into points at, as encoding/json does,
// but compares the names of members exactly: one in other letters is a member
// that is not known (prp.md section 1). Members that are not known are passed
// over. Where a value has another type the rest is read all the same, and the
// first of these errors, in the order of the fields, is returned: a
// [*json.UnmarshalTypeError] whose Field is the whole path. Objects in maps are
// read by encoding/json; embedded pointers and the option "string" are not for
// this function.
func Decode(raw []byte, into any) error {
	var d decoding
	d.value(raw, reflect.ValueOf(into).Elem(), "")
	return d.err
}

// DecodeStrict is [Decode] for what a person has written: a member that is not
// known or stands twice is an error, since a name that is mistyped would mean its
// default.
func DecodeStrict(raw []byte, into any) error {
	if err := protocol.CheckJSON(raw); err != nil {
		return err
	}
	d := decoding{strict: true}
	d.value(raw, reflect.ValueOf(into).Elem(), "")
	return d.err
}

// decoding is one value being read.
type decoding struct {
	strict bool
	err    error // the first one
}

// value reads a value. What has no members of its own is left to encoding/json.
func (d *decoding) value(raw json.RawMessage, at reflect.Value, path string) {
	t := at.Type()
	switch {
	case string(raw) == "null" || !nests(t):
		d.open(raw, at.Addr().Interface(), t, path)
	case t.Kind() == reflect.Struct:
		d.object(raw, at, path)
	case t.Kind() == reflect.Slice:
		d.list(raw, at, path)
	default:
		if at.IsNil() {
			at.Set(reflect.New(t.Elem()))
		}
		d.value(raw, at.Elem(), path)
	}
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// nests tells whether there can be an object with known names in a value.
func nests(t reflect.Type) bool {
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler):
		return false
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice:
		return nests(t.Elem())
	}
	return t.Kind() == reflect.Struct
}

// open reads a value into what into points at, for one of the type t; false is an
// error.
func (d *decoding) open(raw json.RawMessage, into any, t reflect.Type, path string) bool {
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field == "" {
			wrong.Type = t
		}
		wrong.Field = strings.Trim(path+"."+wrong.Field, ".")
	}
	if err != nil && d.err == nil {
		d.err = err
	}
	return err == nil
}

func (d *decoding) object(raw json.RawMessage, at reflect.Value, path string) {
	var m map[string]json.RawMessage
	if !d.open(raw, &m, at.Type(), path) {
		return
	}
	for _, field := range reflect.VisibleFields(at.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		one, ok := m[name]
		if !ok || !field.IsExported() || field.Anonymous || name == "-" {
			continue
		}
		d.value(one, at.FieldByIndex(field.Index), strings.TrimPrefix(path+"."+name, "."))
		delete(m, name)
	}
	if d.strict && d.err == nil && len(m) > 0 {
		d.err = fmt.Errorf("%sexpected no member %q", place(path), slices.Min(slices.Collect(maps.Keys(m))))
	}
}

// place is a path in front of a text.
func place(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func (d *decoding) list(raw json.RawMessage, at reflect.Value, path string) {
	var list []json.RawMessage
	if !d.open(raw, &list, at.Type(), path) {
		return
	}
	at.Set(reflect.MakeSlice(at.Type(), len(list), len(list)))
	for i, one := range list {
		d.value(one, at.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}
