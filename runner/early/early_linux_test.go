// The package under test may import nothing, so its tests are outside of it.
package early_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"prp/runner/early"
)

const askEnv = "EARLY_TEST_ASK"

func TestMain(m *testing.M) {
	switch os.Getenv(askEnv) {
	case "files":
		l, ok := early.OpenFiles()
		fmt.Println(l.Cur, l.Max, ok)
	case "hidden":
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		name, nameErr := os.ReadFile("/proc/self/comm")
		fmt.Printf("%v %d %v %q %v\n", early.Hidden(), dumpable, err, name, nameErr)
	case "guardian", "subreaper":
		becomeLike(os.Getenv(askEnv))
	default:
		os.Exit(m.Run())
	}
}

// becomeLike executes this program as a guardian does, or without its mask.
func becomeLike(kind string) {
	runtime.LockOSThread()
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if err == nil && kind == "guardian" {
		var full unix.Sigset_t
		for i := range full.Val {
			full.Val[i] = ^full.Val[i]
		}
		err = unix.PthreadSigmask(unix.SIG_SETMASK, &full, nil)
	}
	if err == nil {
		err = unix.Exec("/proc/self/exe", []string{"asked"}, []string{askEnv + "=hidden"})
	}
	fmt.Println(err)
}

// TestHidden: a program that was started as a guardian is hidden and has its name;
// another one is as it was.
func TestHidden(t *testing.T) {
	for kind, want := range map[string]string{
		"guardian":  `true 0 <nil> "prp-guardian\n" <nil>` + "\n",
		"subreaper": `false 1 <nil> "exe\n" <nil>` + "\n",
	} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{askEnv + "=" + kind}
		if out, err := cmd.Output(); err != nil || string(out) != want {
			t.Errorf("%s: %q, %v, want %q", kind, out, err, want)
		}
	}
}

// TestOpenFiles: the limit is the one that the launcher has set, although Go
// has raised the soft one before main begins.
func TestOpenFiles(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `ulimit -Sn 77; ulimit -Hn 777; exec "$0"`, exe)
	cmd.Env = append(os.Environ(), askEnv+"=files")
	out, err := cmd.Output()
	if err != nil || string(out) != "77 777 true\n" {
		t.Errorf("%q, %v, want the soft limit 77 and the hard one 777", out, err)
	}
}
