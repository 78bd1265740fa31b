package schema_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prp/protocol"
	"prp/scripts"
)

// lineSchemas tells by the member "schema" of a line which schema it has.
var lineSchemas = map[string]string{
	protocol.SchemaCommand:                 "command",
	protocol.SchemaCommandShort:            "command",
	protocol.SchemaStream:                  "stream",
	protocol.SchemaEvent:                   "event",
	protocol.FamilyFake.CommandSchema():    "harness-command",
	protocol.FamilyHarness.CommandSchema(): "harness-command",
	protocol.FamilyFake.MessageSchema():    "harness-message",
	protocol.FamilyHarness.MessageSchema(): "harness-message",
}

// brokenRun marks, in its name, a recorded run of a version that nobody has
// yet: its lines are refused.
const brokenRun = "unsupported"

// TestRecordedRuns validates every line of every recorded run.
func TestRecordedRuns(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../fixtures/*.jsonl", "../../fixtures/invalid/" + brokenRun + "*.jsonl", "testdata/*.jsonl"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatal("no recorded run in fixtures or testdata")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines, refused := 0, 0
			for i, line := range bytes.Split(text, []byte("\n")) {
				if len(bytes.TrimSpace(line)) == 0 {
					continue
				}
				lines++
				if err := validateLine(t, line); err != nil {
					refused++
					if !strings.Contains(filepath.Base(file), brokenRun) {
						t.Errorf("line %d: %v", i+1, err)
					}
				}
			}
			if lines == 0 {
				t.Error("no line in the file")
			}
			if strings.Contains(filepath.Base(file), brokenRun) && refused == 0 {
				t.Errorf("all %d lines of a run of an unsupported version are accepted", lines)
			}
		})
	}
}

// validateLine checks a line against the schema that it names.
func validateLine(t *testing.T, line []byte) error {
	t.Helper()
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return err
	}
	name, ok := lineSchemas[head.Schema]
	if !ok {
		t.Errorf("schema %q is none of a line", head.Schema)
		return nil
	}
	return validate(t, name, string(line))
}

// TestScripts validates every script that the project has, and the results
// and proposals inside.
func TestScripts(t *testing.T) {
	for _, name := range scripts.Names() {
		t.Run(name, func(t *testing.T) {
			text, err := scripts.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, "script", string(text)); err != nil {
				t.Errorf("%v", err)
			}
			var script struct {
				Steps []struct {
					Kind    string
					Payload json.RawMessage
					Request json.RawMessage
				}
			}
			if err := json.Unmarshal(text, &script); err != nil {
				t.Fatal(err)
			}
			for i, step := range script.Steps {
				inner := map[string]json.RawMessage{"result": step.Payload, "terminal": step.Payload, "request": step.Request}
				schemaOf := map[string]string{"result": "result", "terminal": "proposal", "request": "request"}
				if raw, ok := inner[step.Kind]; ok {
					if err := validate(t, schemaOf[step.Kind], string(raw)); err != nil {
						t.Errorf("steps[%d]: %v", i, err)
					}
				}
			}
		})
	}
}
