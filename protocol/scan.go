package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
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
// way: UTF-8, duplicate names at every depth, lone surrogates, nesting and the
// range of numbers (spec section 1). It is the only place that knows the
// tokenizer.
type scanner struct {
	dec jsontext.Decoder
	rd  bytes.Buffer
	src []byte

	span  // the last token
	depth int
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
	s.rd = *bytes.NewBuffer(src)
	s.dec.Reset(&s.rd)
	s.span, s.depth = span{}, 0
}

// release forgets the text, so that a scanner at rest keeps no line alive.
func (s *scanner) release() {
	s.src = nil
	s.rd = bytes.Buffer{}
	s.dec.Reset(&s.rd)
}

// next reads one token into s.span.
func (s *scanner) next() error {
	prev := s.end
	tok, err := s.dec.ReadToken()
	if err != nil {
		return s.fault(err)
	}
	s.end = int(s.dec.InputOffset())
	s.kind = byte(tok.Kind())
	switch s.kind {
	case '{', '[':
		s.start = s.end - 1
		if s.depth++; s.depth > MaxDepth {
			return s.reject("nested deeper than " + strconv.Itoa(MaxDepth))
		}
	case '}', ']':
		s.start = s.end - 1
		s.depth--
	case kindNumber:
		s.start = s.tokenStart(prev)
		if overflows(s.src[s.start:s.end]) {
			return s.reject("number outside the range of float64")
		}
	default:
		s.start = s.tokenStart(prev)
	}
	return nil
}

// tokenStart skips what may stand between two tokens.
func (s *scanner) tokenStart(prev int) int {
	for prev < s.end {
		switch s.src[prev] {
		case ' ', '\t', '\r', '\n', ',', ':':
			prev++
		default:
			return prev
		}
	}
	return prev
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
// end of the object. The name is valid until the next call and may be appended
// to scratch where it has escapes.
func (s *scanner) member(scratch *[]byte) (name []byte, more bool, err error) {
	if err := s.next(); err != nil {
		return nil, false, err
	}
	if s.kind != kindString {
		return nil, false, nil
	}
	return s.text(s.span, scratch), true, nil
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
	for i := s.end; i < len(s.src); i++ {
		switch s.src[i] {
		case ' ', '\t', '\r', '\n':
		default:
			s.end = i
			return s.reject("more text after the value")
		}
	}
	return nil
}

func (s *scanner) reject(what string) error {
	return &syntaxError{offset: s.end, length: len(s.src), what: what}
}

// fault translates an error of the tokenizer into words without content.
func (s *scanner) fault(err error) error {
	f := &syntaxError{offset: s.end, length: len(s.src)}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		f.offset = int(syn.ByteOffset)
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		f.what = "duplicate name"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		f.what = "unexpected end"
	case !utf8.Valid(s.src):
		f.what = "invalid UTF-8"
	default:
		f.what = "unexpected character or escape"
	}
	return f
}

// appendUnquoted appends the content of a checked JSON string.
func appendUnquoted(dst, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return append(dst, quoted[1:len(quoted)-1]...)
	}
	out, err := jsontext.AppendUnquote(dst, quoted)
	if err != nil {
		return dst // cannot be: the string was checked when it was scanned
	}
	return out
}

// alias is a string that shares its bytes with b. It is used only for values
// whose documentation says that they live as long as the line.
func alias(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// CheckJSON checks that raw is exactly one JSON value under the rules of spec
// section 1: UTF-8, no duplicate name at any depth, no lone surrogate, nesting
// of at most [MaxDepth] (an outermost object or array counts as 1), every
// number within float64's range (too small to be told from zero is allowed).
// The error names the place and the rule and none of the content.
func CheckJSON(raw []byte) error {
	var s scanner
	s.reset(raw)
	if err := s.value(); err != nil {
		return err
	}
	return s.finish()
}
