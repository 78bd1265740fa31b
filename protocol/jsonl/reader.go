package jsonl

import (
	"bytes"
	"io"
)

const (
	// chunk is how many bytes are asked for in one read: what a Linux pipe
	// holds, so that a fast writer costs one call for all it has.
	chunk = 64 << 10
	// lineEnd is how many bytes a line has besides its content: \r\n.
	lineEnd = 2
	// maxEmptyReads is how often in a row a reader may return nothing and no
	// error.
	maxEmptyReads = 100
)

// Flag tells what is special about a line.
type Flag uint8

const (
	// TooLong is a line above the limit; its content is gone.
	TooLong Flag = 1 << iota
	// Unterminated is a last line without \n.
	Unterminated
)

// Line is where the content of a line stands in a batch, without its end.
type Line struct {
	Start, End int
	Flags      Flag
	// Number counts the lines of the stream from 1, skipped ones too.
	Number int64
}

// Batch is a piece of a stream that was read at once. The zero value is ready
// for use, and again and again.
type Batch struct {
	Buf   []byte
	Lines []Line
}

// Bytes is the content of a line of this batch; it is valid until the batch is
// read into again.
func (b *Batch) Bytes(l Line) []byte { return b.Buf[l.Start:l.End:l.End] }

// Option changes how a Reader reads: [SkipBOM], [KeepBlank].
type Option func(*Reader)

// SkipBOM is the option to skip one UTF-8 byte order mark at the very start of
// the input.
func SkipBOM(r *Reader) { r.mayHaveBOM = true }

// KeepBlank is the option to return blank lines too.
func KeepBlank(r *Reader) { r.keepBlank = true }

// Reader splits an input into lines of bounded length.
type Reader struct {
	in         io.Reader
	limit      int
	mayHaveBOM bool
	keepBlank  bool

	carry    []byte // of an unfinished line; has no \n
	dropping bool   // the rest of a line that is too long
	number   int64
	err      error // of the input, after what was read has been delivered

	own   Batch // of Next
	taken int   // lines of own that Next has returned
}

// NewReader returns a reader of lines of at most limit bytes of content.
func NewReader(in io.Reader, limit int, options ...Option) *Reader {
	r := &Reader{in: in, limit: limit}
	for _, o := range options {
		o(r)
	}
	return r
}

// ReadBatch reads once, or as often as it takes to have a line, and splits what
// came into lines. It blocks as the input does. At the end of the input it
// returns the lines that were left with a nil error, and the error of the input
// ([io.EOF] or another) from the next call on; a batch with an error has no
// lines.
func (r *Reader) ReadBatch(b *Batch) error {
	b.Lines = b.Lines[:0]
	b.Buf = append(b.Buf[:0], r.carry...)
	r.carry = r.carry[:0]
	if r.err != nil {
		return r.err
	}
	start, scanned := 0, len(b.Buf)
	for len(b.Lines) == 0 && r.err == nil {
		if start > 0 {
			// What stands before start was skipped, so no line refers to it.
			b.Buf = b.Buf[:copy(b.Buf, b.Buf[start:])]
			scanned -= start
			start = 0
		}
		r.fill(b)
		if r.mayHaveBOM {
			n, known := bomLength(b.Buf)
			if !known && r.err == nil {
				continue
			}
			r.mayHaveBOM = false
			start, scanned = n, n
		}
		start = r.split(b, start, scanned)
		scanned = len(b.Buf)
	}
	if r.err == nil {
		r.carry = append(r.carry, b.Buf[start:]...)
		return nil
	}
	r.last(b, start)
	if len(b.Lines) == 0 {
		return r.err
	}
	return nil
}

// fill appends what one read gives, and notes its error.
func (r *Reader) fill(b *Batch) {
	r.grow(b)
	for range maxEmptyReads {
		n, err := r.in.Read(b.Buf[len(b.Buf) : len(b.Buf)+chunk])
		b.Buf = b.Buf[:len(b.Buf)+n]
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// grow makes room for a chunk. A line that grows beyond what there is doubles
// the room, up to what the longest line needs.
func (r *Reader) grow(b *Batch) {
	need := len(b.Buf) + chunk
	if need <= cap(b.Buf) {
		return
	}
	room := max(need, min(2*cap(b.Buf), r.limit+lineEnd+chunk))
	b.Buf = append(make([]byte, 0, room), b.Buf...)
}

// split finds the lines in b.Buf[start:], of which the part before scanned has
// no \n, and returns where the unfinished line begins.
func (r *Reader) split(b *Batch, start, scanned int) int {
	for {
		n := bytes.IndexByte(b.Buf[scanned:], '\n')
		if n < 0 {
			break
		}
		end := scanned + n
		if r.dropping {
			r.dropping = false
		} else {
			r.add(b, start, end, 0)
		}
		start, scanned = end+1, end+1
	}
	if r.dropping {
		return len(b.Buf)
	}
	if contentLength(b.Buf[start:]) > r.limit {
		r.number++
		b.Lines = append(b.Lines, Line{Start: start, End: start, Flags: TooLong, Number: r.number})
		r.dropping = true
		return len(b.Buf)
	}
	return start
}

// add delivers the line b.Buf[start:end].
func (r *Reader) add(b *Batch, start, end int, flags Flag) {
	r.number++
	length := contentLength(b.Buf[start:end])
	l := Line{Start: start, End: start + length, Flags: flags, Number: r.number}
	switch {
	case length > r.limit:
		l.End, l.Flags = start, TooLong
	case !r.keepBlank && isBlank(b.Buf[start:l.End]):
		return
	}
	b.Lines = append(b.Lines, l)
}

// last delivers what stands after the last \n at the end of the input.
func (r *Reader) last(b *Batch, start int) {
	if start < len(b.Buf) {
		r.add(b, start, len(b.Buf), Unterminated)
	}
}

// contentLength is the length of a line, or of a piece of it, without a \r at
// its end.
func contentLength(line []byte) int {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return n - 1
	}
	return len(line)
}

func isBlank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// bomLength is the length of the byte order mark at the start of buf; known is
// false where more has to be read to tell.
func bomLength(buf []byte) (n int, known bool) {
	const bom = "\xef\xbb\xbf"
	switch {
	case len(buf) >= len(bom):
		if string(buf[:len(bom)]) == bom {
			return len(bom), true
		}
		return 0, true
	case string(buf) == bom[:len(buf)]:
		return 0, false
	}
	return 0, true
}

// Next returns the next line, which is valid until the next call. A line that
// is too long is nil with the flag [TooLong]. The error is that of the input
// after its last line. Do not mix it with ReadBatch.
func (r *Reader) Next() ([]byte, Flag, error) {
	if r.taken == len(r.own.Lines) {
		r.taken = 0
		if err := r.ReadBatch(&r.own); err != nil {
			return nil, 0, err
		}
	}
	l := r.own.Lines[r.taken]
	r.taken++
	if l.Flags&TooLong != 0 {
		return nil, l.Flags, nil
	}
	return r.own.Bytes(l), l.Flags, nil
}

// LineNumber is the number of the line that Next returned last, or, where
// ReadBatch is used, how many lines have been read so far.
func (r *Reader) LineNumber() int64 {
	if r.taken == 0 {
		return r.number
	}
	return r.own.Lines[r.taken-1].Number
}
