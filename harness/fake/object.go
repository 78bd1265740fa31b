package fake

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// shownRunes is how much of a string from a script stands in an error.
const shownRunes = 40

// object reads the members of one JSON object strictly: each member is asked
// for once, and what was not asked for is an error. The first error is kept
// and everything after it gives zero values, so that a parse function reads
// like the list of its members.
type object struct {
	what    string // names the object in errors, such as `a "delay" step`
	path    string // steps[3], empty for the script itself
	depth   int    // how many steps this one is inside of
	names   []string
	values  []jsontext.Value
	known   []string
	problem *error
}

// newObject splits raw, which is valid JSON. It is empty where raw is not an
// object, and then the problem says so.
func newObject(raw jsontext.Value, path, what string, depth int, problem *error) *object {
	o := &object{what: what, path: path, depth: depth, problem: problem}
	if raw.Kind() != '{' {
		o.fail("", fmt.Sprintf("expected an object, got %s", describe(raw)))
		return o
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err != nil {
			break
		}
		o.names = append(o.names, name.String())
		var value jsontext.Value
		value, err = dec.ReadValue()
		o.values = append(o.values, bytes.Clone(value))
	}
	if err != nil {
		o.fail("", fmt.Sprintf("expected an object: %v", err))
	}
	return o
}

// fail keeps the first problem. An empty name means the object itself.
func (o *object) fail(name, text string) {
	if *o.problem == nil {
		*o.problem = pathError(join(o.path, name), text)
	}
}

func pathError(path, text string) error {
	if path == "" {
		return fmt.Errorf("script: %s", text)
	}
	return fmt.Errorf("%s: %s", path, text)
}

// get returns a member, or nil where it is absent.
func (o *object) get(name string) jsontext.Value {
	o.known = append(o.known, name)
	if i := slices.Index(o.names, name); i >= 0 {
		return o.values[i]
	}
	return nil
}

// has tells whether a member is there, without asking for it.
func (o *object) has(name string) bool { return slices.Contains(o.names, name) }

// done complains about the first member that nobody asked for.
func (o *object) done() {
	for _, name := range o.names {
		if !slices.Contains(o.known, name) {
			o.fail(name, fmt.Sprintf("unknown member of %s%s", o.what, suggest(name, o.known)))
			return
		}
	}
}

func (o *object) wrong(name, want string, got jsontext.Value) {
	o.fail(name, fmt.Sprintf("expected %s, got %s", want, describe(got)))
}

// text is a required string of min to max characters; a max of 0 is no bound.
func (o *object) text(name string, minLen, maxLen int) string {
	raw := o.get(name)
	want := "a string"
	if maxLen > 0 {
		want = fmt.Sprintf("a string of %d to %d characters", minLen, maxLen)
	}
	s, ok := unquote(raw)
	if n := utf8.RuneCountInString(s); !ok || n < minLen || maxLen > 0 && n > maxLen {
		o.wrong(name, want, raw)
		return ""
	}
	return s
}

// optionalText is text that may be absent.
func (o *object) optionalText(name string, minLen, maxLen int) string {
	if !o.has(name) {
		o.known = append(o.known, name)
		return ""
	}
	return o.text(name, minLen, maxLen)
}

// choice is a required string out of a list.
func (o *object) choice(name string, list ...string) string {
	raw := o.get(name)
	s, ok := unquote(raw)
	if !ok || !slices.Contains(list, s) {
		o.wrong(name, "one of "+quoteList(list), raw)
		return ""
	}
	return s
}

// integer is a required integer, written without fraction and exponent.
func (o *object) integer(name string, low, high int64) int64 {
	raw := o.get(name)
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil && n >= low && n <= high {
		return n
	}
	want := fmt.Sprintf("an integer from %d", low)
	if err == nil && n > high || raw.Kind() == '0' && err != nil {
		want = fmt.Sprintf("an integer from %d to %d", low, high)
	}
	o.wrong(name, want, raw)
	return low
}

// optionalInteger is an integer that may be absent, and then is 0.
func (o *object) optionalInteger(name string, low, high int64) int64 {
	if !o.has(name) {
		o.known = append(o.known, name)
		return 0
	}
	return o.integer(name, low, high)
}

// flag is an optional true or false; absent is false.
func (o *object) flag(name string) bool {
	raw := o.get(name)
	if raw != nil && raw.Kind() != 't' && raw.Kind() != 'f' {
		o.wrong(name, "true or false", raw)
	}
	return raw.Kind() == 't'
}

// object is a required object, as it was written but without the line breaks
// and blanks around its parts: a message is one line.
func (o *object) object(name string) []byte {
	raw := o.get(name)
	if raw.Kind() != '{' {
		o.wrong(name, "an object", raw)
		return nil
	}
	if err := raw.Compact(); err != nil {
		o.fail(name, err.Error())
	}
	return raw
}

// steps is a required array of steps.
func (o *object) steps(name string) []Step {
	raw := o.get(name)
	if raw.Kind() != '[' {
		o.wrong(name, "an array of steps", raw)
		return nil
	}
	path := join(o.path, name)
	if o.depth >= MaxRepeatDepth {
		o.fail(name, fmt.Sprintf("expected steps nested at most %d deep", MaxRepeatDepth))
		return nil
	}
	list := []Step{}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	_, err := dec.ReadToken()
	for err == nil && *o.problem == nil && dec.PeekKind() != ']' {
		var value jsontext.Value
		if value, err = dec.ReadValue(); err == nil {
			list = append(list, parseStep(value, fmt.Sprintf("%s[%d]", path, len(list)), o.depth+1, o.problem))
		}
	}
	if err != nil {
		o.fail(name, err.Error())
	}
	return list
}

func join(path, name string) string {
	if name != "" && !isWord(name) {
		name = strconv.Quote(shorten(name))
	}
	switch {
	case path == "":
		return name
	case name == "":
		return path
	}
	return path + "." + name
}

func isWord(s string) bool {
	return len(s) <= shownRunes && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

func unquote(raw jsontext.Value) (string, bool) {
	if raw.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	return string(b), err == nil
}

// describe names a value in an error without showing much of it.
func describe(raw jsontext.Value) string {
	switch raw.Kind() {
	case '"':
		s, _ := unquote(raw)
		return strconv.Quote(shorten(s))
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n', 't', 'f', '0':
		return shorten(string(raw))
	}
	return "nothing"
}

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= shownRunes {
		return s
	}
	return string([]rune(s)[:shownRunes]) + "..."
}

func quoteList(list []string) string {
	quoted := make([]string, 0, len(list))
	for _, s := range list {
		quoted = append(quoted, strconv.Quote(s))
	}
	return strings.Join(quoted, ", ")
}
