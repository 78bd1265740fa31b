package fields

import (
	"strconv"

	"prp/harness/text"
	"prp/protocol"
)

// MaxShort bounds a short text of a foreign program, such as a title or a name,
// in bytes.
const MaxShort = 1 << 10

// Fields are the members of an object. The zero value has none. Its methods
// return it, so that an object is one expression.
type Fields struct{ buf []byte }

// New returns an object without members.
func New() *Fields { return &Fields{} }

// Any reports whether there is a member.
func (f *Fields) Any() bool { return len(f.buf) > 0 }

func (f *Fields) name(name string) {
	if f.Any() {
		f.buf = append(f.buf, ',')
	}
	f.buf = append(protocol.AppendString(f.buf, name), ':')
}

// Text adds a string as it is; an empty one is left out.
func (f *Fields) Text(name, s string) *Fields {
	if s != "" {
		f.name(name)
		f.buf = protocol.AppendString(f.buf, s)
	}
	return f
}

// Short adds a string of a foreign program, cut to [MaxShort]; an empty one is
// left out. How many bytes a cut took stands in a member of the name with
// TruncatedBytes behind it.
func (f *Fields) Short(name, s string) *Fields {
	head, cut := text.Head(s, MaxShort)
	f.Text(name, head)
	if cut > 0 {
		f.Number(name+"TruncatedBytes", int64(cut))
	}
	return f
}

// Number adds an integer.
func (f *Fields) Number(name string, n int64) *Fields {
	f.name(name)
	f.buf = strconv.AppendInt(f.buf, n, 10)
	return f
}

// Truth adds true or false.
func (f *Fields) Truth(name string, b bool) *Fields {
	f.name(name)
	f.buf = strconv.AppendBool(f.buf, b)
	return f
}

// Own adds a JSON value that the caller made.
func (f *Fields) Own(name string, raw []byte) *Fields {
	f.name(name)
	f.buf = append(f.buf, raw...)
	return f
}

// Raw adds a JSON value of a foreign program with its own bytes, where it is
// strict and has at most limit of them; else its start and how much is missing
// stand in its place. Nothing and null are left out.
func (f *Fields) Raw(name string, raw []byte, limit int) *Fields {
	if len(raw) == 0 || string(raw) == "null" {
		return f
	}
	if len(raw) <= limit && protocol.CheckJSON(raw) == nil {
		return f.Own(name, raw)
	}
	s, _ := text.Valid(raw)
	head, cut := text.Head(s, min(limit, MaxShort))
	return f.Own(name, New().Text("head", head).Number("truncatedBytes", int64(cut)).Object())
}

// With adds the members of another object, which can be nil.
func (f *Fields) With(more *Fields) *Fields {
	if more == nil || !more.Any() {
		return f
	}
	if f.Any() {
		f.buf = append(f.buf, ',')
	}
	f.buf = append(f.buf, more.buf...)
	return f
}

// Append appends the object to dst.
func (f *Fields) Append(dst []byte) []byte {
	return append(append(append(dst, '{'), f.buf...), '}')
}

// Object is the object.
func (f *Fields) Object() []byte { return f.Append(nil) }
