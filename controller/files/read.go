package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math"
	"unicode/utf8"
)

// MaxRead bounds what one call reads, in bytes (worker.md row 11).
const MaxRead = 1 << 20

// Encodings of content.
const (
	UTF8   = "utf-8"
	Base64 = "base64"
)

// copySize is how much is read at once, in bytes.
const copySize = 256 << 10

// ReadRequest asks for a part of a file.
type ReadRequest struct {
	Path string `json:"path"`
	// Offset is where to begin and Limit how much to read, in bytes; 0 is
	// [MaxRead].
	Offset int64 `json:"offset,omitempty"`
	Limit  int64 `json:"limit,omitempty"`
	// Encoding forces base64; else text is utf-8 and all else base64.
	Encoding string `json:"encoding,omitempty"`
}

// ReadResult is a part of a file. Size and SHA256 are the whole file's.
type ReadResult struct {
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
	Offset   int64  `json:"offset"`
	// Bytes is the length of the part before it was encoded. Where the file
	// goes on, NextOffset is where.
	Bytes      int64  `json:"bytes"`
	NextOffset *int64 `json:"next_offset,omitempty"`
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256"`
	// Changed tells that the file was written to while it was read.
	Changed bool `json:"changed,omitempty"`
}

// Mask hides secrets in a part of a text. A secret that lies only partly in it
// is hidden as well; else it could be read piece by piece.
type Mask struct {
	// Whole returns b without secrets, b itself where there are none.
	Whole func(b []byte) []byte
	// Edge is how many bytes around the part have to be known.
	Edge int
	// Part returns b[from:to] without secrets; b has the edges, as far as
	// there is a text.
	Part func(b []byte, from, to int) []byte
	// Shown is what stands for a secret.
	Shown string
}

// Read reads a part of a file. Most bounds what the content may take as a JSON
// string once it is masked, in bytes; less is read where it would take more. The
// mask may be nil.
// The error is an [*Error] or the cause of ctx.
func (s *Space) Read(ctx context.Context, r ReadRequest, most int, mask *Mask) (*ReadResult, error) {
	switch {
	case r.Offset < 0:
		return nil, badField("offset", "expected a number from 0, got %d", r.Offset)
	case r.Limit < 0 || r.Limit > MaxRead:
		return nil, badField("limit", "expected a number from 0 to %d, got %d", MaxRead, r.Limit)
	case r.Encoding != "" && r.Encoding != UTF8 && r.Encoding != Base64:
		return nil, badField("encoding", "expected %q or %q, got %q", UTF8, Base64, r.Encoding)
	case r.Limit == 0:
		r.Limit = MaxRead
	}
	p, err := s.find(r.Path)
	if err != nil {
		return nil, err
	}
	f, before, err := p.openFile()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	edge := int64(0)
	if mask != nil {
		edge = int64(mask.Edge)
	}
	offset := min(r.Offset, math.MaxInt64-r.Limit-edge) // no file is as long
	start := max(offset-edge, 0)
	part := &window{from: start, to: offset + r.Limit + edge}
	sum := sha256.New()
	if err := scan(ctx, f, sum, part); err != nil {
		return nil, fromRead(p.path, err)
	}
	result := &ReadResult{Offset: r.Offset, Size: part.at, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if after, err := f.Stat(); err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		result.Changed = true
	}
	from := min(offset-start, int64(len(part.buf)))
	to := min(from+r.Limit, int64(len(part.buf)))
	result.fill(part.buf, int(from), int(to), r.Encoding, most, mask)
	return result, nil
}

func fromRead(path string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fromOS(path, err)
}

// window keeps the part of a stream that lies between two offsets.
type window struct {
	from, to, at int64
	buf          []byte
}

// Write implements io.Writer.
func (w *window) Write(b []byte) (int, error) {
	low, high := max(w.from-w.at, 0), min(w.to-w.at, int64(len(b)))
	if low < high {
		w.buf = append(w.buf, b[low:high]...)
	}
	w.at += int64(len(b))
	return len(b), nil
}

// scan reads all of a file, as long as ctx lets it.
func scan(ctx context.Context, f io.Reader, sum hash.Hash, to io.Writer) error {
	buf := make([]byte, copySize)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		_, _ = to.Write(buf[:n]) // never fails
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fill puts the part of b into the result in its encoding. A text is cut at a
// character. Of a part that does not fit once it is masked less is taken.
func (r *ReadResult) fill(b []byte, from, to int, encoding string, most int, mask *Mask) {
	part := b[from:to]
	text := encoding != Base64 && isText(part)
	n := min(len(part), most/4*3)
	if text {
		n = textLength(WholeText(part), most)
	}
	for {
		r.show(b, from, from+n, text, mask)
		fits := textLength([]byte(r.Content), most)
		if fits == len(r.Content) || n <= 1 {
			break
		}
		n = min(n-1, int(int64(n)*int64(fits)/int64(len(r.Content))))
		if text {
			n = len(WholeText(part[:n]))
		}
	}
	r.Bytes = int64(n)
	if end := r.Offset + r.Bytes; end < r.Size {
		r.NextOffset = &end
	}
}

// show sets the content to a part of b without secrets.
func (r *ReadResult) show(b []byte, from, to int, text bool, mask *Mask) {
	part := b[from:to]
	if mask != nil {
		part = mask.Part(b, from, to)
	}
	if r.Encoding, r.Content = UTF8, string(part); !text {
		r.Encoding, r.Content = Base64, base64.StdEncoding.EncodeToString(part)
	}
}

// isText tells UTF-8 without a NUL, but for a character that is cut at the end.
func isText(b []byte) bool {
	return utf8.Valid(WholeText(b)) && bytes.IndexByte(b, 0) < 0
}

// WholeText is b without the beginning of a character at its end, unless that is
// all that there is.
func WholeText(b []byte) []byte {
	for cut := 1; cut < utf8.UTFMax && cut < len(b); cut++ {
		if c := b[len(b)-cut]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-cut:]) {
				return b[:len(b)-cut]
			}
			break
		}
	}
	return b
}

// textLength is how much of a text takes at most so many bytes as a JSON
// string, in whole characters.
func textLength(b []byte, most int) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		cost := n
		switch {
		case r == '"' || r == '\\':
			cost = 2
		case r < ' ', r == 0x7f, r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
			cost = 6
		}
		if most -= cost; most < 0 {
			return i
		}
		i += n
	}
	return len(b)
}
