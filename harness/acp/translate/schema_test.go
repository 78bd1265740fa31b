package translate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// agentsDir names the folder node_modules/.bin of the agents from npm; beside
// it is the protocol's own schema.
const agentsDir = "PRP_AGENTS_BIN"

// definitions are the names in the schema of what is sent, by method.
var definitions = map[string]string{
	"initialize":     "InitializeRequest",
	"authenticate":   "AuthenticateRequest",
	"session/new":    "NewSessionRequest",
	"session/load":   "LoadSessionRequest",
	"session/resume": "ResumeSessionRequest",
	"session/close":  "CloseSessionRequest",
	"session/prompt": "PromptRequest",
	"session/cancel": "CancelNotification",
	"answer/outcome": "RequestPermissionResponse",
	"answer/action":  "CreateElicitationResponse",
}

// TestSentIsValid: everything that the transcripts send to an agent is valid
// under the schema that the agents themselves use.
func TestSentIsValid(t *testing.T) {
	dir := os.Getenv(agentsDir)
	if dir == "" {
		t.Skipf("%s names no folder with agents, and so no schema of the protocol", agentsDir)
	}
	path := filepath.Join(dir, "..", "@agentclientprotocol", "sdk", "schema", "schema.json")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the agents bring no schema: %v", err)
	}
	compiler := jsonschema.NewCompiler()
	schemas := map[string]*jsonschema.Schema{}
	for method, name := range definitions {
		s, err := compiler.Compile(path + "#/$defs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		schemas[method] = s
	}
	seen := map[string]bool{}
	for _, line := range sent(t) {
		method, value := payloadOf(t, line)
		if method == "" {
			continue // an error, which JSON-RPC defines
		}
		s := schemas[method]
		if s == nil {
			t.Fatalf("no schema for %q: %s", method, line)
		}
		seen[method] = true
		if err := s.Validate(value); err != nil {
			t.Errorf("%s: %v\n%s", method, err, line)
		}
	}
	for method := range definitions {
		if !seen[method] {
			t.Errorf("no transcript sends %s", method)
		}
	}
}

// sent is every line of every transcript to the agent.
func sent(t *testing.T) (lines [][]byte) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, written := transcript(t, string(archive.Files[0].Data))
		lines = append(lines, written...)
	}
	return lines
}

// payloadOf is what the schema describes of a line, and under which name.
func payloadOf(t *testing.T, line []byte) (method string, value any) {
	t.Helper()
	var m struct {
		Method         string
		Params, Result json.RawMessage
	}
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatal(err)
	}
	raw := m.Params
	if m.Method == "" {
		if raw = m.Result; raw == nil {
			return "", nil
		}
		var answer map[string]any
		if err := json.Unmarshal(raw, &answer); err != nil {
			t.Fatal(err)
		}
		for name := range answer {
			if name != "content" {
				m.Method = "answer/" + name
			}
		}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return m.Method, value
}
