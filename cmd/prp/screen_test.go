package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestPromptStays: a prompt is written once for as long as it waits, and once more
// below a line that comes meanwhile; the progress line does not move beside it.
func TestPromptStays(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, file: os.Stdin, terminal: true}
	s.resume(func() string { return "working" })
	s.ask("Which one?", "> ")
	for range 5 {
		s.tick()
	}
	s.print("an event")
	for range 5 {
		s.tick()
	}
	_, asked, ok := strings.Cut(out.String(), "Which one?\n")
	if want := "> " + clearLine + "an event\n> "; !ok || asked != want {
		t.Errorf("after the question there is %q, want %q", asked, want)
	}
	out.Reset()
	s.resume(func() string { return "working" })
	s.tick()
	if got := strings.Count(out.String(), "working"); got != 2 {
		t.Errorf("after the answer there is %q, want the progress line twice", out.String())
	}
}
