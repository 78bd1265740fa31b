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
	text            string   // of an exact rule; what is before the *
	end             string   // what is behind the *
	parts           []string // of any other pattern, by its slashes
}

type ruleKind uint8

const (
	exact   ruleKind = iota // a name without wildcards
	around                  // one * with texts around it
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
	const special = `*?[\`
	before, behind, star := strings.Cut(line, "*")
	switch {
	case !strings.ContainsAny(line, special):
		r.kind, r.text = exact, line
	case star && !r.anchored && !strings.ContainsAny(before+behind, special):
		r.kind, r.text, r.end = around, before, behind
	default:
		r.kind = pattern
		// Shells write [!a] where package path writes [^a].
		r.parts = strings.Split(strings.ReplaceAll(line, "[!", "[^"), "/")
	}
	return r, true
}

// ignored tells whether a file or folder is ignored, by the path of the folder
// that it is in and its name; the last rule that matches in the nearest file
// decides. The folders above were asked before.
func (r *rules) ignored(path, name string, isDir bool) bool {
	whole := ""
	for ; r != nil; r = r.up {
		for i := len(r.list) - 1; i >= 0; i-- {
			one := &r.list[i]
			if one.dirOnly && !isDir {
				continue
			}
			subject := name
			if one.anchored {
				if whole == "" {
					whole = strings.TrimPrefix(path+"/"+name, "/")
				}
				subject = strings.TrimPrefix(whole[len(r.dir):], "/")
			}
			if one.matches(subject) {
				return !one.negate
			}
		}
	}
	return false
}

// matches compares with a name, or with a path where the rule is anchored.
func (r *rule) matches(subject string) bool {
	switch r.kind {
	case exact:
		return subject == r.text
	case around:
		return len(subject) >= len(r.text)+len(r.end) && strings.HasPrefix(subject, r.text) && strings.HasSuffix(subject, r.end)
	}
	if len(r.parts) == 1 && r.parts[0] != "**" {
		return matchName(r.parts[0], subject)
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
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// parseGlob reads the filter of a search, nil where there is none: a pattern
// without a slash is for the name, one with a slash is anchored, for the path
// below the folder that is searched.
func parseGlob(text string) (*rule, error) {
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
	return &r, nil
}
