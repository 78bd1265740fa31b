package connector

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"prp/controller/bridge"
)

// fileSchema is the JSON Schema of a configuration file.
//
//go:embed config.schema.json
var fileSchema []byte

// FileSchema is the JSON Schema (draft 2020-12) of a configuration file. The
// slice is the caller's.
func FileSchema() []byte { return bytes.Clone(fileSchema) }

// File is a configuration file of a connector (connector.md: agents). Paths are
// relative to the folder of the file.
type File struct {
	// URL is where the server takes WebSockets, wss or ws on loopback.
	URL string `json:"url"`
	// CAFile replaces the system's roots. CertFile and KeyFile are the client
	// certificate, TokenFile has the JWT (row 18).
	CAFile    string `json:"ca_file,omitempty"`
	CertFile  string `json:"cert_file,omitempty"`
	KeyFile   string `json:"key_file,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	// StoreCAFile replaces the system's roots for the store of the artifacts,
	// which is another host (row 14).
	StoreCAFile string `json:"store_ca_file,omitempty"`
	// ConnectorID replaces the one that is made at the first start.
	ConnectorID string `json:"connector_id,omitempty" jsonschema:"maxLength=140"`
	// Dir keeps the state.
	Dir string `json:"dir,omitempty"`
	// MaxConcurrentRuns bounds the runs of all agents, MaxQueue those that wait.
	MaxConcurrentRuns int `json:"max_concurrent_runs,omitempty" jsonschema:"minimum=1,maximum=1000"`
	MaxQueue          int `json:"max_queue,omitempty" jsonschema:"minimum=0,maximum=10000"`
	// MetricsAddr is host:port on loopback for health and metrics.
	MetricsAddr string  `json:"metrics_addr,omitempty"`
	Agents      []Agent `json:"agents" jsonschema:"minItems=1"`
}

// Agent is an agent that a connector offers.
type Agent struct {
	AgentID string `json:"agent_id" jsonschema:"minLength=1,maxLength=140"`
	// Runtime and Model are told to the server as they are.
	Runtime string `json:"runtime" jsonschema:"minLength=1"`
	Model   string `json:"model,omitempty"`
	// Tools are what the agent may be asked to use.
	Tools    []string `json:"tools,omitempty"`
	MaxTurns int      `json:"max_turns,omitempty" jsonschema:"minimum=0"`
	// Supports lists what the harness truly does.
	Supports []string `json:"supports,omitempty" jsonschema:"enum=streaming,enum=cancellation,enum=handoff,enum=approval,enum=artifacts"`
	// Harness is its command line as shell words; there is no shell.
	Harness string `json:"harness" jsonschema:"minLength=1"`
	// Cwd is the working folder of the harness, from which artifacts come.
	Cwd string `json:"cwd,omitempty"`
	// EnvAllow names variables that the harness may see. Their values are
	// masked in everything that is sent.
	EnvAllow []string `json:"env_allow,omitempty"`
	// MaxConcurrentRuns bounds the runs of this agent; 1 where it is absent.
	MaxConcurrentRuns int `json:"max_concurrent_runs,omitempty" jsonschema:"minimum=0,maximum=1000"`
	// GoalTo names a further member of turn.start that gets the goal, for
	// example stdin for a command that reads it from there.
	GoalTo string `json:"goal_to,omitempty" jsonschema:"enum=stdin"`
}

// supports lists what an agent can claim.
var supports = []string{"streaming", "cancellation", "handoff", "approval", "artifacts"}

// maxAgents bounds the agents of a file: all of them go into one frame.
const maxAgents = 256

// ParseFile reads a configuration file strictly.
func ParseFile(raw []byte) (File, error) {
	var f File
	if err := bridge.DecodeStrict(raw, &f); err != nil {
		return File{}, fmt.Errorf("expected a configuration of a connector: %w", err)
	}
	if f.URL == "" {
		return File{}, errors.New("url: expected the address of a server, got none")
	}
	if n := utf8.RuneCountInString(f.ConnectorID); n > maxID {
		return File{}, fmt.Errorf("connector_id: expected at most %d characters, got %d", maxID, n)
	}
	if f.MaxConcurrentRuns < 0 || f.MaxQueue < 0 {
		return File{}, errors.New("max_concurrent_runs, max_queue: expected numbers of at least 0")
	}
	return f, checkAgents(f.Agents)
}

func checkAgents(agents []Agent) error {
	if len(agents) == 0 || len(agents) > maxAgents {
		return fmt.Errorf("agents: expected 1 to %d, got %d", maxAgents, len(agents))
	}
	seen := map[string]bool{}
	for i, a := range agents {
		at := fmt.Sprintf("agents[%d]", i)
		switch {
		case a.AgentID == "" || utf8.RuneCountInString(a.AgentID) > maxID:
			return fmt.Errorf("%s.agent_id: expected 1 to %d characters", at, maxID)
		case seen[a.AgentID]:
			return fmt.Errorf("%s.agent_id: expected each once, got %q again", at, a.AgentID)
		case a.Runtime == "":
			return fmt.Errorf("%s.runtime: expected a name, got none", at)
		case a.Harness == "":
			return fmt.Errorf("%s.harness: expected a command line, got none", at)
		case a.MaxTurns < 0 || a.MaxConcurrentRuns < 0:
			return fmt.Errorf("%s: expected max_turns and max_concurrent_runs of at least 0", at)
		case a.GoalTo != "" && a.GoalTo != "stdin":
			return fmt.Errorf("%s.goal_to: expected %q, got %q", at, "stdin", a.GoalTo)
		}
		for _, s := range a.Supports {
			if !slices.Contains(supports, s) {
				return fmt.Errorf("%s.supports: expected one of %q, got %q", at, supports, s)
			}
		}
		seen[a.AgentID] = true
	}
	return nil
}

// room is how many runs of the agent there may be at once.
func (a *Agent) room() int { return max(1, a.MaxConcurrentRuns) }

// offered is what the server sees.
func (a *Agent) offered() offeredAgent {
	return offeredAgent{
		AgentID: a.AgentID, Runtime: a.Runtime, Model: a.Model, Tools: orEmpty(a.Tools),
		MaxTurns: a.MaxTurns, Supports: orEmpty(a.Supports),
	}
}

// orEmpty is a list that is never null in JSON.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
