package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prp/cmd/internal/harnesscmd"
)

var update = flag.Bool("update", false, "write the golden files")

// asHarness in the environment makes the test binary prp-harness.
const asHarness = "PRP_TEST_AS_HARNESS"

func TestMain(m *testing.M) {
	if os.Getenv(asHarness) != "" {
		os.Exit(harnesscmd.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// hang is far longer than anything here takes; it only ends a test that hangs.
const hang = 60 * time.Second

func harness(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	// The race detector sleeps for a second at every exit unless told not to.
	cmd.Env = append(os.Environ(), asHarness+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

func run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := harness(t, args...)
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), notes.String(), cmd.ProcessState.ExitCode()
}

func TestHelp(t *testing.T) {
	golden := filepath.Join("testdata", "help.golden")
	for i, args := range [][]string{{"-h"}, {"--help"}, {"help"}, {"fake", "-h"}, {"--script", "linger", "-h"}, {"command", "-h"}, {"acp", "-h"}} {
		stdout, stderr, status := run(t, args...)
		if i == 0 && *update {
			if err := os.WriteFile(golden, []byte(stdout), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), stdout); diff != "" || stderr != "" || status != 0 {
			t.Fatalf("%q: status %d, stderr %q, stdout (-want +got):\n%s", args, status, stderr, diff)
		}
	}
}

func TestMisuse(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	const script = `{"schema":"paperclip.fake_harness.script.v1","name":"a","steps":[{"kind":"hang"},{"kind":"delay","milliseconds":"x"}]}`
	if err := os.WriteFile(bad, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args []string
		want string
	}{
		{nil, "expected a command or --script, got nothing"},
		{[]string{"fkae"}, `unknown command "fkae"; did you mean "fake"?`},
		{[]string{"fake"}, "expected --script NAME or --script FILE"},
		{[]string{"fake", "--script"}, "--script: expected a value NAME|FILE"},
		{[]string{"fake", "--scrpt", "x"}, `flag "--scrpt" is not known; did you mean "--script"?`},
		{[]string{"fake", "happy-path"}, `expected flags only, got "happy-path"`},
		{[]string{"fake", "--script", "happy-paht"}, `got "happy-paht"; did you mean "happy-path"?`},
		{[]string{"fake", "--script", "nonsense"}, `expected a script of --list or a file, got "nonsense"`},
		{[]string{"--script", "/no/such/file.json"}, "/no/such/file.json: no such file"},
		{[]string{"--script", "linger", "--delay-ms", "-1"}, "expected milliseconds from 0 to 86400000"},
		{[]string{"--script", "linger", "--delay-ms", "soon"}, "expected milliseconds from 0 to 86400000"},
		{[]string{"command"}, "expected a program after --, or --from-turn argv or command"},
		{[]string{"command", "--from-turn", "stdin"}, "expected a program after --"},
		{[]string{"command", "--from-turn", "files", "true"}, `expected names out of argv, command, stdin, timeoutMs, cwd, env, text with commas between them, got "files"`},
		{[]string{"acp"}, "expected an agent after --, or --preset NAME"},
		{[]string{"acp", "--preset", "cluade"}, `did you mean "claude"?`},
		{[]string{"acp", "--permissions", "yes", "x"}, `expected one of ask, allow, deny, allow-reads, got "yes"`},
		{[]string{"acp", "--env-allow", "A=b", "x"}, "expected the name of a variable, without a value"},
		{[]string{"acp", "--turn-idle-ms", "-1", "x"}, "--turn-idle-ms: expected milliseconds from 0 (never) to 604800000, got \"-1\""},
		{[]string{"acp", "--agent-max-line-bytes", "33554433", "x"}, "expected bytes from 1024 to 33554432"},
		{[]string{"--script", bad}, `steps[1].milliseconds: expected an integer from 0, got "x"`},
	}
	for _, tt := range tests {
		stdout, stderr, status := run(t, tt.args...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "prp-harness: ") || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: status %d, stdout %q, stderr %q, want %q", tt.args, status, stdout, stderr, tt.want)
		}
	}
}

func TestList(t *testing.T) {
	stdout, stderr, status := run(t, "fake", "--list")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, stderr %q", status, stderr)
	}
	for _, name := range []string{"happy-path", "permission-input", "interrupted", "error", "duplicate-terminal", "linger", "oversized-line"} {
		if !strings.Contains("\n"+stdout, "\n"+name+" ") {
			t.Errorf("%s is not in\n%s", name, stdout)
		}
	}
}
