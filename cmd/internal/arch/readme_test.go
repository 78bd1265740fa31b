package arch

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prp/cmd/internal/runnercmd"
	"prp/protocol"
)

var update = flag.Bool("update", false, "write the flag table of the README from the flags of prp-runner")

const (
	tableStart = "<!-- flags -->\n"
	tableEnd   = "<!-- /flags -->\n"
)

// flagTable is the README's table of the flags of prp-runner.
func flagTable() string {
	var b strings.Builder
	b.WriteString("| Flag | Default | Meaning |\n|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`).Replace
	for _, f := range runnercmd.Flags() {
		text := strings.ToUpper(f.Text[:1]) + f.Text[1:] + "."
		fmt.Fprintf(&b, "| `--%s %s` | %s | %s |\n", f.Name, cell(f.Arg), cell(f.Default), cell(text))
	}
	return b.String()
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeFlags: the README has exactly the flags that prp-runner has, in
// the order of its help, with their defaults.
func TestReadmeFlags(t *testing.T) {
	text := readme(t)
	before, rest, ok1 := strings.Cut(text, tableStart)
	got, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		t.Fatalf("the README has no %q and %q", tableStart, tableEnd)
	}
	want := flagTable()
	if *update {
		text = before + tableStart + want + tableEnd + after
		if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the flag table is stale; run go test ./cmd/internal/arch -update\n(-want +README)\n%s", diff)
	}
}

// TestReadmeReasons: the terminal table names every reason that there is.
func TestReadmeReasons(t *testing.T) {
	text := readme(t)
	for _, reason := range []protocol.Reason{
		protocol.ReasonTurnInterrupted, protocol.ReasonRunCancelled, protocol.ReasonRunnerShutdown,
		protocol.ReasonControllerClosed, protocol.ReasonRunnerTerminated, protocol.ReasonStartFailed,
		protocol.ReasonNotReady, protocol.ReasonProtocolViolation, protocol.ReasonRunTimedOut,
		protocol.ReasonBudgetExceeded, protocol.ReasonSuccess, protocol.ReasonProcessFailed, protocol.ReasonResultMissing,
	} {
		if strings.Count(text, "| `"+string(reason)+"` |") != 1 {
			t.Errorf("the terminal table has not exactly one row for %q", reason)
		}
	}
}

// TestReadmeCommands: the first two commands are the ones that a newcomer
// needs, in this order, and .ci/run calls the second one.
func TestReadmeCommands(t *testing.T) {
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(readme(t))
	if block == nil {
		t.Fatal("the README has no block of commands")
	}
	want := "go run ./cmd/prp run happy-path\ngo test ./...\n"
	if block[1] != want {
		t.Errorf("the first block of the README is %q, want %q", block[1], want)
	}
	ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(ci), "\n  run go test ./...\n") {
		t.Error(".ci/run does not call the README's test command")
	}
}

// programs builds the commands once, into a folder bin of a new folder.
func programs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "bin")+"/", "./cmd/...")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	return dir
}

// TestReadmePrograms types the README's pipe example into a shell, in a folder
// of its own, and counts what comes out. The same binaries tell their flags.
func TestReadmePrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the example is for a POSIX shell")
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	if len(blocks) < 2 {
		t.Fatalf("the README has %d blocks of commands, want the pipe example in the second", len(blocks))
	}
	build, pipe, ok := strings.Cut(blocks[1][1], "\n")
	if !ok || build != "go build -o bin/ ./cmd/..." {
		t.Fatalf("the pipe example begins with %q, want the build", build)
	}
	dir := programs(t)
	// A bound for a hang, far above what the run takes. A build has none: where
	// it meets an empty cache it takes minutes.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", pipe)
	shell.Dir, shell.Stderr = dir, os.Stderr
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("the pipe example: %v\n%s", err, out)
	}
	checkPipe(t, string(out))

	help, err := exec.CommandContext(ctx, filepath.Join(dir, "bin", "prp-runner"), "-h").Output()
	if err != nil {
		t.Fatalf("prp-runner -h: %v", err)
	}
	for _, f := range runnercmd.Flags() {
		if !strings.Contains(string(help), "--"+f.Name+" ") {
			t.Errorf("prp-runner -h does not name --%s", f.Name)
		}
	}
}

// TestReadmePipeIsKept: the commands of the pipe example are those of the
// end-to-end test that keeps it.
func TestReadmePipeIsKept(t *testing.T) {
	kept, err := os.ReadFile(filepath.Join(root, "testdata", "pipe.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^  '(\{.*\})'`).FindAllStringSubmatch(readme(t), -1)
	if len(commands) != 3 {
		t.Fatalf("the README's pipe has %d commands, want 3", len(commands))
	}
	for _, c := range commands {
		if !strings.Contains(string(kept), c[1]+"\n") {
			t.Errorf("testdata/pipe.txtar has not the README's command %s", c[1])
		}
	}
}

func checkPipe(t *testing.T, out string) {
	t.Helper()
	d, events, receipts := protocol.NewDecoder(), 0, 0
	var last *protocol.Event
	for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		m, err := d.Stream([]byte(line))
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch m.Kind {
		case protocol.KindEvent:
			events, last = events+1, m.Event
		case protocol.KindReceipt:
			if receipts++; m.Receipt.Status != protocol.ReceiptAccepted {
				t.Errorf("command %s was not accepted: %s", m.Receipt.CommandID, m.Receipt.Detail)
			}
		}
	}
	if events != 19 || receipts != 3 {
		t.Errorf("%d events and %d receipts, want 19 and 3", events, receipts)
	}
	if last == nil || last.EventType != protocol.EventRunTerminal || !strings.Contains(string(last.Payload), string(protocol.ReasonSuccess)) {
		t.Errorf("the last event is %+v, want run.terminal with %s", last, protocol.ReasonSuccess)
	}
}
