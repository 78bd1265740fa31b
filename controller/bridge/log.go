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
	// maxDoublings bounds how much a file grows between compactions that fail:
	// compactAbove, doubled so often.
	maxDoublings = 4
	// rewritten is put behind the path of a file for the one that replaces it.
	rewritten = ".new"
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

	// failures counts compactions that failed, one after the other; at the last
	// one the file had failedSize bytes, of which failedLive were needed.
	failures               int
	failedSize, failedLive int64
}

// openFile opens a journal and gives each line that is there to fn. The line is
// valid until fn returns.
func openFile(path string, fn func(line []byte, at span) error) (*file, error) {
	f := &file{path: path}
	_ = os.Remove(path + rewritten) // of a crash; it would only take room
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

// compact rewrites the file where less than half of it is still needed, live in
// bytes. Write appends what is needed to the next file, and moved is called once
// that has taken the place of this one. It only saves room: where it fails, such
// as on a full disk, all is as it was, and it is tried again when that needs half
// as much room, or when the file has grown: by more from one failure to the next.
func (f *file) compact(live int64, write func(next *file) error, moved func()) {
	if !f.due(live) {
		return
	}
	if replaced := f.rewrite(write); !replaced {
		f.failures++
		f.failedSize, f.failedLive = f.size, live
		return
	}
	f.failures = 0
	moved()
}

// due tells whether a compaction is worth its while.
func (f *file) due(live int64) bool {
	switch {
	case f.size < compactAbove || f.size < 2*live:
		return false
	case f.failures == 0 || live < f.failedLive && live <= f.failedLive/2:
		return true
	}
	return f.size-f.failedSize >= compactAbove<<min(f.failures-1, maxDoublings)
}

// rewrite replaces the whole file by the lines that write appends, and tells
// whether it has; a crash leaves either the old or the new one. The new one that
// cannot be opened is tried again by append.
func (f *file) rewrite(write func(next *file) error) bool {
	next := &file{path: f.path + rewritten}
	if err := os.Remove(next.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err := next.open(); err != nil {
		return false
	}
	err := write(next)
	if err == nil {
		err = next.j.Sync()
	}
	next.close()
	if err == nil {
		f.close() // not every platform renames over an open file
		if err = os.Rename(next.path, f.path); err == nil {
			syncDir(filepath.Dir(f.path))
		}
		_ = f.open() // else the next append fails, and tries again
	}
	if err != nil {
		_ = os.Remove(next.path) // it takes the room of the next frame
	}
	return err == nil
}

// syncDir makes a rename outlive a power failure where the platform can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // not every platform can sync a folder
		d.Close()
	}
}
