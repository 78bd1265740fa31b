package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// maxPath bounds a path in a request, in bytes: what Linux takes.
const maxPath = 4096

// Config says where files may be.
type Config struct {
	// Roots are the folders whose content may be touched. None: every call
	// is refused.
	Roots []string
	// Dir is a folder of our own for backups and unfinished patches,
	// outside the roots as a rule.
	Dir string
	// Closed is a folder in which no path is allowed, also where a root has it:
	// the caller's own state. Empty is none.
	Closed string
}

// Space is a set of roots. It is safe for use by many goroutines.
type Space struct {
	roots  []root
	dir    string
	closed string // with its symlinks resolved
}

type root struct {
	given string // absolute, as it was given
	real  string // with its symlinks resolved
	*os.Root
}

// Open opens the roots and makes the folder for backups.
func Open(cfg Config) (*Space, error) {
	s := &Space{dir: cfg.Dir}
	for _, sub := range []string{backupDir, pendingDir} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	if cfg.Closed != "" {
		abs, err := filepath.Abs(cfg.Closed)
		if err == nil {
			s.closed, err = resolve(abs)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, given := range cfg.Roots {
		r, err := openRoot(given)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("root %q: %w", given, err)
		}
		s.roots = append(s.roots, r)
	}
	return s, nil
}

func openRoot(given string) (root, error) {
	abs, err := filepath.Abs(given)
	if err != nil {
		return root{}, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return root{}, err
	}
	r, err := os.OpenRoot(real)
	return root{given: abs, real: real, Root: r}, err
}

// Close closes the roots.
func (s *Space) Close() {
	for _, r := range s.roots {
		r.Close()
	}
}

// Roots lists the roots with their symlinks resolved.
func (s *Space) Roots() []string {
	var list []string
	for _, r := range s.roots {
		list = append(list, r.real)
	}
	return list
}

// place is a path inside a root.
type place struct {
	root root
	rel  string // inside the root, "." is the root itself
	path string // as the request gave it, for messages
}

// abs is the whole path.
func (p place) abs() string { return filepath.Join(p.root.real, p.rel) }

// Resolve tells where a path leads: absolute, with every symlink resolved that
// exists. The error is an [*Error].
func (s *Space) Resolve(path string) (string, error) {
	p, err := s.find(path)
	if err != nil {
		return "", err
	}
	return p.abs(), nil
}

// Folder is Resolve for a folder that exists.
func (s *Space) Folder(path string) (string, error) {
	p, err := s.find(path)
	if err != nil {
		return "", err
	}
	info, err := p.root.Stat(p.rel)
	if err != nil {
		return "", fromOS(path, err)
	}
	if !info.IsDir() {
		return "", refuse(NotAFile, path, "%q is no folder", path)
	}
	return p.abs(), nil
}

// Locate is Resolve also for the closed folder, for whoever speaks of it.
func (s *Space) Locate(path string) (string, error) {
	p, err := s.locate(path)
	if err != nil {
		return "", err
	}
	return p.abs(), nil
}

// find resolves a path that may be used.
func (s *Space) find(path string) (place, error) {
	p, err := s.locate(path)
	if err == nil && s.isClosed(p.abs()) {
		return place{}, refuse(PathNotAllowed, path, "%q is in the folder of the worker's own state", path)
	}
	return p, err
}

// isClosed compares without case: some file systems take the two spellings for
// one.
func (s *Space) isClosed(abs string) bool {
	return s.closed != "" && Within(s.closed, abs, true)
}

// locate resolves a path and finds the root that it is in.
func (s *Space) locate(path string) (place, error) {
	switch {
	case len(s.roots) == 0:
		return place{}, refuse(PathNotAllowed, path, "no root was given, so no path is allowed")
	case path == "":
		return place{}, badField("path", "expected a path, got an empty one")
	case len(path) > maxPath:
		return place{}, badField("path", "expected at most %d bytes, got %d", maxPath, len(path))
	case strings.ContainsRune(path, 0):
		return place{}, badField("path", "expected a path, got one with a NUL")
	}
	abs := path
	if !filepath.IsAbs(path) {
		abs = filepath.Join(s.roots[0].real, path)
	}
	real, err := resolve(filepath.Clean(abs))
	if err != nil {
		return place{}, fromOS(path, err)
	}
	best := -1
	for i, r := range s.roots {
		if inside(r.real, real) && (best < 0 || len(r.real) > len(s.roots[best].real)) {
			best = i
		}
	}
	if best < 0 {
		return place{}, refuse(PathNotAllowed, path, "%q is not inside an allowed root", path)
	}
	rel, err := filepath.Rel(s.roots[best].real, real)
	if err != nil {
		return place{}, fromOS(path, err)
	}
	return place{root: s.roots[best], rel: rel, path: path}, nil
}

func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Within tells whether a path is a folder or below it. With fold names that
// differ in upper and lower case only are one: some file systems take them for
// one, and what is denied must not be had by another spelling. It looks at no
// file.
func Within(dir, path string, fold bool) bool {
	if fold {
		dir, path = strings.Map(oneCase, dir), strings.Map(oneCase, path)
	}
	return inside(dir, path)
}

// oneCase is the same for all cases of a letter, also for those of which lower
// case makes two, such as the long s.
func oneCase(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}

// maxLinks bounds the dangling symlinks that are followed, as Linux does.
const maxLinks = 40

// resolve resolves the symlinks of a clean absolute path. What does not exist
// is taken as it is written; a symlink to something that does not exist leads
// there, so that a file is not made elsewhere than it was allowed.
func resolve(path string) (string, error) {
	for range maxLinks {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if target, err := os.Readlink(path); err == nil {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			path = filepath.Clean(target)
			continue
		}
		parent, name := filepath.Dir(path), filepath.Base(path)
		if parent == path {
			return path, nil
		}
		up, err := resolve(parent)
		if err != nil {
			return "", err
		}
		return filepath.Join(up, name), nil
	}
	return "", syscall.ELOOP
}

// openFile opens a regular file for reading. A FIFO or a device is never
// opened in a way that waits or has an effect.
func (p place) openFile() (*os.File, os.FileInfo, error) {
	info, err := p.root.Lstat(p.rel)
	if err != nil {
		return nil, nil, fromOS(p.path, err)
	}
	if err := p.regular(info); err != nil {
		return nil, nil, err
	}
	f, err := p.root.OpenFile(p.rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fromOS(p.path, err)
	}
	// The one that was opened counts.
	info, err = f.Stat()
	if err == nil {
		err = p.regular(info)
	}
	if err != nil {
		f.Close()
		return nil, nil, fromOS(p.path, err)
	}
	return f, info, nil
}

func (p place) regular(info os.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	what := "a folder"
	if !info.IsDir() {
		what = "neither a file nor a folder"
	}
	return refuse(NotAFile, p.path, "%q is %s", p.path, what)
}
