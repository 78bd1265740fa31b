package main

import (
	"flag"
	"regexp"
	"strings"
	"sync"
	"time"
)

// flagError says what is wrong with a flag in the words of this program;
// package flag tells it in a text only.
func flagError(fs *flag.FlagSet, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		name = "--" + strings.TrimPrefix(name, "-")
		var names []string
		fs.VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
		return misuse("flag %q is not known%s", name, didYouMean(name, names))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		value := "value"
		if f := fs.Lookup(name); f != nil {
			value, _ = flag.UnquoteUsage(f)
		}
		return misuse("--%s: expected a value %s", name, strings.ToUpper(value))
	}
	if m := badValue().FindStringSubmatch(text); m != nil {
		return misuse("--%s: expected %s, got %s", m[2], expectedValue(fs, m[2], m[3]), m[1])
	}
	return misuse("%s", text)
}

// badValue is how package flag tells a value that cannot be read: the value in
// quotes, the flag, the reason.
var badValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^invalid (?:boolean )?value ("(?:[^"\\]|\\.)*") for (?:flag )?-([^:]+): (.*)$`)
})

// expectedValue says what a flag takes, where package flag says only that it
// could not be read.
func expectedValue(fs *flag.FlagSet, name, reason string) string {
	f := fs.Lookup(name)
	if f == nil {
		return reason
	}
	g, ok := f.Value.(flag.Getter)
	if !ok {
		return reason // its own words
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
