package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"prp/protocol/jsonl"
)

// fileMode lets only the owner read a journal: it holds what an agent and its
// user said.
const fileMode = 0o600

// searchStep is how many bytes are read at a time in search of the last
// newline.
const searchStep = 64 << 10

// file is what a Journal needs of an *os.File; a test puts a full disk in its
// place.
type file interface {
	io.Writer
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// Journal is a journal that is open for appending.
type Journal struct {
	f    file
	size int64 // of the whole lines
	cut  int64
	err  error
}

// Open opens the journal at path, or makes it, readable by its owner only. A
// torn last line is cut off; [Journal.Repaired] tells how long it was. It
// refuses what is not a regular file, without opening it.
func Open(path string) (*Journal, error) {
	// A FIFO would block in open; the check after it is the one that counts.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(path, info)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	j := &Journal{f: f}
	if err := j.repair(f, path); err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

func notRegular(path string, info os.FileInfo) error {
	return fmt.Errorf("expected a regular file as the journal %q, got %s", path, info.Mode().Type())
}

// repair cuts off what stands after the last newline.
func (j *Journal) repair(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notRegular(path, info)
	}
	if j.size, err = wholeLines(f, info.Size()); err != nil {
		return fmt.Errorf("cannot read the journal %q: %w", path, err)
	}
	if j.cut = info.Size() - j.size; j.cut == 0 {
		return nil
	}
	if err := f.Truncate(j.size); err != nil {
		return fmt.Errorf("cannot cut the torn last line of the journal %q: %w", path, err)
	}
	return nil
}

// wholeLines is the size of a file up to and with its last newline.
func wholeLines(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(size, searchStep))
	for end := size; end > 0; {
		from := max(end-searchStep, 0)
		part := buf[:end-from]
		if n, err := f.ReadAt(part, from); n < len(part) {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// Repaired is how many bytes of a torn last line Open has cut off.
func (j *Journal) Repaired() int64 { return j.cut }

// Append writes whole lines, each with its newline, after what is there, in one
// write. It returns when the operating system has them: they outlive this
// process, though not a power failure, for which there is Sync. Where the write
// fails or is short, the file is cut back to what it was, and the error is
// returned again from every later call. Text that does not end with a newline
// is refused and nothing is written.
func (j *Journal) Append(lines []byte) error {
	if j.err != nil || len(lines) == 0 {
		return j.err
	}
	if lines[len(lines)-1] != '\n' {
		return errors.New("expected whole lines for the journal, got a last one without a newline")
	}
	n, err := j.f.Write(lines)
	if err == nil {
		j.size += int64(n)
		return nil
	}
	j.err = fmt.Errorf("cannot append to the journal: %w", err)
	if n > 0 {
		if err := j.f.Truncate(j.size); err != nil {
			j.err = errors.Join(j.err, fmt.Errorf("cannot cut the torn line off: %w", err))
		}
	}
	return j.err
}

// Sync waits until the lines are on the disk.
func (j *Journal) Sync() error { return j.f.Sync() }

// Close closes the file. It does not sync.
func (j *Journal) Close() error { return j.f.Close() }

// Read calls fn with each line of the journal at path and its number, from 1.
// The line is valid until fn returns. A line of more than limit bytes, and a
// torn last one, is an error that names it; what came before has been given to
// fn by then. An error of fn ends the reading and is returned as it is. The
// journal may be open for appending meanwhile.
func Read(path string, limit int, fn func(number int64, line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := jsonl.NewReader(f, limit)
	for {
		line, flags, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case flags&jsonl.TooLong != 0:
			return fmt.Errorf("line %d: expected at most %d bytes, got more", r.LineNumber(), limit)
		case flags&jsonl.Unterminated != 0:
			return &TornError{Line: r.LineNumber(), Bytes: len(line)}
		}
		if err := fn(r.LineNumber(), line); err != nil {
			return err
		}
	}
}

// TornError is a last line without an end.
type TornError struct {
	Line  int64
	Bytes int
}

// Error implements error.
func (e *TornError) Error() string {
	return fmt.Sprintf("line %d: expected a newline at the end, got a torn line of %d bytes", e.Line, e.Bytes)
}
