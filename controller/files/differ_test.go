//go:build unix

package files

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// wild makes a tree of everything that a search may meet, and gives its
// regular files with their content.
func wild(t *testing.T, dir string, ignore bool) map[string]string {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	words := []string{"foo", "Bar", "fooBar(12)", "é", "x=1", "\r", "", "KELVIN", "ſ", "baz\xff"}
	names := []string{"a", "b.go", "c.log", ".hidden", "d e", "é.txt", "a.b", "z", "B", "build"}
	for i := range 120 {
		var parts []string
		for range 1 + r.IntN(4) {
			parts = append(parts, names[r.IntN(len(names))])
		}
		parts = append(parts, fmt.Sprintf("f%d.%s", i%150, []string{"go", "log", "txt"}[r.IntN(3)]))
		path := filepath.Join(dir, filepath.Join(parts...))
		switch r.IntN(12) {
		case 0:
			os.MkdirAll(filepath.Dir(path), 0o755)
			os.Symlink("../f1.go", path)
		case 1:
			os.MkdirAll(filepath.Dir(path), 0o755)
			syscall.Mkfifo(path, 0o600)
		case 2:
			if ignore {
				write(t, filepath.Join(filepath.Dir(path), gitIgnore), strings.Join([]string{"*.log", "/f1*.go", "build/", "!f3.log", "a/*.txt"}[r.IntN(4):], "\n")+"\n")
			}
		default:
			var text strings.Builder
			for range r.IntN(40) {
				for range r.IntN(5) {
					text.WriteString(words[r.IntN(len(words))])
					text.WriteString([]string{" ", "", "\t"}[r.IntN(3)])
				}
				text.WriteString("\n")
			}
			if r.IntN(10) == 0 {
				text.WriteString("\x00")
			}
			write(t, path, text.String())
		}
	}
	for i := range batchFiles + 20 { // more than one batch
		write(t, filepath.Join(dir, "many", fmt.Sprintf("n%d", i)), "foo\n")
	}
	content := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, fault := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			content[rel], err = string(text), fault
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

var differing = []SearchRequest{
	{Query: "foo"},
	{Query: "FOO", CaseSensitive: new(bool)},
	{Query: "kelvin", CaseSensitive: new(bool)},
	{Query: "é", CaseSensitive: new(bool)},
	{Query: "foo", Glob: "f1*.go"},
	{Query: "foo", Glob: "a/**/*.txt"},
	{Query: `foo\w+\(\d+\)`, Kind: KindRegex},
	{Query: `^[A-Z]\w+`, Kind: KindRegex},
	{Query: `\b[a-z]=\d$`, Kind: KindRegex},
	{Query: `^$`, Kind: KindRegex},
	{Query: `(?i)K`, Kind: KindRegex},
	{Query: `[^\x00-\x7f]`, Kind: KindRegex},
	{Query: `baz.\s?$`, Kind: KindRegex},
	{Query: "f1", Kind: KindName},
	{Query: ".GO", Kind: KindName, CaseSensitive: new(bool)},
	{Query: "1", Kind: KindName, Glob: "*.txt"},
}

// simply is what a request finds among files, in the plainest way.
func simply(r SearchRequest, content map[string]string) []string {
	query := r.Query
	if r.Kind != KindRegex {
		query = regexp.QuoteMeta(query)
	}
	if r.CaseSensitive != nil {
		query = "(?i)" + query
		if r.Kind != KindRegex && isASCII(query) {
			query = strings.NewReplacer("K", "[Kk]", "k", "[kK]").Replace(strings.TrimPrefix(query, "(?i)"))
			query = "(?i:" + query + ")"
		}
	}
	re := regexp.MustCompile(query)
	g, _ := parseGlob(r.Glob)
	var found []string
	for path, text := range content {
		name := filepath.Base(path)
		if g != nil && !g.matches(name) && !(g.anchored && g.matches(path)) {
			continue
		}
		if r.Kind == KindName {
			if re.MatchString(name) {
				found = append(found, path+":0:0")
			}
			continue
		}
		if strings.Contains(text, "\x00") {
			continue
		}
		for i, line := range linesOf([]byte(text)) {
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			if at := re.FindStringIndex(line); at != nil {
				found = append(found, fmt.Sprintf("%s:%d:%d", path, i+1, at[0]+1))
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestSearchAgrees: row 13. A search finds what the plainest way finds, and the
// same by descriptors as by package os, in the same order.
func TestSearchAgrees(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		s, top := space(t, nil)
		content := wild(t, top, ignore)
		for _, r := range differing {
			r.MaxResults = MaxResults
			var lists [][]string
			for _, open := range []func(*os.Root, string) (dir, error){openDir, openRootDir} {
				w := &searchWork{request: r, most: roomySearch, open: open}
				if err := w.check(); err != nil {
					t.Fatal(err)
				}
				w.top, _ = s.find(".")
				found, err := w.run(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				var list []string
				for _, m := range found.Matches {
					list = append(list, fmt.Sprintf("%s:%d:%d", m.File, m.Line, m.Column))
				}
				lists = append(lists, list)
			}
			if !slices.Equal(lists[0], lists[1]) {
				t.Errorf("%+v: by descriptors %q, by package os %q", r, lists[0], lists[1])
			}
			if ignore {
				continue
			}
			got := slices.Sorted(slices.Values(lists[0]))
			if want := simply(r, content); !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("%q %s %q: %q, want %q", r.Query, r.Kind, r.Glob, got, want)
			}
		}
	}
}

// TestSearchAsRipgrep: row 13. The files that are searched are those that
// ripgrep searches, and so are the lines that are found.
func TestSearchAsRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("no ripgrep")
	}
	s, dir := space(t, nil)
	wild(t, dir, true)
	for _, r := range differing {
		if r.Kind == KindName || r.Glob != "" || !isASCII(r.Query) || strings.Contains(r.Query, "$") || strings.Contains(r.Query, `\x00`) || r.CaseSensitive != nil || strings.Contains(r.Query, "(?i)") {
			continue // its globs undo ignore rules, and it sees ends of lines and other characters differently
		}
		argv := []string{"--no-config", "--no-require-git", "--hidden", "--no-messages", "--no-ignore-dot", "--no-ignore-global", "--no-ignore-parent", "--no-heading", "-n", "--column"}
		if r.Kind != KindRegex {
			argv = append(argv, "-F")
		}
		cmd := exec.Command(rg, append(argv, r.Query, ".")...)
		cmd.Dir = dir
		out, _ := cmd.Output() // its status is 1 where nothing is found
		var want []string
		for line := range bytes.Lines(out) {
			if f := bytes.SplitN(line, []byte(":"), 4); len(f) == 4 {
				want = append(want, strings.TrimPrefix(string(bytes.Join(f[:3], []byte(":"))), "./"))
			}
		}
		slices.Sort(want)
		r.MaxResults = MaxResults
		got := places(t, s, r)
		slices.Sort(got)
		got = slices.DeleteFunc(got, func(p string) bool { return strings.Contains(p, gitIgnore+":") })
		want = slices.DeleteFunc(want, func(p string) bool { return strings.Contains(p, gitIgnore+":") })
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, ripgrep %q", r.Query, got, want)
		}
	}
}

func compiled(t *testing.T, query string) *syntax.Prog {
	t.Helper()
	tree, err := syntax.Parse(query, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// FuzzAutomaton: it never misses a line in which a pattern matches.
func FuzzAutomaton(f *testing.F) {
	f.Add("a.*b", "xab\nb\na\r\nab")
	f.Add(`^$|\bé+\B`, "éé\n\nx\xc3\n")
	f.Add(`(?i)k{2,9}s`, "Kſ\nKKs")
	f.Add(`(a|b)*a(a|b){9}$`, strings.Repeat("ab", 500))
	f.Fuzz(func(t *testing.T, query, text string) {
		re, err := regexp.Compile(query)
		if err != nil || len(query) > 100 || len(text) > 1<<12 {
			return
		}
		a := newAutomaton(compiled(t, query))
		at := 0
		for number, whole := range linesOf([]byte(text)) {
			line := strings.TrimSuffix(strings.TrimSuffix(whole, "\n"), "\r")
			if re.MatchString(line) {
				hit := a.find([]byte(text[at:]))
				if hit < 0 || hit >= len(whole) {
					t.Errorf("%q misses line %d, %q, of %q", query, number+1, line, text)
				}
			}
			at += len(whole)
		}
	})
}

// TestAutomatonIsBounded: a pattern with more states than are kept, or with larger
// ones, still finds every line, in bounded memory.
func TestAutomatonIsBounded(t *testing.T) {
	for _, large := range []bool{false, true} {
		query := `(a|b)*a(a|b){14}c`
		if large {
			query += "|([ab]?){1000}e"
		}
		prog := compiled(t, query)
		a := newAutomaton(prog)
		r := rand.New(rand.NewPCG(3, 4))
		var text []byte
		for range map[bool]int{false: 20_000, true: 3000}[large] {
			text = append(text, "abc\n"[r.IntN(41)/20])
			if r.IntN(100) == 0 {
				text = append(text, '\n')
			}
		}
		re, states, held := regexp.MustCompile(query), 0, 0
		for _, line := range bytes.SplitAfter(text, []byte("\n")) {
			may := a.find(line) >= 0
			if re.Match(line) && !may {
				t.Errorf("%q is missed", line)
			}
			states, held = max(states, len(a.states)), max(held, a.held)
		}
		if states > maxStates || len(a.next) > maxStates*256 || held > maxHeld+2*len(prog.Inst) {
			t.Errorf("%d states with %d instructions", states, held)
		}
		if !large && states < maxStates || large && (held < maxHeld || states == maxStates) {
			t.Errorf("%d states with %d instructions: the bound was not reached, so nothing was tried", states, held)
		}
	}
}

// TestLargePattern: row 13. One that is too large for the automaton finds what it
// matches.
func TestLargePattern(t *testing.T) {
	s, _ := space(t, map[string]string{"f": "ab\nabc\nc\n"})
	r := SearchRequest{Query: strings.Repeat("(x?){1000}", 6) + "c$", Kind: KindRegex}
	if l, err := newLooker(&r); err != nil || l.automaton() != nil {
		t.Errorf("it has an automaton, %v", err)
	}
	if got := places(t, s, r); !slices.Equal(got, []string{"f:2:3", "f:3:1"}) {
		t.Errorf("found %q", got)
	}
}
