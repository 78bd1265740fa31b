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
	// blurred tells that a match may have a part of what stands for a secret: a
	// text without it may have one all the same.
	blurred bool
	// literal is what every line with a match has; with fold it is in lower
	// case. anchor is its rarest byte.
	literal []byte
	anchor  int
	re      *regexp.Regexp // nil: the literal is all
	prog    *syntax.Prog   // of re
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
			l.blurred = l.blurs()
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
	if l.prog, err = syntax.Compile(tree.Simplify()); err != nil {
		return nil, badField("query", "expected an RE2 pattern: %s", err)
	}
	l.setLiteral(required(tree, l.fold))
	if len(l.literal) < minLiteral {
		l.literal = nil // it would be found in every other line
	}
	l.blurred = l.blurs()
	return l, nil
}

// blurs tells whether the literal can be found in what stands for a secret, or
// reach into it.
func (l *looker) blurs() bool {
	if l.mask == nil {
		return false
	}
	literal, shown := l.literal, []byte(l.mask.Shown)
	if l.fold {
		shown = bytes.ToLower(shown)
	}
	if bytes.Contains(shown, literal) || bytes.Contains(literal, shown) {
		return true // also where there is no literal
	}
	for n := 1; n < min(len(literal), len(shown)); n++ {
		if bytes.HasSuffix(literal, shown[:n]) || bytes.HasPrefix(literal, shown[len(shown)-n:]) {
			return true
		}
	}
	return false
}

// minLiteral is the least length of a literal that a pattern is searched by, in
// bytes.
const minLiteral = 3

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

// name tells whether a file name matches, as it is shown.
func (l *looker) name(name string) bool {
	switch {
	case l.re != nil:
		return l.re.MatchString(name)
	case l.fold:
		return l.index([]byte(name)) >= 0
	}
	return strings.Contains(name, string(l.literal))
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

// automaton is a fresh one for the pattern; nil where there is no pattern, or a
// very large one.
func (l *looker) automaton() *automaton {
	if l.re == nil || len(l.prog.Inst) > maxInstructions {
		return nil
	}
	return newAutomaton(l.prog)
}

// pieceSize is how much of a text is searched before it is asked whether to go
// on, in bytes and to the end of a line. It is asked earlier where a pattern has
// taken maxSteps.
const pieceSize = 64 << 10

// file gives the first match of each line to found, until that or goOn says no.
// A line with secrets matches as it is shown, and by that alone: else they could
// be guessed, piece by piece, by what is found and by what is not.
func (l *looker) file(text []byte, lines *automaton, goOn func() bool, found func(Match) bool) {
	// Line by line: neither the literal nor the automaton sees a line as it is shown.
	each := l.blurred && l.hides(text)
	if each {
		lines = nil
	}
	number, counted, limit, steps := 1, 0, 0, int64(0)
	for at := 0; at < len(text); {
		if at >= limit || steps+lines.worked() >= maxSteps {
			if !goOn() {
				return
			}
			steps = 0
			lines.rest()
			limit = lineEnd(text, min(at+pieceSize, len(text)-1)) + 1
		}
		hit := 0
		if !each {
			hit = l.candidate(text[at:min(limit, len(text))], lines)
		}
		if hit < 0 {
			at = limit
			continue
		}
		hit += at
		start, end := bytes.LastIndexByte(text[:hit], '\n')+1, lineEnd(text, hit)
		line, column := bytes.TrimSuffix(text[start:end], []byte("\r")), hit-start
		at = end + 1
		shown, hidden := l.shown(text, start, start+len(line))
		if hidden {
			line = shown
		}
		if l.re == nil && (hidden || each) {
			column = l.index(line)
		}
		steps += l.steps(line)
		if column = l.inLine(line, column, lines, goOn); column < 0 {
			continue
		}
		number += bytes.Count(text[counted:start], []byte("\n"))
		counted = start
		if !found(l.match(text, start, end, number, column, line)) {
			return
		}
	}
}

// hides tells whether there are secrets in a text.
func (l *looker) hides(text []byte) bool {
	return l.mask != nil && !bytes.Equal(l.mask.Whole(text), text)
}

// shown is a line without its secrets; false where it has none.
func (l *looker) shown(text []byte, start, end int) ([]byte, bool) {
	if l.mask == nil {
		return nil, false
	}
	low, high := max(start-l.mask.Edge, 0), min(end+l.mask.Edge, len(text))
	if !l.hides(text[low:high]) {
		return nil, false
	}
	line := l.mask.Part(text[low:high], start-low, end-low)
	return line, !bytes.Equal(line, text[start:end])
}

// lineEnd is where the line ends that a place is in: its newline, or the end of
// the text.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

// candidate is a place in the first line that may match, -1 where none can.
func (l *looker) candidate(text []byte, lines *automaton) int {
	switch {
	case len(l.literal) > 0:
		return l.index(text)
	case lines == nil:
		return 0
	}
	return lines.find(text)
}

// inLine is where a line matches, -1 where it does not; at is where the literal
// is in it, if there is no pattern.
func (l *looker) inLine(line []byte, at int, lines *automaton, goOn func() bool) int {
	if l.re == nil {
		return at
	}
	// A line that a literal was found in may still be told from a match at once.
	if len(l.literal) > 0 && lines != nil && lines.find(line) < 0 {
		return -1
	}
	var place []int
	if len(line) <= maxSteps/len(l.prog.Inst) {
		place = l.re.FindIndex(line)
	} else {
		place = l.re.FindReaderIndex(&heeding{text: line, goOn: goOn})
	}
	if place == nil {
		return -1
	}
	return place[0]
}

func (l *looker) match(text []byte, start, end, number, column int, line []byte) Match {
	m := Match{Line: number, Column: column + 1, Text: l.cut(line, column)}
	from := start
	for range l.context {
		if from == 0 {
			break
		}
		up := bytes.LastIndexByte(text[:from-1], '\n') + 1
		m.Before = append([]string{l.beside(text, up, from-1)}, m.Before...)
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
		m.After = append(m.After, l.beside(text, to, down))
		to = down + 1
	}
	return m
}

// beside is a line around a match. A secret may be on several lines, of which each
// is too short to be one.
func (l *looker) beside(text []byte, start, end int) string {
	line := bytes.TrimSuffix(text[start:end], []byte("\r"))
	if shown, hidden := l.shown(text, start, start+len(line)); hidden {
		line = shown
	}
	return l.cut(line, 0)
}
