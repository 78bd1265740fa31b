package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// awaitEvery is the pause between two looks of await.
const awaitEvery = 50 * time.Millisecond

// cmdAwait waits for a state: await DURATION PATTERN COMMAND [ARGUMENT...] runs
// the command again and again until its stdout matches the pattern, whatever its
// exit status. The script fails with the last output when the duration has
// passed. What is waited for has to stay: what passes can be missed. The command
// has to end by itself.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: await DURATION PATTERN COMMAND [ARGUMENT...]")
	}
	bound, err := time.ParseDuration(args[0])
	ts.Check(err)
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	ts.Check(await(bound, pattern, func() (stdout, stderr string) {
		err := ts.Exec(args[2], args[3:]...)
		stdout, stderr = ts.ReadFile("stdout"), ts.ReadFile("stderr")
		if err != nil {
			stderr += err.Error() // also of a command that there is not
		}
		return stdout, stderr
	}))
}

// await runs until the stdout that run returns matches, and at least once.
func await(bound time.Duration, pattern *regexp.Regexp, run func() (stdout, stderr string)) error {
	for deadline := time.Now().Add(bound); ; time.Sleep(awaitEvery) {
		stdout, stderr := run()
		switch {
		case pattern.MatchString(stdout):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("no match for %q within %s; the last output is:\n%s%s", pattern, bound, stdout, stderr)
		}
	}
}

// TestAwait: what is waited for comes, or the wait ends with what was there.
func TestAwait(t *testing.T) {
	n := 0
	count := func() (stdout, stderr string) {
		n++
		return fmt.Sprintf("before\nlook %d\n", n), "nothing there"
	}
	if err := await(time.Minute, regexp.MustCompile("(?m)^look 3$"), count); err != nil || n != 3 {
		t.Errorf("after %d looks: %v", n, err)
	}
	err := await(0, regexp.MustCompile("nothing"), count)
	if err == nil || !strings.Contains(err.Error(), "look 4\nnothing there") {
		t.Errorf("past the bound: %v, want the last output in it", err)
	}
}
