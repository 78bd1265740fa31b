package runnercmd

import (
	"bytes"
	"fmt"
	"strings"

	"prp/protocol/secret"
)

// maxEnvFile bounds an --env-file, in bytes: more is no list of variables.
const maxEnvFile = 1 << 20

// environment builds the harness's environment: PATH, what --env-allow names,
// what the files say; a later one of a name replaces an earlier one.
func (p *parsed) environment(getenv func(string) (string, bool)) error {
	env := newEnv()
	for _, name := range append([]string{"PATH"}, p.allow...) {
		if value, ok := getenv(name); ok {
			env.set(name, value)
		}
	}
	for _, path := range p.envFiles {
		secrets, err := env.addFile(path)
		if err != nil {
			return fmt.Errorf("--env-file: %w", err)
		}
		p.cfg.Secrets = append(p.cfg.Secrets, secrets...)
	}
	p.cfg.Env = env.list
	return nil
}

// env is an environment in the order in which its names first came.
type env struct {
	list  []string
	index map[string]int
}

func newEnv() *env { return &env{index: make(map[string]int)} }

func (e *env) set(name, value string) {
	if i, ok := e.index[name]; ok {
		e.list[i] = name + "=" + value
		return
	}
	e.index[name] = len(e.list)
	e.list = append(e.list, name+"="+value)
}

// addFile adds the variables of a file and returns their values. A line is
// NAME=VALUE, taken as it is, without quotes or escapes; blank lines and lines
// that begin with # are skipped. An error never shows a value.
func (e *env) addFile(path string) ([]string, error) {
	text, err := secret.ReadFile(path, maxEnvFile)
	switch {
	case err != nil:
		return nil, err
	case bytes.IndexByte(text, 0) >= 0:
		return nil, fmt.Errorf("%s: expected text, got a NUL byte", path)
	}
	var values []string
	for i, line := range strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || !isName(name) {
			return nil, fmt.Errorf("%s:%d: expected NAME=VALUE", path, i+1)
		}
		e.set(name, value)
		values = append(values, value)
	}
	return values, nil
}

func isName(s string) bool {
	for i, c := range s {
		switch {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != ""
}
