// The package under test may import nothing, so its tests are outside of it.
package limits_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"prp/runner/limits"
)

const askEnv = "LIMITS_TEST_ASK"

func TestMain(m *testing.M) {
	if os.Getenv(askEnv) != "" {
		l, ok := limits.OpenFiles()
		fmt.Println(l.Cur, l.Max, ok)
		return
	}
	os.Exit(m.Run())
}

// TestOpenFiles: the limit is the one that the launcher has set, although Go
// has raised the soft one before main begins.
func TestOpenFiles(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `ulimit -Sn 77; ulimit -Hn 777; exec "$0"`, exe)
	cmd.Env = append(os.Environ(), askEnv+"=1")
	out, err := cmd.Output()
	if err != nil || string(out) != "77 777 true\n" {
		t.Errorf("%q, %v, want the soft limit 77 and the hard one 777", out, err)
	}
}
