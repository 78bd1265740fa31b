package conform

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"prp/harness/acp"
)

// Agent is an agent that is tried.
type Agent struct {
	// Preset is the name of a preset, empty for any other agent.
	Preset string
	// Argv replaces the preset's command line where it is not empty.
	Argv []string
	// EnvAllow names variables of this process that an agent without a preset
	// may see.
	EnvAllow []string
}

// UsesModel reports whether the agent asks the fake model.
func (a Agent) UsesModel() bool { return setups[a.Preset] != nil }

// argv is the command line of the agent.
func (a Agent) argv() []string {
	p, _ := acp.FindPreset(a.Preset)
	argv := a.Argv
	if len(argv) == 0 {
		argv = p.Argv
	}
	if a.Preset == "gemini" {
		argv = append(argv[:len(argv):len(argv)], "-m", "gemini-2.5-pro")
	}
	return argv
}

// setup writes the files that an agent needs below root and returns its
// variables as NAME=VALUE.
type setup func(root, model string) (env []string, err error)

// setups point the agents of the presets to the fake model. No key is a real
// one.
var setups = map[string]setup{
	"claude":   setupClaude,
	"codex":    setupCodex,
	"gemini":   setupGemini,
	"opencode": setupOpencode,
	"qwen":     setupQwen,
}

func setupClaude(root, model string) ([]string, error) {
	return []string{
		"ANTHROPIC_API_KEY=fake", "ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_MODEL=claude-sonnet-4-5",
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
	}, nil
}

// setupCodex fits @zed-industries/codex-acp 0.16.0, which is pinned: it can be
// told to ask for everything. @agentclientprotocol/codex-acp 2.6.0 refuses to
// start with "untrusted", and with "on-request" it asks for nothing, whatever
// the sandbox: the cases about permissions say nothing about it.
func setupCodex(root, model string) ([]string, error) {
	config := fmt.Sprintf(`model = "fake-model"
model_provider = "fake"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"

[model_providers.fake]
name = "fake"
base_url = "%s/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`, model)
	home := filepath.Join(root, "codex")
	return []string{"CODEX_HOME=" + home, "OPENAI_API_KEY=fake", "NO_BROWSER=1"}, write(filepath.Join(home, "config.toml"), config)
}

func setupGemini(_, model string) ([]string, error) {
	return []string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL=" + model, "GEMINI_CLI_NO_RELAUNCH=true"}, nil
}

func setupOpencode(root, model string) ([]string, error) {
	config := fmt.Sprintf(`{
  "model": "fake/fake-model",
  "small_model": "fake/fake-model",
  "autoupdate": false,
  "share": "disabled",
  "provider": {
    "fake": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "Fake",
      "options": {"baseURL": "%s/v1", "apiKey": "fake"},
      "models": {"fake-model": {"name": "Fake"}}
    }
  },
  "permission": {"bash": "ask", "edit": "ask"}
}
`, model)
	home := filepath.Join(root, "opencode-config")
	return []string{
			"XDG_CONFIG_HOME=" + home, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
			"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		},
		write(filepath.Join(home, "opencode", "opencode.json"), config)
}

func setupQwen(_, model string) ([]string, error) {
	return []string{"OPENAI_API_KEY=fake", "OPENAI_BASE_URL=" + model + "/v1", "OPENAI_MODEL=fake-model"}, nil
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// quoted is a command line for --harness: shell words, without a shell.
func quoted(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(out, " ")
}
