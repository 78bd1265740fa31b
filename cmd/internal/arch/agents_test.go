package arch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"prp/harness/acp"
)

// agentsFile reads one of the files that pin the agents.
func agentsFile(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".ci", "agents", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestAgentsArePinned: each preset's package is pinned to one version, and is
// optional, so that one that cannot be had leaves the others (issue 7, point 5).
func TestAgentsArePinned(t *testing.T) {
	var pkg struct{ OptionalDependencies map[string]string }
	agentsFile(t, "package.json", &pkg)
	exact := regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)
	for name, version := range pkg.OptionalDependencies {
		if !exact.MatchString(version) {
			t.Errorf("%s is pinned to %q, want one version", name, version)
		}
	}
	for _, p := range acp.Presets() {
		if pkg.OptionalDependencies[p.Package] == "" {
			t.Errorf("%s of the preset %s is not pinned", p.Package, p.Name)
		}
	}
}

// TestAgentsLockIsWhole: the lock file names no host, has a checksum for what
// this platform gets, and an entry for what the others do: npm ci refuses a lock
// file in which something is missing, or asks the network for it. It names no
// engines: npm silently leaves out what is optional and wants a newer Node than
// its own, and the agents run on the Node that comes with them.
func TestAgentsLockIsWhole(t *testing.T) {
	type entry struct {
		Version, Resolved, Integrity string
		OS                           []string
		Engines                      json.RawMessage
		OptionalDependencies         map[string]string
	}
	var lock struct{ Packages map[string]entry }
	agentsFile(t, "package-lock.json", &lock)
	if len(lock.Packages) < len(acp.Presets()) {
		t.Fatalf("%d packages", len(lock.Packages))
	}
	// inside reports whether a package that stands at path finds the other.
	inside := func(path, name string) bool {
		for {
			if _, ok := lock.Packages[strings.TrimPrefix(path+"/node_modules/"+name, "/")]; ok {
				return true
			}
			if path == "" {
				return false
			}
			path = strings.TrimSuffix(path[:max(strings.LastIndex(path, "node_modules/"), 0)], "/")
		}
	}
	sums := 0
	for path, e := range lock.Packages {
		if e.Resolved != "" {
			t.Errorf("%s names the host it came from", path)
		}
		if e.Engines != nil {
			t.Errorf("%s names engines", path)
		}
		if e.Integrity != "" {
			sums++
		} else if path != "" && len(e.OS) == 0 {
			t.Errorf("%s has no checksum", path)
		}
		for name := range e.OptionalDependencies {
			if !inside(path, name) {
				t.Errorf("%s may need %s, which has no entry", path, name)
			}
		}
	}
	if sums < len(acp.Presets()) {
		t.Errorf("%d packages have a checksum", sums)
	}
}
