package acp

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the table of presets in the README")

// The README has the presets as they are.
func TestReadmePresets(t *testing.T) {
	const path, begin, end = "../../README.md", "<!-- presets -->\n", "<!-- /presets -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	got, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no %q and %q", path, begin, end)
	}
	want := presetTable()
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table differs (-want +got), -update rewrites:\n%s", diff)
	}
}

func presetTable() string {
	var b strings.Builder
	b.WriteString("| Preset | Starts | From npm | Needs | May also see |\n|---|---|---|---|---|\n")
	for _, p := range Presets() {
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` | %s | %s |\n", p.Name, strings.Join(p.Argv, " "), p.Package, names(p.Needs, nil), names(p.Env, p.Needs))
	}
	return b.String()
}

// names lists variables but for those in without.
func names(list, without []string) string {
	var out []string
	for _, name := range list {
		if !strings.Contains(" "+strings.Join(without, " ")+" ", " "+name+" ") {
			out = append(out, "`"+name+"`")
		}
	}
	return strings.Join(out, " ")
}
