package files

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// places lists what a search found as file:line:column.
func places(t *testing.T, s *Space, r SearchRequest) []string {
	t.Helper()
	result, err := s.Search(t.Context(), r, roomySearch, nil)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	list := []string{}
	for _, m := range result.Matches {
		list = append(list, fmt.Sprintf("%s:%d:%d", m.File, m.Line, m.Column))
	}
	return list
}

const roomySearch = 16 << 20

func TestSearch(t *testing.T) {
	s, dir := space(t, map[string]string{
		"a.go": "package a\n\nfunc Find() {}\n// find find\n", "sub/b.go": "x := Find()\r\nreturn x\r\n", "sub/c.txt": "find\nlast find",
		"bin": "find\x00", "é.txt": "ÄRGER und Ärger\n", ".hidden": "find\n", ".git/config": "find\n", "K.md": "ask\n",
	})
	os.Symlink("a.go", filepath.Join(dir, "link.go"))
	no := false
	for name, tt := range map[string]struct {
		r    SearchRequest
		want []string
	}{
		"text":              {SearchRequest{Query: "find"}, []string{".hidden:1:1", "a.go:4:4", "sub/c.txt:1:1", "sub/c.txt:2:6"}},
		"without case":      {SearchRequest{Query: "FIND", CaseSensitive: &no}, []string{".hidden:1:1", "a.go:3:6", "a.go:4:4", "sub/b.go:1:6", "sub/c.txt:1:1", "sub/c.txt:2:6"}},
		"not ASCII":         {SearchRequest{Query: "ärger", CaseSensitive: &no}, []string{"é.txt:1:1"}},
		"glob":              {SearchRequest{Query: "find", Glob: "*.txt"}, []string{"sub/c.txt:1:1", "sub/c.txt:2:6"}},
		"glob of a path":    {SearchRequest{Query: "Find", Glob: "sub/**/*.go"}, []string{"sub/b.go:1:6"}},
		"a folder":          {SearchRequest{Path: "sub", Query: "find"}, []string{"sub/c.txt:1:1", "sub/c.txt:2:6"}},
		"a file":            {SearchRequest{Path: "sub/c.txt", Query: "last"}, []string{"sub/c.txt:2:1"}},
		"regex":             {SearchRequest{Query: `^func \w+\(`, Kind: KindRegex}, []string{"a.go:3:1"}},
		"regex at the end":  {SearchRequest{Query: `x$`, Kind: KindRegex}, []string{"sub/b.go:2:8"}},
		"regex of any":      {SearchRequest{Query: `[Ff]ind$`, Kind: KindRegex}, []string{".hidden:1:1", "a.go:4:9", "sub/c.txt:1:1", "sub/c.txt:2:6"}},
		"regex over lines":  {SearchRequest{Query: `a\s+f`, Kind: KindRegex}, []string{}},
		"regex, no case":    {SearchRequest{Query: `(?i)ASK`, Kind: KindRegex}, []string{"K.md:1:1"}},
		"name":              {SearchRequest{Query: ".go", Kind: KindName}, []string{"a.go:0:0", "sub/b.go:0:0"}},
		"name without case": {SearchRequest{Query: "k.M", Kind: KindName, CaseSensitive: &no}, []string{"K.md:0:0"}},
		"nothing":           {SearchRequest{Query: "nothing here"}, []string{}},
	} {
		if got := places(t, s, tt.r); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	for _, r := range []SearchRequest{
		{},
		{Query: "("},
		{Query: "a\nb"},
		{Query: "a", Kind: "glob"},
		{Query: "a", MaxResults: MaxResults + 1},
		{Query: "a", ContextLines: -1},
		{Query: "a", Glob: "[a"},
		{Query: strings.Repeat("a", maxQuery+1)},
	} {
		if r.Query == "(" {
			r.Kind = KindRegex
		}
		_, err := s.Search(t.Context(), r, roomySearch, nil)
		refused(t, fmt.Sprintf("%+v", r), err, InvalidRequest)
	}
	_, err := s.Search(t.Context(), SearchRequest{Path: "no", Query: "a"}, roomySearch, nil)
	refused(t, "no folder", err, NotFound)
}

// TestSearchContext: lines around a match, without the ends of lines.
func TestSearchContext(t *testing.T) {
	s, _ := space(t, map[string]string{"f": "1\r\n2\r\nhit\r\n4\r\n5"})
	r, err := s.Search(t.Context(), SearchRequest{Query: "hit", ContextLines: 3}, roomySearch, nil)
	if err != nil || len(r.Matches) != 1 {
		t.Fatal(r, err)
	}
	if m := r.Matches[0]; !slices.Equal(m.Before, []string{"1", "2"}) || !slices.Equal(m.After, []string{"4", "5"}) || m.Text != "hit" {
		t.Errorf("%+v", m)
	}
}

// TestSearchBounds: results are the first ones in the order of the paths.
func TestSearchBounds(t *testing.T) {
	content := map[string]string{}
	for i := range 300 {
		content[fmt.Sprintf("d%02d/f%03d", i%10, i)] = strings.Repeat("hit\n", 3) + strings.Repeat("x", 3000) + "hit" + strings.Repeat("é", 3000)
	}
	s, _ := space(t, content)
	all := places(t, s, SearchRequest{Query: "hit", MaxResults: 10_000})
	if len(all) != 1200 || !slices.IsSortedFunc(all, func(a, b string) int {
		return strings.Compare(a[:strings.Index(a, ":")], b[:strings.Index(b, ":")])
	}) {
		t.Errorf("%d matches, in order or not", len(all))
	}
	for _, most := range []int{1, 200, 1200} {
		r, err := s.Search(t.Context(), SearchRequest{Query: "hit", MaxResults: most}, roomySearch, nil)
		if err != nil || len(r.Matches) != most || r.Truncated != (most < 1200) {
			t.Errorf("at most %d: %d, truncated %v, %v", most, len(r.Matches), r.Truncated, err)
		}
		for i, m := range r.Matches {
			if at := fmt.Sprintf("%s:%d:%d", m.File, m.Line, m.Column); at != all[i] {
				t.Errorf("at most %d: match %d is %s, want %s", most, i, at, all[i])
			}
			if len(m.Text) > maxLine || !strings.Contains(m.Text, "hit") {
				t.Errorf("a line of %d bytes", len(m.Text))
			}
		}
	}
	if r, err := s.Search(t.Context(), SearchRequest{Query: "hit"}, 1000, nil); err != nil || !r.Truncated || len(r.Matches) == 0 || len(r.Matches) > 10 {
		t.Errorf("at most 1000 bytes: %d matches, %v", len(r.Matches), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Search(ctx, SearchRequest{Query: "hit"}, roomySearch, nil); err != context.Canceled {
		t.Errorf("a cancelled search ended with %v", err)
	}
}

// TestSearchPartIsBounded: what waits to be collected has no more than a result
// may have, in one file and in several.
func TestSearchPartIsBounded(t *testing.T) {
	const most = 100_000
	line := "hit" + strings.Repeat("x", maxLine) + "\n"
	for name, content := range map[string]map[string]string{
		"one file":      {"a": strings.Repeat(line, 5000)},
		"several files": {"a": strings.Repeat(line, 150), "b": strings.Repeat(line, 150), "c": strings.Repeat(line, 150)},
	} {
		s, _ := space(t, content)
		w := &searchWork{request: SearchRequest{Query: "hit", MaxResults: MaxResults, ContextLines: maxContext}, most: most, open: openDir}
		if err := w.check(); err != nil {
			t.Fatal(err)
		}
		var err error
		if w.top, err = s.find("."); err != nil {
			t.Fatal(err)
		}
		in, err := w.open(w.top.root.Root, ".")
		if err != nil {
			t.Fatal(err)
		}
		defer in.close()
		p := &part{in: newFolder(in, ""), names: []string{"a", "b", "c"}[:len(content)]}
		(&searcher{work: w, ctx: t.Context()}).search(p)
		size, last := 0, 0
		for _, m := range p.matches {
			last = m.size()
			size += last
		}
		if size <= most || size-last > most {
			t.Errorf("%s: the part has %d bytes, want %d and one match", name, size, most)
		}
	}
}

// TestSearchStops: a search of one large file ends with its context, and does not
// look at the rest first.
func TestSearchStops(t *testing.T) {
	l, err := newLooker(&SearchRequest{Query: "x+y", Kind: KindRegex})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(strings.Repeat(strings.Repeat("x", 99)+"\n", 100_000))
	asked := 0
	l.file(text, l.automaton(), func() bool { asked++; return asked < 3 }, func(Match) bool { return true })
	if asked != 3 {
		t.Errorf("it was asked %d times, want 3: the third says no", asked)
	}
	asked = 0
	l.file(text, l.automaton(), func() bool { asked++; return true }, func(Match) bool { return true })
	if most := len(text)/pieceSize + 1; asked < most-1 || asked > most {
		t.Errorf("%d bytes: asked %d times", len(text), asked)
	}
	// In the middle of a line, where it is long for the pattern.
	if l, err = newLooker(&SearchRequest{Query: "[xz]*y|" + strings.Repeat("q", 4000), Kind: KindRegex}); err != nil {
		t.Fatal(err)
	}
	asked = 0
	line := bytes.Repeat([]byte("x"), maxSteps/len(l.prog.Inst)+1)
	l.file(line, nil, func() bool { asked++; return asked < 100 }, func(Match) bool { return true })
	if asked < 100 || asked > 110 {
		t.Errorf("in a long line it was asked %d times, want 100: the last says no", asked)
	}
	asked = 0
	var at []int
	l.file(append(line, 'y'), nil, func() bool { return true }, func(m Match) bool { at = append(at, m.Line, m.Column); return true })
	if !slices.Equal(at, []int{1, 1}) {
		t.Errorf("in a long line it was found at %d", at)
	}
}

// TestSearchStopsInShortLines: many short lines and a large pattern take as long as
// one long line, so it is asked between them, with an automaton and without.
func TestSearchStopsInShortLines(t *testing.T) {
	l, err := newLooker(&SearchRequest{Query: strings.Repeat("(x?){1000}", 6) + "c$", Kind: KindRegex})
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("ab\n"), 1000)
	if len(text) > pieceSize || len(text)*len(l.prog.Inst) < 2*maxSteps {
		t.Fatalf("%d bytes and %d instructions try nothing", len(text), len(l.prog.Inst))
	}
	asked := 0
	l.file(text, nil, func() bool { asked++; return asked < 2 }, func(Match) bool { return true })
	if asked != 2 {
		t.Errorf("it was asked %d times, want 2: the second says no", asked)
	}
	// So does the masking of lines that are short for the secrets.
	masked, err := newLooker(&SearchRequest{Query: "nothing", Kind: KindText, Mask: &Mask{
		Whole: func(b []byte) []byte { return b }, Edge: maxSteps / 100, Part: func(b []byte, from, to int) []byte { return b[from:to] },
	}})
	if err != nil {
		t.Fatal(err)
	}
	asked = 0
	masked.file(bytes.Repeat([]byte("nothing\n"), 400), nil, func() bool { asked++; return true }, func(Match) bool { return true })
	if asked < 400/100 {
		t.Errorf("with a mask it was asked %d times", asked)
	}
	// An automaton that has worked long leaves a line to who asks first.
	a := newAutomaton(l.prog)
	a.work = maxSteps
	if at := a.find([]byte("zz\n")); at != 0 {
		t.Errorf("it goes on to %d", at)
	}
	asked = 0
	l.file([]byte("zz\n"), a, func() bool { asked++; return true }, func(Match) bool { return true })
	if asked < 1 || a.work >= maxSteps {
		t.Errorf("asked %d times, and %d steps are still counted", asked, a.work)
	}
}

// TestSearchNoGuess: remote.md rule 7. Whether a secret is in a file cannot be
// asked piece by piece.
func TestSearchNoGuess(t *testing.T) {
	const secret = "hunter2-and-more"
	s, _ := space(t, map[string]string{"f": "key=" + secret + " open\nother open\n", secret + ".txt": "x\n"})
	hide := func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte(secret), bytes.Repeat([]byte("*"), len(secret)))
	}
	mask := &Mask{Whole: hide, Edge: len(secret), Part: func(b []byte, from, to int) []byte { return hide(b)[from:to] }}
	for _, r := range []SearchRequest{
		{Query: "hunt"},
		{Query: secret},
		{Query: "HUNTER2", CaseSensitive: new(bool)},
		{Query: "=h"},
		{Query: `=h\w+2`, Kind: KindRegex},
		{Query: `unter[0-9]-`, Kind: KindRegex},
		{Query: "hunter", Kind: KindName},
	} {
		r.Mask = mask
		if got := places(t, s, r); len(got) > 0 {
			t.Errorf("%q is told at %q", r.Query, got)
		}
		r.Mask = nil
		if got := places(t, s, r); len(got) == 0 {
			t.Errorf("%q: nothing is found without the mask, so nothing was tried", r.Query)
		}
	}
	if got := places(t, s, SearchRequest{Query: "open", Mask: mask}); !slices.Equal(got, []string{"f:1:22", "f:2:7"}) {
		t.Errorf("beside the secret: %q", got)
	}
	// What is not found tells as little: no letter is another than the right one.
	for _, query := range []string{`key=[^%c]`, `[=][^%c]`, `^k..=[^%c].* open$`} {
		for c := 'a'; c <= 'z'; c++ {
			r := SearchRequest{Query: fmt.Sprintf(query, c), Kind: KindRegex, Mask: mask}
			if got := places(t, s, r); len(got) != 1 {
				t.Errorf("%q is told at %q, and other letters are not", r.Query, got)
			}
		}
	}
	// Nor does the place, where the line has the guess itself too.
	s, _ = space(t, map[string]string{"f": "key=" + secret + " hunter2\n"})
	if got := places(t, s, SearchRequest{Query: "hunter2", Mask: mask}); !slices.Equal(got, []string{"f:1:22"}) {
		t.Errorf("behind the secret: %q", got)
	}
}

// TestSearchContextHides: remote.md rule 7. A secret on several short lines is not
// shown around a match.
func TestSearchContextHides(t *testing.T) {
	const secret = "abc\r\ndef\nghi"
	hide := func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte(secret), bytes.Repeat([]byte("*"), len(secret)))
	}
	mask := &Mask{Whole: hide, Edge: len(secret), Part: func(b []byte, from, to int) []byte { return hide(b)[from:to] }}
	s, _ := space(t, map[string]string{"f": "open\n" + secret + "\nopen\n"})
	result, err := s.Search(t.Context(), SearchRequest{Query: "open", ContextLines: 3, Mask: mask}, roomySearch, nil)
	if err != nil || len(result.Matches) != 2 {
		t.Fatalf("%+v, %v", result, err)
	}
	around := slices.Concat(result.Matches[0].After, result.Matches[1].Before)
	if len(around) != 6 || strings.Join(around, "") != strings.Repeat("*", 18) {
		t.Errorf("around the matches is %q", around)
	}
}

// TestGlobNoGuess: remote.md rule 7. A secret in a name or a folder's name cannot be
// asked piece by piece with a glob, and what is not secret still can be.
func TestGlobNoGuess(t *testing.T) {
	const secret = "hunter2-and-more"
	hide := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(secret), []byte("[masked]")) }
	mask := &Mask{Whole: hide, Edge: len(secret), Part: func(b []byte, from, to int) []byte { return hide(b[from:to]) }}
	s, _ := space(t, map[string]string{secret + ".txt": "x\n", secret + "/sub/f.go": "x\n", "plain.md": "x\n"})
	for glob, want := range map[string]int{
		"hunt*": 0, "[!a-g]*.txt": 1, "[!h]*.txt": 1, "hunter2-and-more/**/*.go": 0, "/[!h]*/sub/*.go": 1, "/h*/sub/*.go": 0,
		"*.txt": 1, "**/sub/*.go": 1, "plain*": 1,
	} {
		for _, r := range []SearchRequest{{Query: "x", Glob: glob, Mask: mask}, {Kind: KindName, Glob: glob, Mask: mask}} {
			if got := places(t, s, r); len(got) != want {
				t.Errorf("glob %q, kind %q: %q", glob, r.Kind, got)
			}
		}
	}
}

// TestIgnoredAsGit: what is searched is what git does not ignore.
func TestIgnoredAsGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	content := map[string]string{
		".gitignore":     "*.log\n!keep.log\n/top\nbuild/\n# comment\nsub/*.tmp\n**/deep/*.x\na?c\n[!b]ee\n\\!bang\ntrail  \ndoc/**/z\n*.o\n",
		"sub/.gitignore": "*.go\n!main.go\n/anchored\n",
	}
	for _, name := range []string{
		"a.log", "keep.log", "top", "sub/top", "build/x", "sub/build/y", "buildx", "sub/a.tmp", "a.tmp", "sub/q/a.tmp", "deep/a.x", "q/deep/a.x",
		"abc", "ac", "bee", "cee", "!bang", "trail", "doc/z", "doc/q/r/z", "z", "sub/a.go", "sub/main.go", "b.go", "sub/anchored", "sub/q/anchored", "o", "x.o", "ex",
	} {
		content[name] = "hit"
	}
	s, dir := space(t, content)
	for _, args := range [][]string{{"init", "-q"}, {"-c", "core.excludesFile=", "ls-files", "-co", "--exclude-standard"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if args[0] == "init" {
			write(t, filepath.Join(dir, ".git", "info", "exclude"), "ex\n")
			continue
		}
		want := strings.Fields(string(out))
		want = slices.DeleteFunc(want, func(s string) bool { return strings.HasSuffix(s, ".gitignore") })
		slices.Sort(want)
		var got []string
		for _, p := range places(t, s, SearchRequest{Query: "hit"}) {
			got = append(got, p[:strings.Index(p, ":")])
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("searched\n%q, git has\n%q", got, want)
		}
	}
	// From below, the files above count too.
	if got := places(t, s, SearchRequest{Path: "sub", Query: "hit", Glob: "*.tmp"}); !slices.Equal(got, []string{"sub/q/a.tmp:1:1"}) {
		t.Errorf("below: %q", got)
	}
}

// FuzzLook: a search of a whole text finds the lines that a search of each line
// finds.
func FuzzLook(f *testing.F) {
	f.Add("a.*b", "xab\nb\na\r\nab", false)
	f.Add("^$|x", "\n\nx\n", true)
	f.Add(`\bf[oO]+$`, "foo\r\nfoo", true)
	f.Fuzz(func(t *testing.T, query, text string, fold bool) {
		sensitive := !fold
		l, err := newLooker(&SearchRequest{Query: query, Kind: KindRegex, CaseSensitive: &sensitive})
		if err != nil || strings.ContainsAny(query, "\n\x00") || len(query) > 200 {
			return
		}
		if fold {
			query = "(?i)" + query
		}
		re := regexp.MustCompile(query)
		var want, got []string
		for i, line := range linesOf([]byte(text)) {
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			if at := re.FindStringIndex(line); at != nil {
				want = append(want, fmt.Sprintf("%d:%d", i+1, at[0]+1))
			}
		}
		always := func() bool { return true }
		l.file([]byte(text), l.automaton(), always, func(m Match) bool {
			got = append(got, fmt.Sprintf("%d:%d", m.Line, m.Column))
			return true
		})
		if !slices.Equal(got, want) {
			t.Errorf("%q in %q: %q, want %q", query, text, got, want)
		}
	})
}
