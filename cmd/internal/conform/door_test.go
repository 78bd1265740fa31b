package conform

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"prp/cmd/internal/fakemodel"
	"prp/controller/connector"
	"prp/controller/connector/connectortest"
	"prp/controller/devserver"
	"prp/harness/acp"
)

// doorAgent is the agent that is played through a door: the quickest to start.
const doorAgent = "codex"

// TestAgentAtTheConnector: a server creates a run, a real agent asks for a
// permission, the server grants it, the tool runs, and the events tell all of it
// (connector.md rows 7, 10 and 12).
func TestAgentAtTheConnector(t *testing.T) {
	dir := os.Getenv(agentsDir)
	if dir == "" || runtime.GOOS == "windows" {
		t.Skipf("%s names no folder with agents", agentsDir)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	p, _ := acp.FindPreset(doorAgent)
	if _, err := exec.LookPath(p.Argv[0]); err != nil {
		t.Skipf("%s of %s is not installed", p.Argv[0], p.Package)
	}
	model, err := fakemodel.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	work := t.TempDir()
	server := devserver.NewConnector(devserver.ConnectorConfig{})
	door := connectortest.Open(t, agentHang, server, atConnector(t, work, model.URL()))
	door.Send(`{"type":"create_run","id":"c","run_id":"run_1","agent_id":"real","goal":"go [[tool:echo made > made.txt]]"}`)
	var question struct {
		RequestID       string `json:"request_id"`
		ArgumentsDigest string `json:"arguments_digest"`
	}
	door.Until("a question", func() bool {
		frames := server.Frames()
		i := slices.IndexFunc(frames, func(f devserver.ConnectorFrame) bool { return f.Type == "approval_request" })
		return i >= 0 && json.Unmarshal(frames[i].Raw, &question) == nil || server.Over("run_1")
	})
	if _, err := os.Stat(filepath.Join(work, "made.txt")); err == nil {
		t.Error("the tool ran before it was allowed to")
	}
	door.Send(`{"type":"approval_granted","approval_id":"a","approved_by":"test","request_id":%q,"arguments_digest":%q}`, question.RequestID, question.ArgumentsDigest)
	door.Until("the completion", func() bool { return server.Over("run_1") })
	if text, err := os.ReadFile(filepath.Join(work, "made.txt")); string(text) != "made\n" {
		t.Errorf("the tool has written %q, %v", text, err)
	}
	events, _, faults := server.Delivered("run_1")
	if len(faults) > 0 {
		t.Errorf("the server found %q", faults)
	}
	if last := string(events[len(events)-1].Raw); !strings.Contains(last, `"event":"completion"`) || !strings.Contains(last, `"status":"succeeded"`) {
		t.Errorf("the completion is %s", last)
	}
	for _, want := range []string{`"event":"tool_call"`, `"event":"tool_result"`, `"tool":"terminal"`} {
		if !strings.Contains(door.Frames(), want) {
			t.Errorf("no event has %s: %s", want, door.Frames())
		}
	}
	if left := processesOf(work); len(left) > 0 {
		t.Errorf("still alive after the completion: %v", left)
	}
}

// atConnector offers the real agent, which asks the fake model.
func atConnector(t *testing.T, work, model string) connector.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	env, err := setups[doorAgent](root, model)
	if err == nil {
		err = write(filepath.Join(root, "env"), strings.Join(env, "\n")+"\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	harness := []string{self, "as-harness", "acp", "--home", filepath.Join(root, "home"), "--permissions", "ask", "--preset", doorAgent, "--"}
	return connector.Config{
		Runner: []string{self, "as-runner", "--env-file", filepath.Join(root, "env"), "--ready-timeout-ms", fmt.Sprint(agentHang.Milliseconds())},
		Agents: []connector.Agent{{
			AgentID: "real", Runtime: doorAgent, Tools: []string{"terminal"}, Cwd: work,
			Harness: quoted(append(harness, Agent{Preset: doorAgent}.argv()...)),
		}},
	}
}
