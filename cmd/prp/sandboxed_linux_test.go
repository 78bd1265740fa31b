package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prp/controller/sandbox"
)

// TestSandboxedRun: a runner starts a harness that is confined, and the run is
// a run like any other; without the sandbox the same harness gets out.
func TestSandboxedRun(t *testing.T) {
	if h := sandbox.Probe(); h.Landlock < 3 || !h.Seccomp {
		t.Skipf("this host cannot confine: Landlock ABI %d, seccomp %v", h.Landlock, h.Seccomp)
	}
	for _, confined := range []bool{false, true} {
		top := t.TempDir()
		workspace := filepath.Join(top, "workspace")
		if err := os.Mkdir(workspace, 0o755); err != nil {
			t.Fatal(err)
		}
		argv := []string{"prp-harness", "command", "--", "sh", "-c", "echo inside >inside; echo outside >../outside; echo done"}
		if confined {
			plan, err := sandbox.Policy{Workspace: workspace}.Plan()
			if err != nil {
				t.Fatal(err)
			}
			argv = plan.Wrap([]string{"prp", sandboxedCommand}, argv)
		}
		var line []string
		for _, word := range argv {
			line = append(line, "'"+word+"'")
		}
		cmd := exec.Command("prp", "run", "--text", "go", "--json", "--harness", strings.Join(line, " "))
		cmd.Dir = workspace
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"runTerminalState":"succeeded"`) {
			t.Fatalf("confined %v: %v\n%s", confined, err, out)
		}
		if _, err := os.Stat(filepath.Join(workspace, "inside")); err != nil {
			t.Errorf("confined %v: %v", confined, err)
		}
		if _, err := os.Stat(filepath.Join(top, "outside")); (err != nil) != confined {
			t.Errorf("confined %v: outside there is %v", confined, err)
		}
	}
}

// TestSandboxedMisuse: what is no sandbox starts nothing.
func TestSandboxedMisuse(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	for status, args := range map[int][]string{
		exitUsage: {}, sandbox.StatusRefused: {"rules", "touch", started},
	} {
		out, err := exec.Command("prp", append([]string{sandboxedCommand}, args...)...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != status || !strings.HasPrefix(string(out), "prp sandboxed: expected") {
			t.Errorf("%q: %v, %s, want status %d", args, err, out, status)
		}
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the program was started")
	}
}
