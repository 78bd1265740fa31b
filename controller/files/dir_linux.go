package files

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// fdDir is a folder by its descriptor. It is as safe as an os.Root, which does
// the same and more: every name is one part of a path and is opened relative to
// the descriptor with O_NOFOLLOW, so that no symlink is followed whoever puts
// one there, and a folder that is moved away meanwhile stays the one that was
// opened inside the root. What it saves is the os.File of each file: its
// registration with the poller, its path and its finalizer.
type fdDir int

// openDir opens a folder inside a root. The way down is that of the os.Root.
func openDir(root *os.Root, rel string) (dir, error) {
	// Also where it has become a FIFO meanwhile, which would be waited for.
	f, err := root.OpenFile(rel, openFolder|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return fdDir(f.Fd()).folder(".")
}

const (
	openFolder = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	openFile   = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_CLOEXEC
)

// again calls f until no signal has interrupted it.
func again(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); err != unix.EINTR {
			return n, err
		}
	}
}

func (d fdDir) close() { _ = unix.Close(int(d)) }

func (d fdDir) folder(name string) (dir, error) {
	fd, err := again(func() (int, error) { return unix.Openat(int(d), name, openFolder, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "openat", Path: name, Err: err}
	}
	return fdDir(fd), nil
}

func (d fdDir) read(name string, buf []byte, most int64) ([]byte, bool) {
	fd, err := again(func() (int, error) { return unix.Openat(int(d), name, openFile, 0) })
	if err != nil {
		return buf, false
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG || info.Size > most {
		return buf, false
	}
	return fill(buf, int(info.Size), func(b []byte) (int, error) {
		return again(func() (int, error) { return unix.Read(fd, b) })
	})
}

// listBuffer is how much of a folder is read at once, in bytes: most folders
// are one read, and the one that finds the end.
const listBuffer = 32 << 10

// list reads the folder from its begin; the descriptor is shared by nobody who
// lists it as well.
func (d fdDir) list(l *lister) ([]entry, error) {
	if l.buf == nil {
		l.buf = make([]byte, listBuffer)
	}
	l.entries = l.entries[:0]
	for {
		n, err := again(func() (int, error) { return unix.Getdents(int(d), l.buf) })
		if err != nil || n <= 0 {
			return l.entries, err
		}
		d.parse(l, l.buf[:n])
	}
}

// Places in a record of getdents64(2): two numbers of 8 bytes, the length of
// the record, the type, and the name, which a NUL ends.
const (
	recordLength = 16
	recordType   = 18
	recordName   = 19
)

// parse takes records apart. The names share one string.
func (d fdDir) parse(l *lister, records []byte) {
	text := string(records)
	for at := 0; at+recordName < len(text); {
		size := int(binary.NativeEndian.Uint16(records[at+recordLength:]))
		end := at + recordName
		for end < at+size && text[end] != 0 {
			end++
		}
		if name := text[at+recordName : end]; name != "." && name != ".." {
			l.entries = append(l.entries, entry{name, d.kind(name, text[at+recordType])})
		}
		at += size
	}
}

func (d fdDir) kind(name string, told byte) entryKind {
	switch told {
	case unix.DT_REG:
		return fileEntry
	case unix.DT_DIR:
		return folderEntry
	case unix.DT_UNKNOWN: // some file systems do not tell
	default:
		return otherEntry
	}
	var info unix.Stat_t
	if unix.Fstatat(int(d), name, &info, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return otherEntry
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return fileEntry
	case unix.S_IFDIR:
		return folderEntry
	}
	return otherEntry
}
