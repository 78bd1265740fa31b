package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Recover undoes the changes that a process has left unfinished, so that all
// their files are as they were before, and drops old backups. It returns how
// many changes it undid. Where the root of such a file is not among the roots
// now, the change and its record stay, and the error says what to do.
func (s *Space) Recover() (int, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, pendingDir))
	if err != nil {
		return 0, err
	}
	undone := 0
	var faults error
	for _, e := range entries {
		id, ext, _ := cutExt(e.Name())
		switch ext {
		case "json":
			undone++
			faults = errors.Join(faults, s.undo(id))
		case "done":
			faults = errors.Join(faults, s.tidy(id))
		default: // a record that was never whole: nothing was written after it
			faults = errors.Join(faults, os.Remove(filepath.Join(s.dir, pendingDir, e.Name())))
		}
	}
	s.dropBackups()
	return undone, faults
}

func cutExt(name string) (id, ext string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}

// dropBackups removes those that are too old. What cannot be removed stays.
func (s *Space) dropBackups() {
	dir := filepath.Join(s.dir, backupDir)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepBackups {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

func (s *Space) recordPath(id, ext string) string {
	return filepath.Join(s.dir, pendingDir, id+"."+ext)
}

func (s *Space) readRecord(id, ext string) (pending, error) {
	var p pending
	text, err := os.ReadFile(s.recordPath(id, ext))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err
}

// finish makes a commit final: from here on it is tidied up, not undone.
func (s *Space) finish(id string) error {
	if err := os.Rename(s.recordPath(id, "json"), s.recordPath(id, "done")); err != nil {
		return errors.Join(fromOS(pendingDir, err), s.undo(id))
	}
	// What is left behind is tidied up at the next start.
	_ = s.tidy(id)
	return nil
}

// tidy removes the files of a finished commit that are beside others.
func (s *Space) tidy(id string) error {
	p, err := s.readRecord(id, "done")
	if err != nil {
		return err
	}
	for _, f := range p.Files {
		r, ok := s.rootOf(f)
		if !ok {
			return nil // the next start with this root tidies up
		}
		for _, what := range []string{sideNew, sideOld} {
			if err := r.Remove(side(f.Path, id, what)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return os.Remove(s.recordPath(id, "done"))
}

// rootOf is the root of a file, where it is among those that are given now.
func (s *Space) rootOf(f pendingFile) (root, bool) {
	for _, r := range s.roots {
		if r.real == f.Root {
			return r, true
		}
	}
	return root{}, false
}

// undo brings every file of a commit back. It needs no room on a disk.
func (s *Space) undo(id string) error {
	p, err := s.readRecord(id, "json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it did not even begin
	}
	if err != nil && errors.As(err, new(*json.SyntaxError)) {
		// Torn: that of a single file, of which nothing was written yet.
		return os.Remove(s.recordPath(id, "json"))
	}
	if err != nil {
		return err
	}
	for _, f := range p.Files {
		r, ok := s.rootOf(f)
		if !ok {
			return fmt.Errorf("the change of %q in %q was not finished: start once with that folder among the roots to have it undone; or, to leave its files as they are, remove %q", f.Path, f.Root, s.recordPath(id, "json"))
		}
		if err := undoFile(r, f, id); err != nil {
			return fmt.Errorf("undo the change of %q: %w", f.Path, err)
		}
	}
	return os.Remove(s.recordPath(id, "json"))
}

func undoFile(r root, f pendingFile, id string) error {
	old, fresh := side(f.Path, id, sideOld), side(f.Path, id, sideNew)
	switch {
	case f.Existed && isForeign(r, f, old):
		// Somebody has put another file there since: theirs is the newer one,
		// and what it replaced is in the backups.
		if err := r.Remove(old); err != nil {
			return err
		}
	case f.Existed:
		// Where both are one file, a rename does nothing; then the second
		// name goes.
		if err := r.Rename(old, f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := r.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case isOurs(r, f, fresh):
		if err := r.Remove(f.Path); err != nil {
			return err
		}
	}
	if err := r.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i := len(f.Folders) - 1; i >= 0; i-- {
		// One that somebody has put something into stays.
		_ = r.Remove(f.Folders[i])
	}
	return nil
}

// isOurs tells a file that the commit has made from one of somebody else.
func isOurs(r root, f pendingFile, fresh string) bool {
	made, err := r.Lstat(f.Path)
	if err != nil || !made.Mode().IsRegular() || made.Size() > MaxFile {
		return false
	}
	if ours, err := r.Lstat(fresh); err == nil {
		return os.SameFile(made, ours)
	}
	return contentHash(r, f.Path) == f.After
}

// isForeign tells a file that stands in the place of an old one, and is neither
// that nor what the commit has made of it. One that is gone is none, nor is one
// whose old file has no second name: nothing would come in its place.
func isForeign(r root, f pendingFile, old string) bool {
	now, err := r.Lstat(f.Path)
	if err != nil {
		return false
	}
	kept, err := r.Lstat(old)
	if err != nil || os.SameFile(now, kept) {
		return false
	}
	if !now.Mode().IsRegular() {
		return true
	}
	hash := contentHash(r, f.Path)
	return hash == "" || hash != f.After && hash != contentHash(r, old)
}

// contentHash is empty where a file is larger than any that is changed, or
// cannot be read.
func contentHash(r root, path string) string {
	file, err := r.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO
	if err != nil {
		return ""
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil || len(content) > MaxFile {
		return ""
	}
	return hashOf(content)
}
