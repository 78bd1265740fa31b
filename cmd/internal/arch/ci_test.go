package arch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestChecksTellTheirSteps: .ci/run -h has one line for each step that there is,
// and a step that there is not is misuse.
func TestChecksTellTheirSteps(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil || runtime.GOOS == "windows" {
		t.Skip("it is a script for bash on a POSIX system")
	}
	script := filepath.Join(root, ".ci", "run")
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-h", "--help"} {
		help, err := exec.Command(script, flag).Output()
		if err != nil || !strings.HasPrefix(string(help), "usage: .ci/run [STEP...]\n") {
			t.Fatalf("%s: %v\n%s", flag, err, help)
		}
		told := regexp.MustCompile(`(?m)^  ([a-z]+) +\S`).FindAllSubmatch(help, -1)
		steps := regexp.MustCompile(`(?m)^step_([a-z]+)\(\) \{$`).FindAllSubmatch(text, -1)
		if len(steps) == 0 || len(told) != len(steps) {
			t.Fatalf("%d steps, of which %d are told:\n%s", len(steps), len(told), help)
		}
		for i := range steps {
			if got, want := string(told[i][1]), string(steps[i][1]); got != want {
				t.Errorf("line %d tells of %q, want %q", i+1, got, want)
			}
		}
	}
	out, err := exec.Command(script, "nonsense").CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.HasPrefix(string(out), "expected a step, got nonsense; there are: form ") {
		t.Errorf("a step that there is not: %v\n%s", err, out)
	}
}
