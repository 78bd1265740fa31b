package files

import (
	"path"
	"strings"
)

// rules are the lines of one ignore file, and those of the folders above.
type rules struct {
	up   *rules
	dir  string // the folder of the file, "" is the top
	list []rule
}

// rule is one pattern of an ignore file.
type rule struct {
	negate, dirOnly bool
	anchored        bool // matches the whole path below its folder
	kind            ruleKind
	text            string   // of an exact rule or a suffix
	parts           []string // of any other pattern, by its slashes
}

type ruleKind uint8

const (
	exact   ruleKind = iota // a name without wildcards
	suffix                  // * and a text without wildcards
	pattern                 // all else
)

// parseRules reads an ignore file.
func parseRules(up *rules, dir string, text []byte) *rules {
	r := &rules{up: up, dir: dir}
	for line := range strings.SplitSeq(string(text), "\n") {
		if one, ok := parseRule(strings.TrimSuffix(line, "\r")); ok {
			r.list = append(r.list, one)
		}
	}
	if len(r.list) == 0 {
		return up
	}
	return r
}

func parseRule(line string) (rule, bool) {
	var r rule
	if line == "" || line[0] == '#' {
		return r, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		r.negate, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly, line = true, rest
	}
	r.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	r.parts = strings.Split(line, "/")
	switch {
	case !strings.ContainsAny(line, `*?[\`):
		r.kind, r.text = exact, line
	case !r.anchored && line[0] == '*' && !strings.ContainsAny(line[1:], `*?[\`):
		r.kind, r.text = suffix, line[1:]
	default:
		r.kind = pattern
	}
	return r, true
}

// ignored tells whether a path is ignored; the last rule that matches in the
// nearest file decides. The folders above were asked before.
func (r *rules) ignored(name string, isDir bool) bool {
	for ; r != nil; r = r.up {
		below := name
		if r.dir != "" {
			below = name[len(r.dir)+1:]
		}
		base := below[strings.LastIndexByte(below, '/')+1:]
		for i := len(r.list) - 1; i >= 0; i-- {
			if one := &r.list[i]; (isDir || !one.dirOnly) && one.matches(below, base) {
				return !one.negate
			}
		}
	}
	return false
}

func (r *rule) matches(below, base string) bool {
	subject := base
	if r.anchored {
		subject = below
	}
	switch r.kind {
	case exact:
		return subject == r.text
	case suffix:
		return strings.HasSuffix(subject, r.text)
	}
	return matchParts(r.parts, strings.Split(subject, "/"))
}

// matchParts matches names against patterns; ** stands for any number of names.
func matchParts(patterns, names []string) bool {
	for len(patterns) > 0 {
		if patterns[0] == "**" {
			if len(patterns) == 1 {
				return len(names) > 0
			}
			for skip := range len(names) + 1 {
				if matchParts(patterns[1:], names[skip:]) {
					return true
				}
			}
			return false
		}
		if len(names) == 0 || !matchName(patterns[0], names[0]) {
			return false
		}
		patterns, names = patterns[1:], names[1:]
	}
	return len(names) == 0
}

func matchName(pattern, name string) bool {
	// Shells write [!a] where package path writes [^a].
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return err == nil && ok
}

// glob is a filter of a search: a pattern without a slash is for the name, one
// with a slash for the path below the folder that is searched.
type glob struct{ r rule }

func parseGlob(text string) (*glob, error) {
	if text == "" {
		return nil, nil
	}
	if _, err := path.Match(strings.ReplaceAll(text, "[!", "[^"), ""); err != nil {
		return nil, badField("glob", "expected a pattern such as *.go or src/**/*.ts, got %q", text)
	}
	r, ok := parseRule(strings.TrimSuffix(text, "/"))
	if !ok || r.negate {
		return nil, badField("glob", "expected a pattern such as *.go or src/**/*.ts, got %q", text)
	}
	return &glob{r}, nil
}

func (g *glob) matches(rel, base string) bool { return g == nil || g.r.matches(rel, base) }
