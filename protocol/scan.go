package protocol

import (
	"bytes"
	"fmt"
	"strconv"
)

// Kinds of JSON values and tokens, named by their first byte. A number is
// '0' whatever its digits are; none is the kind of a member that is absent.
const (
	kindNone   = 0
	kindNull   = 'n'
	kindFalse  = 'f'
	kindTrue   = 't'
	kindString = '"'
	kindNumber = '0'
	kindObject = '{'
	kindArray  = '['
)

// span is where a value stands in the text that is scanned.
type span struct {
	kind       byte
	start, end int
}

// scanner walks over the tokens of one JSON text and checks it strictly on the
// way: RFC 8259 grammar, UTF-8, duplicate names at every depth, lone
// surrogates, nesting and the range of numbers (spec section 1). It is the only
// place that knows how JSON is written. A fuzz test holds it against
// jsontext.
//
// After an error nothing more may be asked of it but reset.
type scanner struct {
	src []byte

	span      // the last token
	pos   int // behind it, and behind the colon of a name
	depth int
	label place // of the last name

	expect expectation
	open   []frame // the open arrays and objects
	names  nameBook
}

// expectation is what may come next.
type expectation uint8

const (
	expectValue        expectation = iota // a value
	expectValueOrClose                    // the first value of an array, or its end
	expectName                            // a name, after a comma
	expectNameOrClose                     // the first name of an object, or its end
	expectMore                            // a comma or the end of the array or object
	expectNothing                         // the text is complete
)

// frame is one open array or object.
type frame struct {
	object bool
	names  objectNames
}

// syntaxError says where and why a text is not valid JSON under the rules of
// spec section 1, without any of its content.
type syntaxError struct {
	offset, length int
	what           string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("not valid JSON at byte %d of %d: %s", e.offset, e.length, e.what)
}

func (s *scanner) reset(src []byte) {
	s.src = src
	s.span, s.pos, s.depth, s.expect = span{}, 0, 0, expectValue
	s.open = s.open[:0]
	s.names.reset(src)
}

// release forgets the text, so that a scanner at rest keeps no line alive.
func (s *scanner) release() {
	s.src = nil
	s.names.release()
}

// next reads one token into s.span: a value that is not an array or object, a
// name, or a bracket. What stands between two tokens is checked and skipped.
func (s *scanner) next() error {
	at := skipBlanks(s.src, s.pos)
	if at == len(s.src) {
		return s.reject(at, "unexpected end")
	}
	c := s.src[at]
	if s.expect == expectMore {
		switch {
		case c == ',':
			at = skipBlanks(s.src, at+1)
			if at == len(s.src) {
				return s.reject(at, "unexpected end")
			}
			c = s.src[at]
			s.expect = expectValue
			if s.open[len(s.open)-1].object {
				s.expect = expectName
			}
		case c == '}' || c == ']':
			return s.close(at, c)
		default:
			return s.reject(at, unexpected)
		}
	}
	switch s.expect {
	case expectName, expectNameOrClose:
		if c == '"' {
			return s.name(at)
		}
		if c == '}' && s.expect == expectNameOrClose {
			return s.close(at, c)
		}
		return s.reject(at, unexpected)
	case expectValueOrClose:
		if c == ']' {
			return s.close(at, c)
		}
	case expectNothing:
		return s.reject(at, moreText)
	}
	return s.valueAt(at, c)
}

// rest reads up to the end of the value whose first token is s.span, which
// then covers the whole value.
func (s *scanner) rest() error {
	if s.kind != kindObject && s.kind != kindArray {
		return nil
	}
	first, outer := s.span, s.depth-1
	for s.depth > outer {
		if err := s.next(); err != nil {
			return err
		}
	}
	s.kind, s.start = first.kind, first.start
	return nil
}

// value reads a whole value into s.span.
func (s *scanner) value() error {
	if err := s.next(); err != nil {
		return err
	}
	return s.rest()
}

// member reads the name of the next member of an object; more is false at the
// end of the object. The name is valid until the next call.
func (s *scanner) member() (name []byte, more bool, err error) {
	if err := s.next(); err != nil {
		return nil, false, err
	}
	if s.kind != kindString {
		return nil, false, nil
	}
	return s.names.text(s.label), true, nil
}

// text is the content of the string at sp: a part of the scanned text, or, where
// the string has escapes, of scratch.
func (s *scanner) text(sp span, scratch *[]byte) []byte {
	raw := s.src[sp.start+1 : sp.end-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	*scratch = appendUnquoted((*scratch)[:0], s.src[sp.start:sp.end])
	return *scratch
}

// finish checks that nothing but blanks follows the value.
func (s *scanner) finish() error {
	if at := skipBlanks(s.src, s.pos); at < len(s.src) {
		return s.reject(at, moreText)
	}
	return nil
}

func (s *scanner) reject(at int, what string) error {
	return &syntaxError{offset: at, length: len(s.src), what: what}
}

const (
	unexpected = "unexpected character"
	moreText   = "more text after the value"
)

// valueAt reads the first token of a value that begins with c.
func (s *scanner) valueAt(at int, c byte) error {
	s.start = at
	switch c {
	case '"':
		end, _, err := s.str(at)
		if err != nil {
			return err
		}
		s.kind, s.end = kindString, end
	case '{':
		return s.push(at, kindObject)
	case '[':
		return s.push(at, kindArray)
	case 't':
		return s.literal(at, "true", kindTrue)
	case 'f':
		return s.literal(at, "false", kindFalse)
	case 'n':
		return s.literal(at, "null", kindNull)
	default:
		if err := s.number(at); err != nil {
			return err
		}
	}
	s.after()
	return nil
}

// after moves behind a complete value and sets what may follow it.
func (s *scanner) after() {
	s.pos = s.end
	s.expect = expectMore
	if s.depth == 0 {
		s.expect = expectNothing
	}
}

func (s *scanner) push(at int, kind byte) error {
	if s.depth++; s.depth > MaxDepth {
		return s.reject(at, "nested deeper than "+strconv.Itoa(MaxDepth))
	}
	s.kind, s.end, s.pos = kind, at+1, at+1
	f := frame{object: kind == kindObject}
	s.expect = expectValueOrClose
	if f.object {
		s.expect = expectNameOrClose
		f.names = s.names.open()
	}
	s.open = append(s.open, f)
	return nil
}

func (s *scanner) close(at int, c byte) error {
	f := &s.open[len(s.open)-1]
	if f.object != (c == '}') {
		return s.reject(at, unexpected)
	}
	if f.object {
		s.names.close(&f.names)
	}
	s.open = s.open[:len(s.open)-1]
	s.kind, s.start, s.end = c, at, at+1
	s.depth--
	s.after()
	return nil
}

// name reads the name of a member and the colon behind it, and checks that the
// object has no other of the same name.
func (s *scanner) name(at int) error {
	end, escaped, err := s.str(at)
	if err != nil {
		return err
	}
	s.label = s.names.locate(at, end, escaped)
	if !s.names.add(&s.open[len(s.open)-1].names, s.label) {
		return s.reject(at, "duplicate name")
	}
	colon := skipBlanks(s.src, end)
	switch {
	case colon == len(s.src):
		return s.reject(colon, "unexpected end")
	case s.src[colon] != ':':
		return s.reject(colon, unexpected)
	}
	s.kind, s.start, s.end = kindString, at, end
	s.pos = colon + 1
	s.expect = expectValue
	return nil
}

func (s *scanner) literal(at int, word string, kind byte) error {
	if len(s.src)-at < len(word) || string(s.src[at:at+len(word)]) != word {
		return s.reject(at, unexpected)
	}
	s.kind, s.end = kind, at+len(word)
	s.after()
	return nil
}

// number reads a number (RFC 8259, section 6).
func (s *scanner) number(at int) error {
	src, i := s.src, at
	if i < len(src) && src[i] == '-' {
		i++
	}
	whole := i
	i = skipDigits(src, i)
	if i == whole || src[whole] == '0' && i > whole+1 {
		return s.reject(at, unexpected)
	}
	if i < len(src) && src[i] == '.' {
		from := i + 1
		if i = skipDigits(src, from); i == from {
			return s.reject(at, "number without digits after the point")
		}
	}
	exponent := i < len(src) && (src[i] == 'e' || src[i] == 'E')
	if exponent {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		from := i
		if i = skipDigits(src, from); i == from {
			return s.reject(at, "number without digits in the exponent")
		}
	}
	s.kind, s.end = kindNumber, i
	if (exponent || i-at > safeDigits) && overflows(src[at:i]) {
		return s.reject(at, "number outside the range of float64")
	}
	return nil
}

func skipDigits(src []byte, i int) int {
	for i < len(src) && src[i] >= '0' && src[i] <= '9' {
		i++
	}
	return i
}

// skipBlanks is inlined for the common case of no blank at all.
func skipBlanks(src []byte, i int) int {
	if i < len(src) && src[i] > ' ' {
		return i
	}
	return skipSome(src, i)
}

func skipSome(src []byte, i int) int {
	for i < len(src) {
		switch src[i] {
		case ' ', '\t', '\r', '\n':
			i++
		default:
			return i
		}
	}
	return i
}
