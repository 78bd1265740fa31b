package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// dir is an open folder of a search. Names are those that list has given: one
// part of a path. None of its calls follows a symlink out of the folder, waits
// for a FIFO, or reads what is no regular file, also where a name is exchanged
// after it was listed (but see [openRootDir]). It is safe for use by many
// goroutines.
type dir interface {
	// list gives what is in the folder, in no order. The lister is the
	// caller's; what was listed stays valid.
	list(l *lister) ([]entry, error)
	// folder opens a folder in it.
	folder(name string) (dir, error)
	// read reads a whole regular file of at most so many bytes into buf, which
	// grows where it has to; ok is false where there is none.
	read(name string, buf []byte, most int64) (text []byte, ok bool)
	close()
}

// entry is what a folder has under a name.
type entry struct {
	name string
	kind entryKind
}

type entryKind uint8

const (
	otherEntry entryKind = iota
	fileEntry
	folderEntry
)

func kindOf(mode fs.FileMode) entryKind {
	switch {
	case mode.IsRegular():
		return fileEntry
	case mode.IsDir():
		return folderEntry
	}
	return otherEntry
}

// lister has the buffers of one goroutine that lists folders.
type lister struct {
	buf     []byte
	entries []entry
}

// startBuffer is the least buffer that files are read into, in bytes.
const startBuffer = 64 << 10

// rootDir is a folder as package os has it, for every system.
type rootDir struct{ root *os.Root }

// openRootDir opens a folder inside a root. Unlike all else here it waits where
// the folder was exchanged for a FIFO after it was listed: an os.Root cannot be
// told not to. On Linux nothing waits (dir_linux.go).
func openRootDir(root *os.Root, rel string) (dir, error) {
	sub, err := root.OpenRoot(rel)
	if err != nil {
		return nil, err
	}
	return rootDir{sub}, nil
}

func (d rootDir) close() { d.root.Close() }

func (d rootDir) folder(name string) (dir, error) { return openRootDir(d.root, name) }

func (d rootDir) list(l *lister) ([]entry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := f.ReadDir(-1)
	l.entries = l.entries[:0]
	for _, e := range found {
		l.entries = append(l.entries, entry{e.Name(), kindOf(e.Type())})
	}
	return l.entries, err
}

func (d rootDir) read(name string, buf []byte, most int64) ([]byte, bool) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return buf, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return buf, false
	}
	return fill(buf, int(info.Size()), f.Read)
}

// fill reads so many bytes, or less where the file has become shorter; what is
// added to it meanwhile is not read.
func fill(buf []byte, size int, read func([]byte) (int, error)) ([]byte, bool) {
	if cap(buf) < size {
		buf = make([]byte, max(size, startBuffer))
	}
	n := 0
	for n < size {
		m, err := read(buf[n:size])
		n += max(m, 0)
		if errors.Is(err, io.EOF) || err == nil && m == 0 {
			break
		}
		if err != nil {
			return buf, false
		}
	}
	return buf[:n], true
}
