package metrics

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// ContentType is that of the text format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Kind is what a family counts.
type Kind string

// The kinds that are used here.
const (
	// Counter only grows while the process lives. By custom its name ends in
	// "_total".
	Counter Kind = "counter"
	// Gauge goes both ways.
	Gauge Kind = "gauge"
)

// Family is one metric with all its samples.
type Family struct {
	// Name is of letters, digits, "_" and ":". Help is one sentence.
	Name, Help string
	Kind       Kind
	// Samples differ in their labels. A family without samples is left out, which
	// is how a figure that is not known is told.
	Samples []Sample
}

// Sample is one value.
type Sample struct {
	Labels []Label
	Value  float64
}

// Label is a name and a value, which may be any text.
type Label struct{ Name, Value string }

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	helpText   = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelText  = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// Write writes families in the text format. Where one is wrong nothing is
// written: half a page would be taken for all of it.
func Write(w io.Writer, families []Family) error {
	var b strings.Builder
	names := map[string]bool{}
	for _, f := range families {
		if names[f.Name] {
			return fmt.Errorf("metric %q: expected it once", f.Name)
		}
		names[f.Name] = true
		if err := f.write(&b); err != nil {
			return fmt.Errorf("metric %q: %w", f.Name, err)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f Family) write(b *strings.Builder) error {
	switch {
	case !metricName.MatchString(f.Name):
		return errors.New("expected a name of letters, digits, \"_\" and \":\" only")
	case f.Kind != Counter && f.Kind != Gauge:
		return fmt.Errorf("expected the kind counter or gauge, got %q", f.Kind)
	case len(f.Samples) == 0:
		return nil
	}
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", f.Name, helpText.Replace(valid(f.Help)), f.Name, f.Kind)
	seen := map[string]bool{}
	for _, s := range f.Samples {
		labels, err := s.labels()
		if err != nil {
			return err
		}
		if seen[labels] {
			return fmt.Errorf("expected the labels %s once", labels)
		}
		seen[labels] = true
		// NaN, +Inf and -Inf are the format's own words too.
		b.WriteString(f.Name + labels + " " + strconv.FormatFloat(s.Value, 'g', -1, 64) + "\n")
	}
	return nil
}

func (s Sample) labels() (string, error) {
	if len(s.Labels) == 0 {
		return "", nil
	}
	parts, names := make([]string, len(s.Labels)), map[string]bool{}
	for i, l := range s.Labels {
		if !labelName.MatchString(l.Name) || strings.HasPrefix(l.Name, "__") || names[l.Name] {
			return "", fmt.Errorf("expected labels with names of letters, digits and _, each once, got %q", l.Name)
		}
		names[l.Name] = true
		parts[i] = l.Name + `="` + labelText.Replace(valid(l.Value)) + `"`
	}
	return "{" + strings.Join(parts, ",") + "}", nil
}

// valid is text that is UTF-8, which the format wants.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
