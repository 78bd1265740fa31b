package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"prp/harness/fake"
)

// completionCases are command lines whose last word is to be completed.
var completionCases = []struct {
	words []string
	want  []string
}{
	{[]string{"prp", "sh"}, []string{"shell"}},
	{[]string{"prp", "run"}, []string{"run", "runner"}},
	{[]string{"prp", "run", "happ"}, []string{"happy-path"}},
	{[]string{"prp", "shell", "link"}, nil},
	{[]string{"prp", "run", "--rec"}, []string{"--record"}},
	{[]string{"prp", "run", "happy-path", "--turn"}, []string{"--turn-file"}},
	{[]string{"prp", "run", "--cwd", "fol"}, []string{"folder/"}},
	{[]string{"prp", "run", "min"}, []string{"mine.json"}},
	{[]string{"prp", "run", "--record", "note"}, []string{"notes.txt"}},
	{[]string{"prp", "replay", "note"}, []string{"notes.txt"}},
	{[]string{"prp", "run", "--text", "happ"}, nil},
	{[]string{"prp", "help", "proto"}, []string{"protocol"}},
	{[]string{"prp", "schema", "comm"}, []string{"command"}},
	{[]string{"prp", "completion", "z"}, []string{"zsh"}},
	{[]string{"prp", "runner", "--on-e"}, []string{"--on-eof"}},
	{[]string{"prp", "runner", "--on-eof", "fin"}, []string{"finish"}},
}

// completionDir is a folder with files to complete, and the scripts.
func completionDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"mine.json": "{}", "notes.txt": ""}
	for name, writer := range writers {
		files[name+".completion"] = writer(completables())
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ask has a shell complete every command line: the script reads them from
// stdin, and prints the candidates of each, one a line, and "==" behind them.
func ask(t *testing.T, dir string, lines [][]string, argv ...string) [][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TERM=dumb"}
	cmd.Stderr = os.Stderr
	var in strings.Builder
	for _, words := range lines {
		in.WriteString(strings.Join(words, " ") + "\n")
	}
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	var all [][]string
	var list []string
	for line := range strings.Lines(string(out)) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case word == "==":
			slices.Sort(list)
			all = append(all, slices.Compact(list))
			list = nil
		case word != "":
			list = append(list, word)
		}
	}
	if len(all) != len(lines) {
		t.Fatalf("%d answers to %d command lines:\n%s", len(all), len(lines), out)
	}
	return all
}

// lines are the command lines of the cases.
func lines() (list [][]string) {
	for _, tt := range completionCases {
		list = append(list, tt.words)
	}
	return list
}

func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: its completion is not tried out")
	}
	dir := completionDir(t)
	const script = `source bash.completion
while IFS= read -r line; do
  IFS=' ' read -ra COMP_WORDS <<<"$line"
  [[ $line == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _prp
  printf '%s\n' "${COMPREPLY[@]}" ==
done`
	asked := append(lines(),
		[]string{"prp", "run", "--cwd", "=", "fol"}, // --cwd=fol comes as three words
		[]string{"prp", "run", "note"},              // another file than a script is not offered as one
		[]string{"prp", ""})
	want := [][]string{}
	for _, tt := range completionCases {
		var words []string
		for _, w := range tt.want {
			words = append(words, strings.TrimSuffix(w, "/")) // the slash is readline's work
		}
		want = append(want, words)
	}
	want = append(want, []string{"folder"}, nil, slices.Sorted(slices.Values(append(commandNames(), "runner", "harness"))))
	got := ask(t, dir, asked, bash, "-c", script)
	for i := range asked {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", asked[i], diff)
		}
	}
}

func TestFishCompletion(t *testing.T) {
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip("fish is not installed: its completion is not tried out")
	}
	got := ask(t, completionDir(t), lines(), fish, "--no-config", "-c",
		"source fish.completion; while read -l line; complete -C $line; echo ==; end")
	for i, tt := range completionCases {
		if diff := cmp.Diff(tt.want, got[i]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.words, diff)
		}
	}
}

// TestShellWordsAreKnown: what the shell's help says of a command is what it
// takes, and no two commands have the same name.
func TestShellWordsAreKnown(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range shellWords() {
		if seen[w.name] || w.do == nil || w.short == "" {
			t.Errorf("%q is there twice, or does nothing", w.name)
		}
		seen[w.name] = true
		if near := fake.Nearest(w.name+"x", shellNames()); near != w.name {
			t.Errorf("%q is taken for %q", w.name+"x", near)
		}
	}
}
