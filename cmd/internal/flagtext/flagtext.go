package flagtext

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"prp/harness/fake"
)

// Describe says what is wrong, for an error of the flag set's Parse: a flag that
// is not known, with the one that may be meant, one that has no name, a value that
// is missing, or one that cannot be read. Any other error is told as it is.
func Describe(fs *flag.FlagSet, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return unknown(fs, "--"+strings.TrimPrefix(name, "-"))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		value := "value"
		if f := fs.Lookup(name); f != nil {
			value, _ = flag.UnquoteUsage(f)
		}
		return fmt.Sprintf("--%s: expected a value %s", name, strings.ToUpper(value))
	}
	if word, ok := strings.CutPrefix(text, "bad flag syntax: "); ok {
		return fmt.Sprintf("expected --NAME or --NAME=VALUE, got %q", word)
	}
	if m := badValue().FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("--%s: %s", m[2], wrong(fs, m[2], m[1], m[3]))
	}
	return text
}

func unknown(fs *flag.FlagSet, name string) string {
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
	text := fmt.Sprintf("flag %q is not known", name)
	if near := fake.Nearest(name, names); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}

// badValue is how package flag tells a value that cannot be read: the value in
// quotes, the flag, the reason.
var badValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^invalid (?:boolean )?value ("(?:[^"\\]|\\.)*") for (?:flag )?-([^:]+): (.*)$`)
})

// wrong says what was expected and what was seen, where the reason of the value
// itself does not say both.
func wrong(fs *flag.FlagSet, name, got, reason string) string {
	const expected, seen = "expected ", ", got "
	switch {
	case !strings.HasPrefix(reason, expected):
		return expected + takes(fs, name, reason) + seen + got
	case strings.Contains(reason, seen):
		return reason
	}
	return reason + seen + got
}

// takes says what a flag takes, where package flag says only that it could not
// be read.
func takes(fs *flag.FlagSet, name, reason string) string {
	f := fs.Lookup(name)
	if f == nil {
		return reason
	}
	g, ok := f.Value.(flag.Getter)
	if !ok {
		return reason
	}
	switch g.Get().(type) {
	case bool:
		return "true or false"
	case int:
		return "a whole number"
	case time.Duration:
		return "a time such as 90s"
	}
	return reason
}
