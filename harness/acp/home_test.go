package acp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPoint02PrivateHome(t *testing.T) {
	parent := t.TempDir()
	h, err := NewHome(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range h.Env() {
		name, path, _ := strings.Cut(pair, "=")
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() || !strings.HasPrefix(path, h.Root()) {
			t.Errorf("%s is %q: %v", name, path, err)
		}
	}
	if info, err := os.Stat(h.Root()); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the home is open to others: %v, %v", info, err)
	}
	outside := filepath.Join(parent, "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// What agents leave: read-only folders, and links that lead out.
	deep := filepath.Join(h.Root(), "home", "a", "b")
	for _, err := range []error{
		os.MkdirAll(deep, 0o700),
		os.WriteFile(filepath.Join(deep, "f"), nil, 0o400),
		os.Symlink(outside, filepath.Join(deep, "link")),
		os.Symlink(parent, filepath.Join(deep, "up")),
		os.Chmod(deep, 0o500),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.Root()); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	if err := h.Remove(); err != nil {
		t.Errorf("a second removal: %v", err)
	}
}

func TestUseHome(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	h, err := UseHome(dir)
	if err != nil || h.Root() != dir {
		t.Fatalf("%v, %v", h, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "home")); err != nil {
		t.Error(err)
	}
	if _, err := UseHome("/dev/null/x"); err == nil {
		t.Error("a home inside a file")
	}
	if _, err := NewHome("/no/such/folder"); err == nil {
		t.Error("a home in a folder that is not there")
	}
}

func TestEnvironment(t *testing.T) {
	have := []string{"PATH=/bin", "HOME=/root", "ANTHROPIC_API_KEY=secret", "NODE_OPTIONS=--evil", "LD_PRELOAD=x", "CLAUDE_CONFIG_DIR=/c", "EMPTY=", "=C:=x"}
	home := []string{"HOME=/private", "TMPDIR=/private/tmp"}
	p, ok := FindPreset("claude")
	if !ok {
		t.Fatal("no preset claude")
	}
	got := Environment(have, p.Names(), home)
	want := []string{"PATH=/bin", "ANTHROPIC_API_KEY=secret", "CLAUDE_CONFIG_DIR=/c", "HOME=/private", "TMPDIR=/private/tmp"}
	if !slices.Equal(got, want) {
		t.Errorf("the environment is %q, want %q", got, want)
	}
	// A home that is named is the home.
	got = Environment(have, []string{"HOME", "EMPTY"}, home)
	if want = []string{"HOME=/root", "EMPTY=", "TMPDIR=/private/tmp"}; !slices.Equal(got, want) {
		t.Errorf("the environment is %q, want %q", got, want)
	}
}

func TestPresetsHoldNamesOnly(t *testing.T) {
	list := Presets()
	if !slices.IsSortedFunc(list, func(a, b Preset) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the presets are not in order")
	}
	for _, p := range list {
		for _, name := range p.Names() {
			if strings.ContainsAny(name, "= ") {
				t.Errorf("%s: %q is no name", p.Name, name)
			}
			switch name {
			case "HOME", "TMPDIR", "NODE_OPTIONS", "LD_PRELOAD", "BASH_ENV", "LD_LIBRARY_PATH":
				t.Errorf("%s: %s is let through", p.Name, name)
			}
		}
		for _, name := range p.Needs {
			if !slices.Contains(p.Env, name) {
				t.Errorf("%s needs %s, which it may not see", p.Name, name)
			}
		}
		if len(p.Argv) == 0 || p.Package == "" {
			t.Errorf("%s has no start", p.Name)
		}
	}
	if _, ok := FindPreset("Claude"); ok {
		t.Error("a name in another case is found")
	}
}
