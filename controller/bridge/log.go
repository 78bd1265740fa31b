package bridge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"prp/protocol/journal"
)

const (
	// maxRecord bounds a line of our files, in bytes: a frame of 1 MiB, which
	// may have grown by its wrapper.
	maxRecord = 4 << 20
	// compactAbove is the size in bytes from which a file is rewritten once
	// most of it is history.
	compactAbove = 4 << 20
)

// span is where a line stands in a file.
type span struct {
	at   int64
	size int
}

// file is a journal whose lines can be read again.
type file struct {
	path string
	j    *journal.Journal
	r    *os.File
	size int64
}

// openFile opens a journal and gives each line that is there to fn. The line is
// valid until fn returns.
func openFile(path string, fn func(line []byte, at span) error) (*file, error) {
	f := &file{path: path}
	if err := f.open(); err != nil {
		return nil, err
	}
	var at int64
	err := journal.Read(path, maxRecord, func(number int64, line []byte) error {
		s := span{at: at, size: len(line)}
		at += int64(len(line)) + 1
		if err := fn(line, s); err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
		return nil
	})
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// open replaces the handles. Where it fails the old, closed ones stay, so that
// later calls fail as well until one succeeds.
func (f *file) open() error {
	j, err := journal.Open(f.path)
	if err != nil {
		return err
	}
	r, err := os.Open(f.path)
	if err != nil {
		j.Close()
		return err
	}
	info, err := r.Stat()
	if err != nil {
		j.Close()
		r.Close()
		return err
	}
	f.j, f.r, f.size = j, r, info.Size()
	return nil
}

func (f *file) close() {
	f.j.Close()
	f.r.Close()
}

// append writes one line, which has no newline. After a failure, such as a full
// disk, the next call tries with the file opened anew.
func (f *file) append(line []byte) (span, error) {
	s := span{at: f.size, size: len(line)}
	if err := f.j.Append(append(line, '\n')); err != nil {
		f.close()
		return span{}, errors.Join(err, f.open())
	}
	f.size += int64(s.size) + 1
	return s, nil
}

func (f *file) read(s span) ([]byte, error) {
	b := make([]byte, s.size)
	_, err := f.r.ReadAt(b, s.at)
	return b, err
}

// rewrite replaces the whole file by the lines that write appends; a crash
// leaves either the old or the new one.
func (f *file) rewrite(write func(next *file) error) error {
	next := &file{path: f.path + ".new"}
	if err := os.Remove(next.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := next.open(); err != nil {
		return err
	}
	err := write(next)
	if err == nil {
		err = next.j.Sync()
	}
	next.close()
	if err != nil {
		return err
	}
	f.close()
	if err := os.Rename(next.path, f.path); err != nil {
		return errors.Join(err, f.open())
	}
	syncDir(filepath.Dir(f.path))
	return f.open()
}

// syncDir makes a rename outlive a power failure where the platform can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // not every platform can sync a folder
		d.Close()
	}
}
