//go:build unix

package connector

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prp/controller/devserver"
)

// harness replaces the harness of an agent by another kind of prp-harness.
func (w *world) harness(line string) func(*Agent) {
	return func(a *Agent) { a.Harness = filepath.Join(w.place.Programs, "prp-harness") + " " + line }
}

// spoken is all that a run has said.
func spoken(events []runEvent) string {
	var b strings.Builder
	for _, ev := range events {
		b.WriteString(unquoted(ev.Payload["text"]) + unquoted(ev.Payload["text_rest"]))
	}
	return b.String()
}

// TestCommand: create_run has a plain program as its agent: the goal is its
// input, its output are the events, its exit status is the run's.
func TestCommand(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("cat", "happy-path", w.harness("command --from-turn stdin -- cat"), func(a *Agent) { a.GoalTo = "stdin" })
	w.agent("fails", "happy-path", w.harness("command -- sh -c 'echo out; exit 3'"))
	w.start()
	events, end := w.over(w.create("cat"))
	if end["status"] != "succeeded" || end["exit_code"] != 0.0 || !strings.Contains(spoken(events[9:]), "the goal") || !strings.Contains(kinds(events), "tool_call") {
		t.Errorf("the completion is %v, the events are %s", end, marshal(events))
	}
	events, end = w.over(w.create("fails"))
	if end["status"] != "failed" || end["exit_code"] != 3.0 || !strings.Contains(spoken(events), "out") {
		t.Errorf("the completion is %v, the events are %s", end, marshal(events))
	}
}

// TestACP: create_run has an agent of the Agent Client Protocol.
func TestACP(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	agent := filepath.Join(t.TempDir(), "agent")
	const script = `#!/bin/sh
n=0
while read -r line; do
  n=$((n+1))
  case $n in
  1) result='{"protocolVersion":1}' ;;
  2) result='{"sessionId":"s"}' ;;
  3) case "$line" in *"the goal"*) said="I have read it.";; *) said="What?";; esac
     printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$said"
     result='{"stopReason":"end_turn"}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%d,"result":%s}\n' "$n" "$result"
done
`
	if err := os.WriteFile(agent, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	w.agent("acp", "happy-path", w.harness("acp -- "+agent), func(a *Agent) { a.Cwd = t.TempDir() })
	w.start()
	events, end := w.over(w.create("acp"))
	if end["status"] != "succeeded" || !strings.Contains(spoken(events), "I have read it.") {
		t.Errorf("the completion is %v, the events are %s", end, marshal(events))
	}
}

// TestACPGoAgent: the example agent of the protocol's Go SDK asks for a
// permission, which the server grants or denies.
func TestACPGoAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("the agent takes five seconds a turn")
	}
	t.Parallel()
	agent := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", agent, "github.com/coder/acp-go-sdk/example/agent")
	build.Dir = filepath.Join("..", "..", "cmd", "internal", "conform", "testdata", "agent-go")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("the example agent cannot be built, which needs the Go proxy once: %v\n%s", err, out)
	}
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("acp", "happy-path", w.harness("acp -- "+agent), func(a *Agent) { a.Cwd = t.TempDir() })
	w.start()
	granted, denied := w.create("acp"), w.create("acp")
	for run, answer := range map[string]string{granted: "approval_granted", denied: "approval_denied"} {
		ask := w.got("approval_request", run)
		w.frame(`{"type":%q,"approval_id":%q,"request_id":%q}`, answer, run, ask["request_id"])
	}
	said := map[string]string{}
	for _, run := range []string{granted, denied} {
		events, end := w.over(run)
		if end["status"] != "succeeded" || !strings.Contains(kinds(events), "tool_call") || !strings.Contains(kinds(events), "tool_result") {
			t.Errorf("%s: the completion is %v, the events are %s", run, end, kinds(events))
		}
		said[run] = spoken(events)
	}
	if said[granted] == said[denied] || fmt.Sprint(said[granted]) == "" {
		t.Errorf("granted and denied made no difference: %q", said[granted])
	}
}
