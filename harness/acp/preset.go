package acp

import (
	"slices"
	"strings"
)

// Preset is what is known of an agent: how it is started and which environment
// variables it may see. It holds names, never values.
type Preset struct {
	// Name is what a person types.
	Name string
	// Argv is the agent and its arguments.
	Argv []string
	// Env are the variables that the agent may see, beside [BaseEnv].
	Env []string
	// Needs are those of them without which no turn works.
	Needs []string
	// Auth is the method to authenticate with where the agent asks for it.
	Auth string
	// Package is the npm package that has the agent.
	Package string
}

// BaseEnv are the variables that every agent may see.
func BaseEnv() []string {
	return []string{
		"PATH", "LANG", "LC_ALL", "TZ", "TERM", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
		"http_proxy", "https_proxy", "no_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		"SystemRoot", "ComSpec", "PATHEXT",
	}
}

// Presets lists the agents that are known, in the order of their names.
func Presets() []Preset {
	return []Preset{
		{
			Name: "claude", Argv: []string{"claude-agent-acp"}, Package: "@agentclientprotocol/claude-agent-acp",
			Env: []string{
				"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR",
				"CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER",
				"DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "IS_SANDBOX",
			},
			Needs: []string{"ANTHROPIC_API_KEY"},
		},
		{
			Name: "codex", Argv: []string{"codex-acp"}, Package: "@zed-industries/codex-acp",
			Env:   []string{"CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "NO_BROWSER"},
			Needs: []string{"CODEX_HOME"}, Auth: "openai-api-key",
		},
		{
			Name: "gemini", Argv: []string{"gemini", "--acp"}, Package: "@google/gemini-cli",
			Env: []string{
				"GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL", "GEMINI_CLI_NO_RELAUNCH",
				"GEMINI_TELEMETRY_ENABLED", "NO_BROWSER",
			},
			Needs: []string{"GEMINI_API_KEY"}, Auth: "gemini-api-key",
		},
		{
			Name: "opencode", Argv: []string{"opencode", "acp"}, Package: "opencode-ai",
			Env: []string{
				"XDG_CONFIG_HOME", "XDG_DATA_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_DISABLE_AUTOUPDATE",
				"OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_DEFAULT_PLUGINS", "OPENCODE_DISABLE_LSP_DOWNLOAD",
				"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY",
			},
			Needs: []string{"XDG_CONFIG_HOME"},
		},
		{
			Name: "qwen", Argv: []string{"qwen", "--acp", "--auth-type", "openai"}, Package: "@qwen-code/qwen-code",
			Env:   []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "NO_BROWSER"},
			Needs: []string{"OPENAI_API_KEY"}, Auth: "openai",
		},
	}
}

// FindPreset finds a preset by its name.
func FindPreset(name string) (Preset, bool) {
	i := slices.IndexFunc(Presets(), func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return Presets()[i], true
}

// Names are all variables that the agent of this preset may see.
func (p Preset) Names() []string { return append(BaseEnv(), p.Env...) }

// Environment is an agent's environment: of have the variables that are
// allowed, and of home those that are not among them. Both are NAME=VALUE; of a
// repeated name the first counts.
func Environment(have, allow, home []string) []string {
	var env []string
	seen := map[string]bool{}
	add := func(list []string, wanted func(name string) bool) {
		for _, pair := range list {
			name, _, ok := strings.Cut(pair, "=")
			if ok && name != "" && !seen[name] && wanted(name) {
				seen[name] = true
				env = append(env, pair)
			}
		}
	}
	add(have, func(name string) bool { return slices.Contains(allow, name) })
	add(home, func(string) bool { return true })
	return env
}
