package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxFile bounds a file that is changed, before and after, in bytes.
	MaxFile = 16 << 20

	backupDir  = "backups"
	pendingDir = "pending"
	// keepBackups is how long a backup is kept.
	keepBackups = 30 * 24 * time.Hour
	// newMode is what a new file gets, less the umask.
	newMode = 0o644
	// dirMode is what a new folder gets, less the umask.
	dirMode = 0o755
)

// change is what happens to one file: its content before and after.
type change struct {
	at     place
	exists bool
	before []byte
	info   os.FileInfo // as it was read; nil where it does not exist

	after  []byte
	remove bool
	mode   os.FileMode
	exact  bool // the mode is kept as it is, without the umask
}

// snapshot reads a file that is to be changed, or finds that there is none.
func snapshot(p place) (change, error) {
	c := change{at: p, mode: newMode}
	f, info, err := p.openFile()
	var refused *Error
	if errors.As(err, &refused) && refused.Code == NotFound {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer f.Close()
	if info.Size() > MaxFile {
		return c, refuse(TooLarge, p.path, "%q has %d bytes, more than the %d that can be changed", p.path, info.Size(), MaxFile)
	}
	// One byte more shows a file that has grown meanwhile.
	c.before, err = io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return c, fromOS(p.path, err)
	}
	if len(c.before) > MaxFile {
		return c, refuse(TooLarge, p.path, "%q has more than the %d bytes that can be changed", p.path, MaxFile)
	}
	c.exists, c.info, c.mode, c.exact = true, info, info.Mode().Perm(), true
	return c, nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// commit is a set of changes on its way to the disk.
type commit struct {
	space *Space
	id    string
	list  []change
	// Backups has for each path that was replaced or removed the copy.
	backups map[string]string
	// stop is a seam of the tests: it is called before each step.
	stop func(step string) error
}

// pending is the record by which a commit that was stopped is undone.
type pending struct {
	Files []pendingFile `json:"files"`
}

type pendingFile struct {
	Root    string `json:"root"`
	Path    string `json:"path"`
	Existed bool   `json:"existed"`
	After   string `json:"after,omitempty"` // hash of the new content
	// Folders are those that do not exist yet, the outermost first.
	Folders []string `json:"folders,omitempty"`
}

// newCommit prepares a commit; nothing is written yet.
func (s *Space) newCommit(list []change) *commit {
	var b [8]byte
	rand.Read(b[:]) // never fails (package crypto/rand)
	id := time.Now().UTC().Format("20060102T150405.000Z-") + hex.EncodeToString(b[:])
	return &commit{space: s, id: id, list: list, backups: map[string]string{}, stop: func(string) error { return nil }}
}

// maxBase is how many bytes of a file's name stand in the names of ours that
// are made of it: a name has at most 255 bytes on every usual file system, and
// an id and the words around it take less than 64.
const maxBase = 160

// shortBase is the last part of a path, with a hash in the place of what is too
// long; so two that differ stay apart.
func shortBase(rel string) string {
	base := filepath.Base(rel)
	if len(base) <= maxBase {
		return base
	}
	const digits = 16
	return strings.ToValidUTF8(base[:maxBase-digits], "") + hashOf([]byte(base))[:digits]
}

// side is the name of a file of ours beside a file.
func side(rel, id, what string) string {
	return filepath.Join(filepath.Dir(rel), "."+shortBase(rel)+".prp-"+id+"-"+what)
}

const (
	sideNew = "new"
	sideOld = "old"
)

// run writes every change, or none. ctx is heeded until the first file is
// replaced.
func (c *commit) run(ctx context.Context) error {
	err := c.prepare(ctx)
	if err == nil {
		err = c.replace()
	}
	if err != nil {
		return errors.Join(err, c.space.undo(c.id))
	}
	return c.space.finish(c.id)
}

// prepare writes everything that needs room on a disk: the record, backups,
// the new files, and a second name for the old ones.
func (c *commit) prepare(ctx context.Context) error {
	if err := c.writeRecord(); err != nil {
		return fromOS(pendingDir, err)
	}
	for i := range c.list {
		f := &c.list[i]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.stop("prepare"); err != nil {
			return err
		}
		if err := c.prepareFile(i, f); err != nil {
			return fromOS(f.at.path, err)
		}
	}
	return nil
}

func (c *commit) prepareFile(i int, f *change) error {
	r, rel := f.at.root, f.at.rel
	if f.exists {
		if err := c.backup(i, f); err != nil {
			return err
		}
		if err := c.keepOld(f); err != nil {
			return err
		}
	}
	if f.remove {
		return nil
	}
	if err := r.MkdirAll(filepath.Dir(rel), dirMode); err != nil {
		return err
	}
	return writeSynced(r.Root, side(rel, c.id, sideNew), f.after, f.mode, f.exact)
}

// keepOld gives the old file a second name, from which it comes back without
// room on the disk.
func (c *commit) keepOld(f *change) error {
	if c.lone() {
		return nil
	}
	r, rel, old := f.at.root, f.at.rel, side(f.at.rel, c.id, sideOld)
	if r.Link(rel, old) == nil {
		return nil
	}
	// Not every file system has hard links.
	return writeSynced(r.Root, old, f.before, f.info.Mode().Perm(), true)
}

// lone is a commit that one rename makes whole: it needs no way back.
func (c *commit) lone() bool { return len(c.list) == 1 && !c.list[0].remove }

// writeSynced makes a file and returns when it is on the disk. The umask does
// not count where the mode is exact.
func writeSynced(r *os.Root, rel string, content []byte, mode os.FileMode, exact bool) error {
	f, err := r.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && exact {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (c *commit) backup(i int, f *change) error {
	dir := filepath.Join(c.space.dir, backupDir, c.id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, strconv.Itoa(i+1)+"-"+shortBase(f.at.rel))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.before)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	c.backups[f.at.path] = path
	return nil
}

func (c *commit) writeRecord() error {
	var p pending
	for _, f := range c.list {
		e := pendingFile{Root: f.at.root.real, Path: f.at.rel, Existed: f.exists}
		if !f.remove {
			e.After, e.Folders = hashOf(f.after), missing(f.at)
		}
		p.Files = append(p.Files, e)
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(filepath.Join(c.space.dir, pendingDir))
	if err != nil {
		return err
	}
	defer dir.Close()
	if c.lone() {
		return dir.WriteFile(c.id+".json", text, 0o600) // only to tidy up by
	}
	// Under another name until it is whole.
	if err := writeSynced(dir, c.id+".part", text, 0o600, false); err != nil {
		return err
	}
	return dir.Rename(c.id+".part", c.id+".json")
}

// missing lists the folders above a file that do not exist.
func missing(p place) []string {
	var list []string
	for dir := filepath.Dir(p.rel); dir != "."; dir = filepath.Dir(dir) {
		if _, err := p.root.Lstat(dir); err == nil {
			break
		}
		list = append([]string{dir}, list...)
	}
	return list
}

// replace puts the new files in the place of the old ones. It needs no room.
func (c *commit) replace() error {
	for i := range c.list {
		f := &c.list[i]
		if err := c.stop("replace"); err != nil {
			return err
		}
		if err := c.replaceFile(f); err != nil {
			return fromOS(f.at.path, err)
		}
	}
	return c.stop("end")
}

func (c *commit) replaceFile(f *change) error {
	r, rel := f.at.root, f.at.rel
	if err := unchanged(f); err != nil {
		return err
	}
	fresh := side(rel, c.id, sideNew)
	switch {
	case f.remove:
		return r.Remove(rel)
	case f.exists:
		return r.Rename(fresh, rel)
	}
	// A link, unlike a rename, never replaces what somebody has just made.
	err := r.Link(fresh, rel)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return r.Rename(fresh, rel)
	}
	return err
}

// unchanged refuses a file that somebody else has changed since it was read.
func unchanged(f *change) error {
	now, err := f.at.root.Lstat(f.at.rel)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.exists:
		return nil
	case err != nil:
		return err
	case !f.exists, !os.SameFile(now, f.info), now.Size() != f.info.Size(), !now.ModTime().Equal(f.info.ModTime()):
		return refuse(Conflict, f.at.path, "%q was changed by somebody else meanwhile", f.at.path)
	}
	return nil
}
