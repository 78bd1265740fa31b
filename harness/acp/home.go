package acp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"prp/protocol/orphan"
)

const (
	// homePrefix begins the name of a home.
	homePrefix = "prp-home"
	// maxOrphans bounds the homes that are removed before a new one is made: an
	// agent is waiting, and a home can be large.
	maxOrphans = 8
	// removeTries and removeWait bound how long a home is removed while a
	// process still writes into it.
	removeTries = 10
	removeWait  = 100 * time.Millisecond
)

// Home is a private place for one run: the agent's home, its XDG folders and
// its temporary files. Agents without a HOME write into the real one of the
// account.
type Home struct{ root string }

// NewHome makes a home in a new folder of dir, or of the system's folder for
// temporary files where dir is empty. Only this user can look into it. On Linux
// it first removes homes in dir whose process was killed and is gone, some at a
// time.
func NewHome(dir string) (*Home, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	orphan.Remove(dir, homePrefix, maxOrphans, func(root string) error { return (&Home{root: root}).removeOnce() })
	root, err := orphan.MakeDir(dir, homePrefix)
	if err != nil {
		return nil, fmt.Errorf("private home: %w", err)
	}
	h := &Home{root: root}
	if err := h.fill(); err != nil {
		return nil, errors.Join(err, h.Remove())
	}
	return h, nil
}

// UseHome makes an existing folder a home. Whoever made it removes it.
func UseHome(root string) (*Home, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("private home: %w", err)
	}
	h := &Home{root: root}
	return h, h.fill()
}

// folders are the variables and where they point to, inside the root.
func (h *Home) folders() [][2]string {
	return [][2]string{
		{"HOME", "home"},
		{"USERPROFILE", "home"},
		{"XDG_CONFIG_HOME", "config"},
		{"XDG_DATA_HOME", "data"},
		{"XDG_STATE_HOME", "state"},
		{"XDG_CACHE_HOME", "cache"},
		{"XDG_RUNTIME_DIR", "run"},
		{"TMPDIR", "tmp"},
		{"TEMP", "tmp"},
		{"TMP", "tmp"},
	}
}

func (h *Home) fill() error {
	for _, f := range h.folders() {
		if err := os.MkdirAll(filepath.Join(h.root, f[1]), 0o700); err != nil {
			return fmt.Errorf("private home: %w", err)
		}
	}
	return nil
}

// Root is the folder that holds all of it.
func (h *Home) Root() string { return h.root }

// Env is the environment that leads there, as NAME=VALUE.
func (h *Home) Env() []string {
	var env []string
	for _, f := range h.folders() {
		env = append(env, f[0]+"="+filepath.Join(h.root, f[1]))
	}
	return env
}

// Remove removes the home with everything in it, also what was made read-only.
// It tries again for a second where a process still writes there. A link in it
// is removed, not followed.
func (h *Home) Remove() error {
	var err error
	for try := range removeTries {
		if try > 0 {
			time.Sleep(removeWait)
		}
		if err = h.removeOnce(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("remove the private home: %w", err)
}

func (h *Home) removeOnce() error {
	if os.RemoveAll(h.root) == nil {
		return nil
	}
	h.makeWritable()
	return os.RemoveAll(h.root)
}

// makeWritable lets folders be emptied. An error shows in the removal. No link
// that is put in the place of a folder meanwhile leads out of the home.
func (h *Home) makeWritable() {
	_ = os.Chmod(h.root, 0o700)
	root, err := os.OpenRoot(h.root)
	if err != nil {
		return
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
}
