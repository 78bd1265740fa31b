package schema

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed *.json
var files embed.FS

// names are in the order of the chain: what a controller writes, what it
// reads, the objects inside, what a harness reads and writes, what drives it.
var names = []string{
	"command", "stream", "event", "request", "result", "proposal", "terminal",
	"harness-command", "harness-message", "script",
}

// Names returns the names of all schemas, in the order of the chain. The slice
// is the caller's.
func Names() []string { return slices.Clone(names) }

// Describe says in one sentence what the text of a schema is about: its
// description. The error says that the text is no JSON.
func Describe(text []byte) (string, error) {
	var head struct {
		Description string `json:"description"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return "", fmt.Errorf("schema: %w", err)
	}
	return head.Description, nil
}

// Get returns the text of one schema: indented JSON that ends in a newline.
// The error names the schemas that exist.
func Get(name string) ([]byte, error) {
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("no schema %q; there are: %s", name, strings.Join(names, ", "))
	}
	return files.ReadFile(name + ".json")
}
