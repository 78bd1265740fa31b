//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

var (
	soak       = flag.Bool("soak", false, "repeat what races as often as the fault table says, not only as often as there is time for")
	update     = flag.Bool("update", false, "write the golden files anew")
	raceRunner = flag.Bool("race-runner", false, "build the runner with the race detector; bounds of its memory are not checked then")
)

// Paths of the programs under test, built by TestMain.
var runnerBin, harnessBin string

// parallelRuns is how many tests run at a time: they wait more than they work.
const parallelRuns = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	if err := flag.Set("test.parallel", parallelRuns); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// What a runner leaves behind becomes a child of this process, so that
	// no leak is missed.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "subreaper:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "prp-runner-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	runnerBin, harnessBin = filepath.Join(dir, "prp-runner"), filepath.Join(dir, "prp-harness")
	if err := build(runnerBin, "prp/cmd/prp-runner", *raceRunner); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := build(harnessBin, "prp/cmd/prp-harness", false); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(into, pkg string, race bool) error {
	args := []string{"build", "-buildvcs=false", "-o", into}
	if race {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, pkg)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// times is how often a race is run: short by default, long with -soak.
func times(short, long int) int {
	if *soak {
		return long
	}
	return short
}
