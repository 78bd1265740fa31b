package translate

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// value is a JSON value of the agent as it was written, nil where it is absent.
type value []byte

// object has the members of an object by their exact names. Of a repeated name
// the last one counts, as it does for the agents themselves.
type object map[string]value

// parse opens an object. It takes what the agents write, which can be laxer
// than our own protocol; false where raw is not one object and nothing else.
func parse(raw []byte) (object, bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		return nil, false
	}
	o := object{}
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != '}' {
		var token jsontext.Token
		if token, err = dec.ReadToken(); err != nil {
			return nil, false
		}
		name := token.String()
		var v jsontext.Value
		if v, err = dec.ReadValue(); err != nil {
			return nil, false
		}
		end := int(dec.InputOffset())
		o[name] = raw[end-len(v) : end : end]
	}
	if err != nil {
		return nil, false
	}
	if _, err = dec.ReadToken(); err != nil {
		return nil, false
	}
	rest := bytes.TrimLeft(raw[dec.InputOffset():], " \t\r")
	return o, len(rest) == 0
}

func (v value) kind() byte {
	if len(v) == 0 {
		return 0
	}
	return byte(jsontext.Value(v).Kind())
}

// isNull takes an absent member and null for the same.
func (v value) isNull() bool { k := v.kind(); return k == 0 || k == 'n' }

// object opens a value; an empty object where it is none.
func (v value) object() object {
	o, _ := parse(v)
	return o
}

// text is the content of a string, empty where it is none.
func (v value) text() string {
	if v.kind() != '"' {
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, []byte(v))
	if err != nil {
		return ""
	}
	return string(s)
}

// list splits an array; nil where it is none.
func (v value) list() []value {
	if v.kind() != '[' {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	var list []value
	for dec.PeekKind() != ']' {
		e, err := dec.ReadValue()
		if err != nil {
			return list
		}
		end := int(dec.InputOffset())
		list = append(list, v[end-len(e):end:end])
	}
	return list
}

// integer reads an integer; false where the value is none.
func (v value) integer() (int64, bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil
}

// fitting is the start of a list that fits into maxList.
func fitting(list [][]byte) [][]byte {
	total := 0
	for i, e := range list {
		if total += len(e) + 1; total > maxList {
			return list[:i]
		}
	}
	return list
}

// array joins values that this package made.
func array(list [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(list, []byte{','})...), ']')
}
