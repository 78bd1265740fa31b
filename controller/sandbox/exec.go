package sandbox

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Exit statuses for a command that calls [Exec].
const (
	// StatusRefused is for a sandbox that could not be set up.
	StatusRefused = 125
	// StatusNotExecutable and StatusNotFound are those of a shell.
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

// Error is why [Exec] returned. Status is what to exit with.
type Error struct {
	Status int
	err    error
}

// Error implements error.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Exec confines this process by rules, which are the text that [Plan.Wrap]
// made, and becomes the program argv with the environment env. A name without a
// slash is looked up in env's PATH. It returns only where that is not possible,
// with an [*Error]; the process, half confined, then has to end.
func Exec(rules string, argv, env []string) error {
	r, err := parse(rules)
	if err != nil {
		return &Error{StatusRefused, err}
	}
	if len(argv) == 0 {
		return &Error{StatusRefused, errors.New("expected a program after the rules")}
	}
	program, err := find(argv[0], env)
	if err != nil {
		return &Error{StatusNotFound, err}
	}
	// What is not a program after all is told as such.
	if err := confine(r, program); err != nil {
		return &Error{StatusRefused, fmt.Errorf("nothing was started, since it cannot be confined: %w", err)}
	}
	err = become(program, argv, env)
	status := StatusNotExecutable
	if errors.Is(err, fs.ErrNotExist) {
		status = StatusNotFound
	}
	return &Error{status, fmt.Errorf("start %q: %w", argv[0], err)}
}

func parse(text string) (Rules, error) {
	var r Rules
	plain, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return r, fmt.Errorf("expected the rules of a sandbox, got %q: %w", text, err)
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("expected the rules of a sandbox, got %q: %w", plain, err)
	}
	switch {
	case d.More():
		return r, fmt.Errorf("expected one object, got %q", plain)
	case r.Sockets != "" && r.Sockets != NetworkNone && r.Sockets != NetworkOpen:
		return r, fmt.Errorf("expected sockets none or open, got %q", r.Sockets)
	case !r.Files && r.Sockets == "":
		return r, errors.New("expected rules that refuse something")
	case r.Files && r.Sockets == "":
		return r, errors.New("expected a rule for sockets: unix sockets lead around those for files")
	}
	return r, nil
}

// find is the path of a program.
func find(name string, env []string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return name, nil
	}
	for _, dir := range filepath.SplitList(pathOf(env)) {
		path := filepath.Join(dir, name)
		// An empty or relative folder would be one that the harness writes.
		if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("expected a program, got %q, which is not in PATH", name)
}

func pathOf(env []string) string {
	path := ""
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	return path
}
