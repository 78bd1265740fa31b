package main

import (
	"strings"
	"testing"

	"prp/controller"
	"prp/protocol"
)

// TestResponseTo: what an operator says is what the harness is told, whatever
// the harness has called its choices.
func TestResponseTo(t *testing.T) {
	permission := protocol.Request{Type: protocol.RequestPermission}
	crossed := []controller.Choice{{Key: "allow", Label: "Deny"}, {Key: "deny", Label: "Allow"}}
	numbers := []controller.Choice{{Key: "2", Label: "Allow"}, {Key: "1", Label: "Deny"}}
	plain := []controller.Choice{{Key: "a", Label: "Allow once"}, {Key: "d", Label: "Deny"}}
	for _, tt := range []struct {
		choices []controller.Choice
		value   string
		given   string // by --answer or the shell, which take keys
		typed   string // below the question, where numbers stand first
	}{
		{plain, "d", "d", "d"},
		{plain, "1", "a", "a"},
		{plain, "allow ONCE", "a", "a"},
		{crossed, "deny", "deny", "deny"},
		{crossed, "allow", "allow", "allow"},
		{crossed, "Deny", "allow", "allow"}, // no key: a label
		{numbers, "2", "2", "1"},
		{numbers, "1", "1", "2"},
	} {
		for how, c := range map[string]struct{ value, want string }{
			"given": {tt.value, tt.given},
			"typed": {numbered(tt.choices, tt.value), tt.typed},
		} {
			got, err := responseTo(permission, tt.choices, c.value)
			if want := `{"decision":"` + c.want + `"}`; err != nil || string(got) != want {
				t.Errorf("%v, %q %s: got %s %v, want %s", tt.choices, tt.value, how, got, err, want)
			}
		}
	}
	if _, err := responseTo(permission, plain, "3"); err == nil {
		t.Error("a number without a choice was taken")
	}
}

// TestQuestionIsWhole: what a person decides about is shown to its end, and
// cannot move the cursor.
func TestQuestionIsWhole(t *testing.T) {
	p := &player{screen: &screen{}}
	prompt := "Run this?\n" + strings.Repeat("echo hello; ", 60) + "\nrm -rf /\x1b[2K\u202e"
	got := p.question(protocol.Request{Prompt: prompt}, nil)
	if !strings.Contains(got, "\nrm -rf /\uFFFD[2K\uFFFD") || strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("got %q", got)
	}
}
