//go:build unix

package taskrun

import (
	"os"
	"strings"
	"testing"

	"prp/controller/devserver"
)

// TestOrder: the worker's steps in their order, and what an end that went well
// reports (workerclient.md, the worker's order).
func TestOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.offer.Secrets = map[string]string{"KEY": "value-of-the-key"}
	b.script(
		`{"kind":"event","event_type":"usage.reported","payload":{"usage":{"inputTokens":11,"outputTokens":7}}}`,
		message("Hello, ", "world."), result("A greeting.", `,"structuredOutput":{"a":[1,2]}`),
	)
	st := b.must()
	if got := kinds(st); got != "fetch claim secrets base stream end" && got != "fetch claim secrets stream end" {
		t.Errorf("the order is %s", got)
	}
	if st.Status != "SUCCEEDED" || st.Text != "Hello, world." || text(st.End.Output) != "Hello, world." || text(st.End.Structured) != `{"a":[1,2]}` {
		t.Errorf("the end is %+v with the text %q", st.End, st.Text)
	}
	if st.SessionID == "" || st.Claim.StartedAt == nil || st.End.EndedAt == nil || st.End.EndedAt.Before(*st.Claim.StartedAt) || st.End.ErrorMessage != nil {
		t.Errorf("the claim is %+v, the end %+v", st.Claim, st.End)
	}
	if p, c := st.End.PromptTokens, st.End.CompletionTokens; p == nil || *p != 11 || c == nil || *c != 7 {
		t.Errorf("the tokens are %v and %v", p, c)
	}
	path := text(st.End.TracePath)
	if strings.HasPrefix(path, "/") || strings.Contains(path, `\`) || !strings.Contains(path, st.SessionID) {
		t.Errorf("the trace is %q", path)
	}
	if j := b.journal(st); !strings.Contains(j, "run.terminal") || !strings.Contains(j, `"text":"Fix the greeting."`) {
		t.Errorf("the journal is %s", j)
	}
	if n := st.Count(devserver.OnEnd); n != 1 {
		t.Errorf("%d ends were reported", n)
	}
	b.clean()
}

// TestOutput: the last completed message, else the summary.
func TestOutput(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ steps, text, output string }{
		"no message":       {"", "", "The summary."},
		"two messages":     {message("one", " two") + "," + message("three"), "one two\n\nthree", "three"},
		"text at its end":  {`{"kind":"event","event_type":"item.completed","item_id":"m","payload":{"kind":"message","text":"whole"}}`, "whole", "whole"},
		"not completed":    {message("one") + `,{"kind":"event","event_type":"item.started","item_id":"n","payload":{"kind":"message"}},{"kind":"event","event_type":"item.delta","item_id":"n","payload":{"delta":"two"}}`, "one\n\ntwo", "one"},
		"of a command":     {`{"kind":"event","event_type":"item.delta","item_id":"c","payload":{"kind":"command","delta":"x"}},{"kind":"event","event_type":"item.completed","item_id":"c","payload":{"kind":"command"}}`, "", "The summary."},
		"of another model": {`{"kind":"event","event_type":"item.delta","item_id":"m","payload":{"kind":"assistant_message","replay":true,"delta":"old"}}`, "", "The summary."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			steps := []string{tt.steps, result("The summary.")}
			if tt.steps == "" {
				steps = steps[1:]
			}
			b.script(steps...)
			if st := b.must(); st.Text != tt.text || text(st.End.Output) != tt.output || st.Status != "SUCCEEDED" {
				t.Errorf("the text is %q, the output %q, %s", st.Text, text(st.End.Output), st.Status)
			}
		})
	}
}

// TestCommand: a plain program gets the text as its stdin, and its stdout is the
// output.
func TestCommand(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := programs.Dir(t)
	b.offer.Secrets = map[string]string{"HOME": "/no/such/home", "TMPDIR": "/no/such/folder"}
	b.cfg.Harness = []string{dir + "/prp", "harness", "command", "--from-turn", "text", "--", "sh", "-c", "echo err >&2; tr a-z A-Z; echo $HOME $TMPDIR"}
	st := b.must()
	if !strings.HasPrefix(st.Text, "FIX THE GREETING.") || text(st.End.Output) != st.Text || strings.Contains(st.Text, "err") {
		t.Errorf("the text is %q, the output %q", st.Text, text(st.End.Output))
	}
	if n := strings.Count(st.Text, "/runs/run-"); n != 2 {
		t.Errorf("the home and temporary folders are not private: %q", st.Text)
	}
	b.clean()
}

// TestLongTask: a task of most of a line of the protocol reaches a plain program:
// it is told once.
func TestLongTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.offer.Bundle.Run.Input = strings.Repeat("x", 900<<10)
	b.sh("wc -c")
	if st := b.must(); st.Status != "SUCCEEDED" || strings.TrimSpace(st.Text) != "921600" {
		t.Errorf("%s: %s; the text is %.100q", st.Status, text(st.End.ErrorMessage), st.Text)
	}
}

// TestInstructions: they reach the harness in turn.start, and no argument.
func TestInstructions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.offer.Bundle.Task.AgentInstructions = "agent's words"
	b.offer.Bundle.Task.SpaceAgentInstructions = "space's words"
	b.shell()
	b.goOn()
	runner := b.recordArgs()
	st := b.must()
	recorded, err := os.ReadFile(runner)
	if err != nil {
		t.Fatal(err)
	}
	told, args := b.read("told"), b.read("args")+string(recorded)
	if st.Status != "SUCCEEDED" || !strings.Contains(told, `"instructions":"space's words\n\nagent's words"`) {
		t.Errorf("the harness was told %s", told)
	}
	if strings.Contains(args, "words") || strings.Contains(args, "greeting") || strings.Contains(args, b.token) || !strings.Contains(args, "--run-id") {
		t.Errorf("the arguments are %s", args)
	}
}
