package unpack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// privateDir and privateFile are the modes until the end, so that nobody
	// else looks into what is not checked yet, and it can always be removed.
	privateDir  = 0o700
	privateFile = 0o600
	// plainDir, plainFile and plainProgram are the modes without [Rules.Exact].
	plainDir     = 0o755
	plainFile    = 0o644
	plainProgram = 0o755
	// copyBuffer is how much of a file is in memory, in bytes.
	copyBuffer = 128 << 10
)

// Area is a folder in the making.
type Area struct {
	rules           Rules
	target, staging string
	root            *os.Root
	mode            fs.FileMode // of the target, in the end

	// Bytes, Files and Entries are what is in the area: bytes of contents,
	// files and symlinks, and these and folders.
	Bytes, Files, Entries int64

	folders     []folder
	folderNames int
	// names has each name by its folded form, where Portable.
	names  map[string]named
	parent string // the last folder that was looked at and is one, up to the top
	// open is the folder of the last file, which lies at openName: most files
	// come one after the other in one folder, and a path from the top costs two
	// system calls for each part. It is nil where none is open.
	open     *os.Root
	openName string
	buffer   []byte
	done     bool
}

// folder is a folder whose mode and time are set in the end.
type folder struct {
	name  string
	mode  fs.FileMode
	mtime time.Time
}

// named is how a name was written, and whether an entry of its own has it.
type named struct {
	name     string
	explicit bool
}

// Open begins a folder at dir, which must not exist or be empty; the folder
// that holds it must exist.
func Open(dir string, rules Rules) (*Area, error) {
	target, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	a := &Area{rules: rules, target: target, mode: plainDir, buffer: make([]byte, copyBuffer)}
	a.staging = filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".prp-unpack")
	if rules.Portable {
		a.names = map[string]named{}
	}
	if err := a.checkTarget(); err != nil {
		return nil, err
	}
	if err := Remove(a.staging); err != nil {
		return nil, fmt.Errorf("remove what an earlier process left: %w", err)
	}
	if err := os.Mkdir(a.staging, privateDir); err != nil {
		return nil, err
	}
	if a.root, err = os.OpenRoot(a.staging); err != nil {
		return nil, errors.Join(err, Remove(a.staging))
	}
	return a, nil
}

func (a *Area) checkTarget() error {
	info, err := os.Lstat(a.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("expected no file or an empty folder at %q, got %s", a.target, info.Mode())
	}
	f, err := os.Open(a.target)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Readdirnames(1); err != io.EOF {
		return fmt.Errorf("expected no file or an empty folder at %q, got one with files in it", a.target)
	}
	a.mode = info.Mode().Perm()
	return nil
}

// admit counts an entry and checks its name and its folder.
func (a *Area) admit(name string, isFile bool) error {
	if err := a.rules.CheckName(name); err != nil {
		return err
	}
	if a.Entries++; a.Entries > a.rules.MaxEntries {
		return refuse(name, "more than %d entries", a.rules.MaxEntries)
	}
	if isFile {
		if a.Files++; a.Files > a.rules.MaxFiles {
			return refuse(name, "more than %d files", a.rules.MaxFiles)
		}
	}
	if err := a.needParent(name); err != nil {
		return err
	}
	return a.note(name, true)
}

// needParent makes sure that an entry lies in a folder of the area.
func (a *Area) needParent(name string) error {
	dir := path.Dir(name)
	// Nothing in an area is replaced: what was a folder is one.
	if dir == "." || dir == a.parent || strings.HasPrefix(a.parent, dir+"/") {
		return nil
	}
	info, err := a.root.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !a.rules.Exact:
		if err := a.needParent(dir); err != nil {
			return err
		}
		if a.Entries++; a.Entries > a.rules.MaxEntries {
			return refuse(name, "more than %d entries", a.rules.MaxEntries)
		}
		if err := a.note(dir, false); err != nil {
			return err
		}
		if err := a.makeFolder(folder{dir, plainDir, time.Time{}}); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist):
		return refuse(name, "its folder does not stand before it")
	case err != nil:
		return entryError(name, err)
	case !info.IsDir():
		return refuse(name, "%q is no folder", dir)
	case a.names != nil && a.names[fold(dir)].name != dir:
		return refuse(name, "its folder differs from %q in case alone", a.names[fold(dir)].name)
	default:
		// Lstat follows symlinks in all but the last part.
		if err := a.needParent(dir); err != nil {
			return err
		}
	}
	a.parent = dir
	return nil
}

// note remembers a name, and refuses one that is there.
func (a *Area) note(name string, explicit bool) error {
	if a.names == nil {
		return nil // the file system says so
	}
	key := fold(name)
	switch old, ok := a.names[key]; {
	case ok && old.name != name:
		return refuse(name, "it differs from %q in case alone", old.name)
	case ok && (old.explicit || !explicit):
		return refuse(name, "a second entry of this name")
	}
	a.names[key] = named{name, explicit}
	return nil
}

// Folder adds a folder. A refusal is a [*Refused]; so it is for the other
// calls.
func (a *Area) Folder(name string, mode fs.FileMode, mtime time.Time) error {
	if !a.rules.Exact {
		mode = plainDir
	}
	if err := a.rules.CheckTime(name, mtime); err != nil {
		return err
	}
	if err := a.admit(name, false); err != nil {
		return err
	}
	if a.names != nil && !a.rules.Exact {
		// A file in it can have made it.
		if info, err := a.root.Lstat(name); err == nil && info.IsDir() {
			return nil
		}
	}
	return a.makeFolder(folder{name, mode & modeBits, mtime})
}

func (a *Area) makeFolder(f folder) error {
	if a.folderNames += len(f.name); a.folderNames > maxFolderNames {
		return refuse(f.name, "names of folders of more than %d bytes in all", maxFolderNames)
	}
	if err := a.root.Mkdir(f.name, privateDir); err != nil {
		return entryError(f.name, err)
	}
	a.folders = append(a.folders, f)
	return nil
}

// File adds a file of exactly size bytes, which are read from r.
func (a *Area) File(name string, size int64, mode fs.FileMode, mtime time.Time, r io.Reader) error {
	if err := a.rules.CheckTime(name, mtime); err != nil {
		return err
	}
	if err := a.admit(name, true); err != nil {
		return err
	}
	switch {
	case size < 0:
		return refuse(name, "a size of %d bytes", size)
	case size > a.rules.MaxFileBytes:
		return refuse(name, "%d bytes, more than the %d of a file", size, a.rules.MaxFileBytes)
	case size > a.rules.MaxBytes-a.Bytes:
		return refuse(name, "with its %d bytes the files have more than %d in all", size, a.rules.MaxBytes)
	}
	a.Bytes += size
	dir, base, err := a.place(name)
	if err != nil {
		return entryError(name, err)
	}
	f, err := dir.OpenFile(base, createNew(), privateFile)
	if err != nil {
		return entryError(name, err)
	}
	err = a.fill(f, name, size, r)
	if err == nil {
		err = f.Chmod(a.fileMode(mode))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if a.rules.Exact {
		return dir.Chtimes(base, mtime, mtime)
	}
	return nil
}

// createNew are the flags to make a file. That it does not block changes nothing
// for a file, but package os has not to ask and set it: that is four of eleven
// system calls for a small file.
func createNew() int {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if runtime.GOOS != "windows" {
		flags |= syscall.O_NONBLOCK
	}
	return flags
}

// place is the folder of an entry that was admitted, open, and the last part of
// the entry's name. The folder stays the area's.
func (a *Area) place(name string) (*os.Root, string, error) {
	dir, base := path.Split(name)
	if dir == "" {
		return a.root, base, nil
	}
	if dir = dir[:len(dir)-1]; a.open == nil || a.openName != dir {
		a.leave()
		// No part of it is a symlink: needParent has looked.
		open, err := a.root.OpenRoot(dir)
		if err != nil {
			return nil, "", err
		}
		a.open, a.openName = open, dir
	}
	return a.open, base, nil
}

// leave closes the folder of the last file: Windows moves and removes no folder
// that is open.
func (a *Area) leave() {
	if a.open != nil {
		a.open.Close()
		a.open = nil
	}
}

func (a *Area) fill(f *os.File, name string, size int64, r io.Reader) error {
	// One byte more shows a file that is longer than it says. The struct keeps
	// the copy to our buffer.
	n, err := io.CopyBuffer(struct{ io.Writer }{f}, io.LimitReader(r, size+1), a.buffer)
	switch {
	case err != nil:
		return entryError(name, err)
	case n != size:
		return refuse(name, "expected %d bytes, got %s", size, count(n, size))
	}
	return nil
}

func count(n, size int64) string {
	if n > size {
		return "more"
	}
	return fmt.Sprint(n)
}

func (a *Area) fileMode(mode fs.FileMode) fs.FileMode {
	switch {
	case a.rules.Exact:
		return mode & modeBits
	case mode&0o111 != 0:
		return plainProgram
	}
	return plainFile
}

// Symlink adds a symlink. Its time is not kept.
func (a *Area) Symlink(name, target string) error {
	if err := a.admit(name, true); err != nil {
		return err
	}
	if err := a.rules.CheckLink(name, target); err != nil {
		return err
	}
	return entryError(name, a.root.Symlink(target, name))
}

// entryError turns what the file system says of an entry into an error; nil
// stays nil.
func entryError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return refuse(name, "a second entry of this name")
	}
	return fmt.Errorf("entry %q: %w", name, err)
}
