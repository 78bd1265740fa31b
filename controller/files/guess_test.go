package files

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"prp/protocol/secret"
)

// hiding is a mask of secrets, as a door has it.
func hiding(secrets ...string) *Mask {
	m := secret.NewMasker(secrets)
	return &Mask{Whole: m.Mask, Edge: m.Edge(), Part: m.Part, Shown: secret.Masked}
}

// TestSearchTellsNothing: remote.md rule 7. Two trees that differ in nothing but
// a secret answer alike, whatever is asked: by text, pattern, name or glob, in
// what is found, how much, and in which order.
func TestSearchTellsNothing(t *testing.T) {
	secrets := []string{"hunter2-and-more", "mask+zebra=secre"}
	var spaces []*Space
	for _, s := range secrets {
		one, _ := space(t, map[string]string{
			s + ".txt": "x\n", "in/" + s + "/f.txt": "open\n", "a.txt": "open\n", "k.txt": "open\n", "z.txt": "open\n",
			"in/kept.txt": "k=" + s + "\n" + s + "\nopen " + s + "\n",
		})
		spaces = append(spaces, one)
	}
	requests := []SearchRequest{{Glob: "*", Kind: KindName}, {Query: "open"}, {Query: "x"}}
	ask := func(query string) {
		for _, kind := range []string{KindName, KindText} {
			requests = append(requests, SearchRequest{Query: query, Kind: kind}, SearchRequest{Query: strings.ToUpper(query), Kind: kind, CaseSensitive: new(bool)})
		}
	}
	for _, s := range secrets {
		for _, glob := range []string{s[:3] + "*", "*" + s[4:9] + "*", "**/" + s[:2] + "*/f.txt", "*" + s[9:] + ".*", "in/[" + s[:1] + "]*/*", "[" + s[:1] + "]*", "[[]*", "*]*"} {
			requests = append(requests, SearchRequest{Glob: glob, Kind: KindName}, SearchRequest{Query: "open", Glob: glob})
		}
		for n := 1; n <= 3; n++ {
			for i := 0; i+n <= len(s); i++ {
				ask(s[i : i+n])
			}
		}
		requests = append(requests,
			SearchRequest{Query: s[:3] + `|\[masked\]`, Kind: KindRegex}, SearchRequest{Query: `(ask|` + s[:1] + `).*ed`, Kind: KindRegex},
			SearchRequest{Query: "=" + s[:1]}, SearchRequest{Query: "=[" + s[:1]})
	}
	for _, query := range []string{"masked", "[masked]", "ask", "=[mask", "]", "[", "=[", "d]"} {
		ask(query)
	}
	tried := 0
	for _, r := range requests {
		var answers []string
		for i, s := range secrets {
			r.Mask = hiding(s)
			found, err := spaces[i].Search(t.Context(), r, roomySearch, nil)
			if err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			text, err := json.Marshal(found)
			if err != nil {
				t.Fatal(err)
			}
			tried += len(found.Matches)
			answers = append(answers, string(text))
			if told := strings.ReplaceAll(string(text), secret.Masked, ""); strings.Contains(told, s[:4]) || strings.Contains(told, s[len(s)-4:]) {
				t.Errorf("query %q, kind %q, glob %q: the secret is told: %s", r.Query, r.Kind, r.Glob, text)
			}
		}
		if answers[0] != answers[1] {
			t.Errorf("query %q, kind %q, glob %q: of one secret\n%s\nof another\n%s", r.Query, r.Kind, r.Glob, answers[0], answers[1])
		}
	}
	if tried == 0 {
		t.Error("nothing was found at all")
	}
}

// TestSearchNamesAsShown: names match as they are shown, also where a secret goes
// over a slash or begins in the path that is asked for.
func TestSearchNamesAsShown(t *testing.T) {
	s, _ := space(t, map[string]string{"abc/def.txt": "x\n", "abc/other": "x\n"})
	mask := hiding("abc/def")
	for _, tt := range []struct {
		r    SearchRequest
		want []string
	}{
		{SearchRequest{Glob: "def*"}, []string{}},
		{SearchRequest{Glob: "abc/d*"}, []string{}},
		{SearchRequest{Query: "de"}, []string{}},
		{SearchRequest{Path: "abc", Query: "de"}, []string{}},
		{SearchRequest{Path: "abc", Glob: "d*"}, []string{}},
		{SearchRequest{Path: "abc", Glob: "*"}, []string{"[masked].txt:0:0", "abc/other:0:0"}},
		{SearchRequest{Glob: "*.txt"}, []string{"[masked].txt:0:0"}},
		{SearchRequest{Query: "asked"}, []string{"[masked].txt:0:0"}},
	} {
		tt.r.Kind, tt.r.Mask = KindName, mask
		if got := places(t, s, tt.r); !slices.Equal(got, tt.want) {
			t.Errorf("path %q, query %q, glob %q: %q, want %q", tt.r.Path, tt.r.Query, tt.r.Glob, got, tt.want)
		}
	}
}
