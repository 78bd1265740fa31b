package devserver

import (
	"strings"
	"testing"
)

// TestRules: every rule that can be told is read, and all else is refused with
// what is wrong.
func TestRules(t *testing.T) {
	for _, on := range Kinds() {
		for _, do := range Deeds(on) {
			if r, err := ParseRule(on + ":2:" + do); err != nil || r != (Rule{On: on, Nth: 2, Do: do}) {
				t.Errorf("%s %s: %+v, %v", on, do, r, err)
			}
		}
	}
	for text, want := range map[string]string{
		"":                 "a kind of command, connect, frame, hello, progress, result",
		"news:1:drop":      `got "news:1:drop"`,
		"frame:1:drop":     "one of cut for frame",
		"connect:1:twice":  "one of drop, late for connect",
		"result:-1:drop":   "a number from 0",
		"result:one:drop":  "a number from 0",
		"result:1:drop:":   "KIND:N:WHAT",
		"command:1:hang":   "for command",
		"result:1:explode": "one of drop, drop-after, hang, mute, late for result",
	} {
		if _, err := ParseRule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestConnectorRules: what the connector's server does not do is refused.
func TestConnectorRules(t *testing.T) {
	for _, text := range []string{"post:1:drop-after", "put:0:hang", "connect:2:http-503", "create_run:1:twice", "run_event:3:mute", "register:1:close-1008"} {
		if _, err := ParseConnectorRule(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"run_event:1:twice", "create_run:1:hang", "connect:1:mute"} {
		if r, err := ParseConnectorRule(text); err == nil {
			t.Errorf("%q is %+v, want an error", text, r)
		}
	}
}
