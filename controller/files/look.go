package files

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// looker finds one query in texts. It is not changed after it was made.
type looker struct {
	context int
	fold    bool
	mask    *Mask // may be nil
	// literal is what every line with a match has; with fold it is in lower
	// case. anchor is its rarest byte.
	literal []byte
	anchor  int
	re      *regexp.Regexp // nil: the literal is all
	scan    *regexp.Regexp // re for a text of many lines; nil: line by line
	endLine bool           // re looks at the end of a line
}

func newLooker(r *SearchRequest) (*looker, error) {
	l := &looker{context: r.ContextLines, mask: r.Mask, fold: r.CaseSensitive != nil && !*r.CaseSensitive}
	query := r.Query
	if r.Kind != KindText && r.Kind != KindRegex && r.Kind != KindName {
		return nil, badField("kind", "expected %q, %q or %q, got %q", KindText, KindRegex, KindName, r.Kind)
	}
	if r.Kind != KindRegex {
		if !l.fold || isASCII(query) {
			l.setLiteral(query)
			return l, nil
		}
		query = regexp.QuoteMeta(query)
	}
	if l.fold {
		query = "(?i)" + query
	}
	var err error
	if l.re, err = regexp.Compile(query); err != nil {
		return nil, badField("query", "expected an RE2 pattern: %s", err)
	}
	tree, err := syntax.Parse(query, syntax.Perl)
	if err != nil {
		return nil, badField("query", "expected an RE2 pattern: %s", err)
	}
	l.setLiteral(required(tree, l.fold))
	many, err := syntax.Parse("(?m:"+query+")", syntax.Perl)
	if err == nil && !has(many, syntax.OpBeginText, syntax.OpEndText) {
		l.endLine = has(many, syntax.OpEndLine)
		l.scan, _ = regexp.Compile("(?m:" + query + ")")
	}
	return l, nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// byteRank is about how frequent a byte is in source text; what is not listed
// is rare.
const byteRank = " etaoinsrhldcumfpgwybvk\t\n()._,;=\"/-:0123{}TESIACR'"

func (l *looker) setLiteral(s string) {
	if l.fold {
		s = strings.ToLower(s)
	}
	l.literal = []byte(s)
	rarest := -1
	for i := range len(s) {
		rank := strings.IndexByte(byteRank, s[i])
		if rank < 0 {
			rank = len(byteRank)
		}
		if rank > rarest {
			rarest, l.anchor = rank, i
		}
	}
}

// required is a text that every match has, the longest that is found; empty
// where there is none for sure. With fold it is looked for without case.
func required(re *syntax.Regexp, fold bool) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 && !foldsInASCII(re.Rune, fold) {
			return ""
		}
		return string(re.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0], fold)
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0], fold)
		}
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if s := required(sub, fold); len(s) > len(longest) {
				longest = s
			}
		}
		return longest
	}
	return ""
}

// foldsInASCII tells a text without case that a search without case for ASCII
// finds; the Kelvin sign and the long s fold to letters.
func foldsInASCII(text []rune, fold bool) bool {
	for _, r := range text {
		if !fold || r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r) {
			return false
		}
	}
	return true
}

func has(re *syntax.Regexp, ops ...syntax.Op) bool {
	for _, op := range ops {
		if re.Op == op {
			return true
		}
	}
	for _, sub := range re.Sub {
		if has(sub, ops...) {
			return true
		}
	}
	return false
}

// name tells whether a file name matches.
func (l *looker) name(name string) bool {
	if l.re != nil {
		return l.re.MatchString(name)
	}
	return l.index([]byte(name)) >= 0
}

// index is where the literal is in b, -1 where it is not.
func (l *looker) index(b []byte) int {
	if !l.fold {
		return bytes.Index(b, l.literal)
	}
	if len(l.literal) == 0 {
		return 0
	}
	low := l.literal[l.anchor]
	high := byte(unicode.ToUpper(rune(low)))
	nextLow, nextHigh := -2, -2 // -2: not looked for yet
	for from := l.anchor; ; {
		if from >= len(b) {
			return -1
		}
		if nextLow != -1 && nextLow < from {
			nextLow = after(b, low, from)
		}
		if nextHigh != -1 && nextHigh < from {
			nextHigh = after(b, high, from)
		}
		at := nextLow
		if at < 0 || nextHigh >= 0 && nextHigh < at {
			at = nextHigh
		}
		if at < 0 {
			return -1
		}
		if start := at - l.anchor; start+len(l.literal) <= len(b) && equalFold(b[start:start+len(l.literal)], l.literal) {
			return start
		}
		from = at + 1
	}
}

func after(b []byte, c byte, from int) int {
	if i := bytes.IndexByte(b[from:], c); i >= 0 {
		return from + i
	}
	return -1
}

// equalFold compares with a text in lower case, ASCII letters without case.
func equalFold(b, lower []byte) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// file gives the first match of each line to found, until that says no.
func (l *looker) file(text []byte, found func(Match) bool) {
	perLine := l.re != nil && (l.scan == nil || l.endLine && bytes.Contains(text, []byte("\r\n")))
	number, counted := 1, 0
	for at := 0; at < len(text); {
		hit := l.candidate(text[at:], perLine)
		if hit < 0 {
			return
		}
		hit += at
		start := bytes.LastIndexByte(text[:hit], '\n') + 1
		end := len(text)
		if i := bytes.IndexByte(text[hit:], '\n'); i >= 0 {
			end = hit + i
		}
		line := bytes.TrimSuffix(text[start:end], []byte("\r"))
		at = end + 1
		column := hit - start
		if l.re != nil {
			place := l.re.FindIndex(line)
			if place == nil {
				continue
			}
			column = place[0]
		}
		number += bytes.Count(text[counted:start], []byte("\n"))
		counted = start
		if !found(l.match(text, start, end, number, column, line)) {
			return
		}
	}
}

// candidate is a place in the first line that may match, -1 where none can.
func (l *looker) candidate(text []byte, perLine bool) int {
	switch {
	case len(l.literal) > 0:
		return l.index(text)
	case perLine:
		return 0
	}
	place := l.scan.FindIndex(text)
	if place == nil {
		return -1
	}
	return min(place[0], len(text)-1)
}

func (l *looker) match(text []byte, start, end, number, column int, line []byte) Match {
	m := Match{Line: number, Column: column + 1, Text: l.cut(line, column)}
	from := start
	for range l.context {
		if from == 0 {
			break
		}
		up := bytes.LastIndexByte(text[:from-1], '\n') + 1
		m.Before = append([]string{l.cut(bytes.TrimSuffix(text[up:from-1], []byte("\r")), 0)}, m.Before...)
		from = up
	}
	to := end + 1
	for range l.context {
		if to >= len(text) {
			break
		}
		down := len(text)
		if i := bytes.IndexByte(text[to:], '\n'); i >= 0 {
			down = to + i
		}
		m.After = append(m.After, l.cut(bytes.TrimSuffix(text[to:down], []byte("\r")), 0))
		to = down + 1
	}
	return m
}
