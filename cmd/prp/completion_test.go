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

// ask runs a shell that prints the candidates for the last word, one a line.
func ask(t *testing.T, dir string, argv ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TERM=dumb"}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if word != "" && !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	slices.Sort(list)
	return list
}

func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: its completion is not tried out")
	}
	dir := completionDir(t)
	const script = `source bash.completion
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _prp; printf '%s\n' "${COMPREPLY[@]}"`
	for _, tt := range completionCases {
		got := ask(t, dir, append([]string{bash, "-c", script, "bash"}, tt.words...)...)
		want := slices.Clone(tt.want)
		for i := range want {
			want[i] = strings.TrimSuffix(want[i], "/") // the slash is readline's work
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.words, diff)
		}
	}
	// --flag=value comes as three words.
	got := ask(t, dir, bash, "-c", script, "bash", "prp", "run", "--cwd", "=", "fol")
	if diff := cmp.Diff([]string{"folder"}, got); diff != "" {
		t.Errorf("--cwd=fol (-want +got):\n%s", diff)
	}
	// Another file than a script is not offered as one.
	if got := ask(t, dir, bash, "-c", script, "bash", "prp", "run", "note"); len(got) > 0 {
		t.Errorf("a script can be %q", got)
	}
	all := ask(t, dir, bash, "-c", script, "bash", "prp", "")
	if want := slices.Sorted(slices.Values(append(commandNames(), "runner", "harness"))); !slices.Equal(all, want) {
		t.Errorf("the commands are %q, want %q", all, want)
	}
}

func TestFishCompletion(t *testing.T) {
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip("fish is not installed: its completion is not tried out")
	}
	dir := completionDir(t)
	for _, tt := range completionCases {
		got := ask(t, dir, fish, "--no-config", "-c", "source fish.completion; complete -C '"+strings.Join(tt.words, " ")+"'")
		if diff := cmp.Diff(tt.want, got); diff != "" {
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
