package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFollow: replay --follow shows what is there, waits for what is written
// later, also in the middle of a line, and ends with the run.
func TestFollow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixtures, "happy.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(t.TempDir(), "run.journal")
	half := len(text) / 2 // inside a line
	if err := os.WriteFile(journal, text[:half], 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "prp", "replay", "--follow", journal)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hang := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer hang.Stop()

	var lines []string
	in := bufio.NewScanner(out)
	for in.Scan() {
		lines = append(lines, in.Text())
		if strings.Contains(in.Text(), "turn.started") { // it is in the first half
			break
		}
	}
	f, err := os.OpenFile(journal, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(text[half:]); err != nil {
		t.Fatal(err)
	}
	for in.Scan() {
		lines = append(lines, in.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("prp replay --follow: %v", err)
	}
	if n := len(lines); n == 0 || lines[n-1] != "verdict: 19 events, run succeeded (successful_process_and_result), valid" {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
}
