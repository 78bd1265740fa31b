package metrics

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tricky has every character that the format escapes, and bytes that are no
// text.
const tricky = "a\\b\"c\nd,e}f \u00fc \xff\\n"

func page() []Family {
	return []Family{
		{Name: "prp_runs", Help: "Runs \\ by state,\nnow.", Kind: Gauge, Samples: []Sample{
			{Labels: []Label{{"state", "active"}}, Value: 2}, {Labels: []Label{{"state", tricky}, {"agent", ""}}, Value: -0.25},
		}},
		{Name: "prp_events_total", Help: "Events.", Kind: Counter, Samples: []Sample{{Value: 1e21}}},
		{Name: "prp_nothing", Help: "Not known.", Kind: Gauge},
		{Name: "prp_limit", Help: "", Kind: Gauge, Samples: []Sample{{Value: math.Inf(1)}}},
	}
}

// TestWrite: the text format, version 0.0.4, byte for byte.
func TestWrite(t *testing.T) {
	const want = `# HELP prp_runs Runs \\ by state,\nnow.
# TYPE prp_runs gauge
prp_runs{state="active"} 2
prp_runs{state="a\\b\"c\nd,e}f ü ` + "\uFFFD" + `\\n",agent=""} -0.25
# HELP prp_events_total Events.
# TYPE prp_events_total counter
prp_events_total 1e+21
# HELP prp_limit 
# TYPE prp_limit gauge
prp_limit +Inf
`
	var got bytes.Buffer
	if err := Write(&got, page()); err != nil || got.String() != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, &got, want)
	}
}

// TestWriteRefuses: what a scraper would refuse or mistake is not written.
func TestWriteRefuses(t *testing.T) {
	sample := func(labels ...Label) []Sample { return []Sample{{Labels: labels, Value: 1}} }
	for name, families := range map[string][]Family{
		"a name with a dash":      {{Name: "a-b", Kind: Gauge, Samples: sample()}},
		"no name":                 {{Kind: Gauge, Samples: sample()}},
		"a name with a line":      {{Name: "a\nb", Kind: Gauge, Samples: sample()}},
		"no kind":                 {{Name: "a", Samples: sample()}},
		"another kind":            {{Name: "a", Kind: "histogram", Samples: sample()}},
		"a family twice":          {{Name: "a", Kind: Gauge, Samples: sample()}, {Name: "a", Kind: Gauge, Samples: sample()}},
		"a sample twice":          {{Name: "a", Kind: Gauge, Samples: append(sample(), sample()...)}},
		"a label name with space": {{Name: "a", Kind: Gauge, Samples: sample(Label{"b c", "d"})}},
		"a label twice":           {{Name: "a", Kind: Gauge, Samples: sample(Label{"b", "c"}, Label{"b", "d"})}},
		"a reserved label":        {{Name: "a", Kind: Gauge, Samples: sample(Label{"__name__", "d"})}},
	} {
		var got bytes.Buffer
		if err := Write(&got, families); err == nil || got.Len() != 0 {
			t.Errorf("%s: got %v and %q", name, err, &got)
		}
	}
}

// parsed is what the parser of the Prometheus project understands.
type parsed map[string]struct {
	Help   string
	Type   int // 0 is a counter, 1 a gauge
	Metric []struct {
		Label          []struct{ Name, Value string }
		Counter, Gauge *struct{ Value any }
	}
}

// parse gives a page to that parser, an independent program.
func parse(t *testing.T, text []byte) parsed {
	t.Helper()
	program := filepath.Join(t.TempDir(), "parser.exe")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("testdata", "parser")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("the parser of the Prometheus project cannot be built here: %v\n%s", err, out)
	}
	run := exec.Command(program)
	run.Stdin, run.Stderr = bytes.NewReader(text), os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatalf("the parser refuses %v:\n%s", err, text)
	}
	var p parsed
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestParsed: an independent parser reads what was meant.
func TestParsed(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program of another module")
	}
	// Without the last one, since JSON has no infinity; and what a server tells
	// of its doors.
	families := append(page()[:2], (&Server{cfg: Config{Doors: doors()}}).doors()...)
	var text bytes.Buffer
	if err := Write(&text, families); err != nil {
		t.Fatal(err)
	}
	got := parse(t, text.Bytes())
	if len(got) != len(families) {
		t.Errorf("the parser sees %d families, want %d", len(got), len(families))
	}
	for _, want := range families {
		f := got[want.Name]
		if f.Help != want.Help || f.Type != map[Kind]int{Counter: 0, Gauge: 1}[want.Kind] || len(f.Metric) != len(want.Samples) {
			t.Errorf("%s: the parser sees %+v", want.Name, f)
			continue
		}
		for i, sample := range want.Samples {
			value := f.Metric[i].Gauge
			if want.Kind == Counter {
				value = f.Metric[i].Counter
			}
			if value == nil || value.Value != sample.Value || len(f.Metric[i].Label) != len(sample.Labels) {
				t.Errorf("%s: the parser sees %+v, want %+v", want.Name, f.Metric[i], sample)
				continue
			}
			for j, l := range sample.Labels {
				if got := f.Metric[i].Label[j]; got.Name != l.Name || got.Value != strings.ToValidUTF8(l.Value, "\uFFFD") {
					t.Errorf("%s: the parser sees the label %q, want %q", want.Name, got, l)
				}
			}
		}
	}
}
