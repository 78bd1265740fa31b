package unpack

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Commit gives the folders their modes and times and puts the area in the
// place of the target.
func (a *Area) Commit() error {
	if a.done {
		return errors.New("the area has ended")
	}
	a.leave()
	// The last ones first: a folder that may not be written or searched is
	// changed after what is in it.
	for i := len(a.folders) - 1; i >= 0; i-- {
		f := a.folders[i]
		if a.rules.Exact {
			if err := a.root.Chtimes(f.name, f.mtime, f.mtime); err != nil {
				return err
			}
		}
		if err := a.root.Chmod(f.name, f.mode); err != nil {
			return err
		}
	}
	if err := a.root.Chmod(".", a.mode); err != nil {
		return err
	}
	if err := a.root.Close(); err != nil {
		return err
	}
	// Remove takes an empty folder only. Not every system renames over one.
	if err := os.Remove(a.target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(a.staging, a.target); err != nil {
		return err
	}
	a.done = true
	return nil
}

// Discard removes what is in the making.
func (a *Area) Discard() error {
	if a.done {
		return nil
	}
	a.done = true
	a.leave()
	a.root.Close()
	return Remove(a.staging)
}

// Remove removes a tree as os.RemoveAll does, also with folders that may not be
// written: those of an archive, or what a package manager keeps.
func Remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	// What cannot be opened shows in the second try.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, privateDir)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
