package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// FieldError says which member of an object has the wrong shape.
type FieldError struct {
	// Path is the member, with dots between the levels; empty is the whole
	// value.
	Path string
	// Want is what was expected, Got what was seen. Got has no content of
	// the line but short words where the protocol has a fixed set of them.
	Want, Got string
}

// Error implements error.
func (e *FieldError) Error() string {
	text := "expected " + e.Want + ", got " + e.Got
	if e.Path == "" {
		return text
	}
	return e.Path + ": " + text
}

// member is one member of an object: its name, and where its value stands.
type member struct {
	name string
	raw  json.RawMessage
}

// fields is a shallow view of one object that has been checked as a whole. Its
// readers note the first fault and return zero values from then on, so that a
// decoder is a list of members and one look at err. A member with the value
// null is never taken for an absent one.
type fields struct {
	path    string // of the object, "" or ending in a dot
	hush    bool   // faults quote nothing of the object
	members []member
	err     error
}

// readFields checks raw and opens it as an object.
func readFields(path string, raw []byte) (*fields, error) {
	var s scanner
	s.reset(raw)
	if err := s.next(); err != nil {
		return nil, err
	}
	if s.kind != kindObject {
		first := s.span
		if err := s.rest(); err != nil {
			return nil, err
		}
		if err := s.finish(); err != nil {
			return nil, err
		}
		return nil, &FieldError{Path: strings.TrimSuffix(path, "."), Want: "an object", Got: kindName(first.kind)}
	}
	f := &fields{path: path, members: make([]member, 0, 16)}
	for {
		name, more, err := s.member()
		if err != nil {
			return nil, err
		}
		if !more {
			return f, s.finish()
		}
		m := member{name: string(name)}
		if err := s.value(); err != nil {
			return nil, err
		}
		m.raw = raw[s.start:s.end:s.end]
		f.members = append(f.members, m)
	}
}

// raw is the value of a member, nil where there is none.
func (f *fields) raw(name string) json.RawMessage {
	for i := range f.members {
		if f.members[i].name == name {
			return f.members[i].raw
		}
	}
	return nil
}

func (f *fields) has(name string) bool { return f.raw(name) != nil }

// fail notes a fault unless there is one already.
func (f *fields) fail(name, want, got string) {
	if f.err == nil {
		f.err = &FieldError{Path: f.path + name, Want: want, Got: got}
	}
}

// kinded is a required member of one kind.
func (f *fields) kinded(name string, kind byte) json.RawMessage {
	raw := f.raw(name)
	if got := kindOf(raw); got != kind {
		f.fail(name, kindName(kind), kindName(got))
		return nil
	}
	return raw
}

// text is a required string.
func (f *fields) text(name string) string {
	return string(appendUnquotedOrNothing(f.kinded(name, kindString)))
}

// bounded is a required string of low to high characters.
func (f *fields) bounded(name string, low, high int) string {
	s := f.text(name)
	if n := utf8.RuneCountInString(s); f.err == nil && (n < low || n > high) {
		f.fail(name, fmt.Sprintf("a string of %d to %d characters", low, high), fmt.Sprintf("%d characters", n))
		return ""
	}
	return s
}

func (f *fields) id(name string) string { return f.bounded(name, 1, MaxIDLen) }

// optionalID is empty where the member is absent.
func (f *fields) optionalID(name string) string {
	if !f.has(name) {
		return ""
	}
	return f.id(name)
}

func (f *fields) optionalText(name string) string {
	if !f.has(name) {
		return ""
	}
	return f.text(name)
}

// word is a required string out of a fixed set.
func (f *fields) word(name string, allowed ...string) string {
	s := f.text(name)
	if f.err != nil {
		return ""
	}
	for _, a := range allowed {
		if s == a {
			return s
		}
	}
	quoted := make([]string, len(allowed))
	for i, a := range allowed {
		quoted[i] = fmt.Sprintf("%q", a)
	}
	got := shortQuote(s)
	if f.hush {
		got = "another string"
	}
	f.fail(name, strings.Join(quoted, " or "), got)
	return ""
}

// integer is a required integer from low on.
func (f *fields) integer(name string, low int64) int64 {
	raw := f.kinded(name, kindNumber)
	if raw == nil {
		return 0
	}
	v, ok := integer(raw)
	if !ok || v < low {
		f.fail(name, fmt.Sprintf("an integer from %d to 2^53-1", low), "another number")
		return 0
	}
	return v
}

func (f *fields) boolean(name string) bool {
	raw := f.raw(name)
	kind := kindOf(raw)
	if kind != kindTrue && kind != kindFalse {
		f.fail(name, "true or false", kindName(kind))
	}
	return kind == kindTrue
}

// object is a required object.
func (f *fields) object(name string) json.RawMessage { return f.kinded(name, kindObject) }

// payload is an optional object whose absence stands for {}.
func (f *fields) payload(name string) json.RawMessage {
	if !f.has(name) {
		return json.RawMessage("{}")
	}
	return f.object(name)
}

// nested opens a required object.
func (f *fields) nested(name string) *fields {
	raw := f.object(name)
	if raw == nil {
		return &fields{path: f.path + name + ".", err: f.err}
	}
	in, err := readFields(f.path+name+".", raw)
	if err != nil {
		f.err = err // cannot be: the whole was checked
		return &fields{err: err}
	}
	return in
}

// adopt takes over the fault of a nested object.
func (f *fields) adopt(in *fields) {
	if f.err == nil {
		f.err = in.err
	}
}

// list is a required array; an empty one is not nil.
func (f *fields) list(name string) []json.RawMessage {
	raw := f.kinded(name, kindArray)
	if raw == nil {
		return nil
	}
	return elements(raw)
}

// words is an optional array of strings; nil where absent.
func (f *fields) words(name string) []string {
	if !f.has(name) {
		return nil
	}
	list := f.list(name)
	out := make([]string, 0, len(list))
	for i, e := range list {
		if k := kindOf(e); k != kindString {
			f.fail(fmt.Sprintf("%s[%d]", name, i), kindName(kindString), kindName(k))
			return nil
		}
		out = append(out, string(appendUnquoted(nil, e)))
	}
	return out
}

// time is a required RFC 3339 time.
func (f *fields) time(name string) time.Time {
	s := f.text(name)
	if f.err != nil {
		return time.Time{}
	}
	t, ok := parseTime(s)
	if !ok {
		f.fail(name, "an RFC 3339 time", "another string")
	}
	return t
}

func (f *fields) optionalTime(name string) *time.Time {
	if !f.has(name) {
		return nil
	}
	t := f.time(name)
	return &t
}

// elements splits an array that was checked.
func elements(raw []byte) []json.RawMessage {
	out := []json.RawMessage{}
	var s scanner
	s.reset(raw)
	if s.next() != nil {
		return out
	}
	for s.next() == nil && s.kind != ']' {
		if s.rest() != nil {
			break
		}
		out = append(out, raw[s.start:s.end:s.end])
	}
	return out
}

// kindOf is the kind of a value that was checked.
func kindOf(raw []byte) byte {
	if len(raw) == 0 {
		return kindNone
	}
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return c
	}
	return kindNumber
}

func kindName(kind byte) string {
	switch kind {
	case kindNone:
		return "nothing"
	case kindNull:
		return "null"
	case kindTrue, kindFalse:
		return "a boolean"
	case kindString:
		return "a string"
	case kindNumber:
		return "a number"
	case kindArray:
		return "an array"
	}
	return "an object"
}

func appendUnquotedOrNothing(quoted []byte) []byte {
	if quoted == nil {
		return nil
	}
	return appendUnquoted(nil, quoted)
}

// shortQuote quotes a word where it is short enough to be one of the
// protocol's.
func shortQuote(s string) string {
	const longestWord = 48 // the longest schema name has 35 characters
	if len(s) > longestWord {
		return fmt.Sprintf("a string of %d bytes", len(s))
	}
	return fmt.Sprintf("%q", s)
}
