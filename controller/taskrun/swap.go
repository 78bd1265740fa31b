package taskrun

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// What is put into the private folder of a run, to be removed with it.
const (
	// freshDir is a checkpoint in the making.
	freshDir = "restored"
	// replacedDir is the workspace that it has replaced, leftDir one that an
	// earlier worker has replaced and not removed.
	replacedDir, leftDir = "replaced", "left"
)

// aside is where a workspace of ours is for the moment in which another one takes
// its place. It is not in the folder of the run: that one is removed when the
// worker was killed.
func (w *worker) aside(space string) string {
	return filepath.Join(w.cfg.Dir, asideDir, filepath.Base(space))
}

// replace puts what is in the folder of a run in the place of its workspace. There
// are two renames; where the worker is killed in between, the next run of the task
// finds the old workspace aside.
func (w *worker) replace(r *prepared) error {
	aside := w.aside(r.space)
	if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
		return err
	}
	if err := os.Rename(r.space, aside); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(r.dir, freshDir), r.space); err != nil {
		return errors.Join(err, os.Rename(aside, r.space))
	}
	return os.Rename(aside, filepath.Join(r.dir, replacedDir))
}

// takeUp finds what a worker that was killed has left aside, and brings it back
// where nothing has taken its place.
func (w *worker) takeUp(r *prepared) error {
	aside := w.aside(r.space)
	if _, err := os.Lstat(aside); err != nil {
		return ifThere(err)
	}
	back := filepath.Join(r.dir, leftDir)
	if _, err := os.Lstat(r.space); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(r.space), 0o700); err != nil {
			return err
		}
		back = r.space
		w.say("the workspace is that of before a restore that was cut off")
	}
	return ifThere(os.Rename(aside, back))
}

// ifThere is the error of something that need not be there: another worker of the
// task may have it.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
