package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"prp/cmd/internal/harnesscmd"
	"prp/cmd/internal/runnercmd"
	"prp/controller"
	"prp/protocol"
	"prp/runner/process"
)

var update = flag.Bool("update", false, "write the golden files inside the scripts")

// scriptPatience bounds all scripts together, from their start on, on a loaded
// machine.
const scriptPatience = 8 * time.Minute

// TestMain makes the test binary also the three programs: the scripts and the
// tests run them by their names, as real processes.
func TestMain(m *testing.M) {
	process.Main()
	testscript.Main(m, map[string]func(){
		"prp":         func() { exit(run()) },
		"prp-runner":  func() { exit(runnercmd.Main(os.Args[1:])) },
		"prp-harness": func() { exit(harnesscmd.Main(os.Args[1:])) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(scriptPatience),
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"await":  cmdAwait,
			"stream": cmdStream,
		},
	})
}

// cmdStream checks a recorded stream: stream FILE EVENTS STATE REASON. It is
// valid as a whole, has so many events, and its terminal says so. The event
// types stand, one a line, in the file "types" afterwards.
func cmdStream(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: stream FILE EVENTS STATE REASON")
	}
	r, problems, err := controller.Replay(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	for _, p := range problems {
		ts.Logf("%s", p)
	}
	if len(problems) > 0 {
		ts.Fatalf("%s has %d problems", args[0], len(problems))
	}
	if want, err := strconv.ParseInt(args[1], 10, 64); err != nil || r.Events != want {
		ts.Fatalf("%s has %d events, want %s", args[0], r.Events, args[1])
	}
	terminal := r.Snapshot.Terminal
	if got := terminal.RunTerminalState; string(got) != args[2] {
		ts.Fatalf("the run is %s, want %s", got, args[2])
	}
	if got := terminal.Reconciliation.Reason; string(got) != args[3] {
		ts.Fatalf("the reason is %s, want %s", got, args[3])
	}
	var types bytes.Buffer
	for _, entry := range r.Snapshot.Timeline {
		fmt.Fprintln(&types, entry.EventType)
	}
	ts.Check(os.WriteFile(ts.MkAbs("types"), types.Bytes(), 0o644))
}

// chain starts the real runner with a script of the real fake harness.
func chain(t *testing.T, script string, tap func([]byte), flags ...string) *controller.Client {
	t.Helper()
	argv := append([]string{"prp-runner", "--harness", "prp-harness fake --script " + script + " --delay-ms 0"}, flags...)
	c, err := controller.Start(t.Context(), controller.Config{
		Argv: argv, Tap: tap,
		RunID: "run_1", SessionID: "session_1", RunnerID: "runner_1",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

// followUntil reads events until one of the type comes.
func followUntil(t *testing.T, c *controller.Client, want protocol.EventType) {
	t.Helper()
	for e, err := range c.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.EventType == want {
			return
		}
	}
	t.Fatalf("the run ended without %s", want)
}

// setGoing sends the three commands of the start.
func setGoing(t *testing.T, c *controller.Client) {
	t.Helper()
	ctx := t.Context()
	if err := c.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.OpenSession(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.StartTurn(ctx, "turn_1", "go on", nil); err != nil {
		t.Fatal(err)
	}
}
