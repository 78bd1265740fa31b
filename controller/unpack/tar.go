package unpack

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// maxHeader bounds what stands in front of the content of an entry and
	// behind it: extended headers with a name and a target of maxName each,
	// some attributes, and padding; in bytes. It bounds a stream of headers
	// that never comes to an entry.
	maxHeader = 64 << 10
	// maxPadding bounds the zeros behind the end of an archive: tar fills its
	// last record of 20 blocks of 512 bytes.
	maxPadding = 20 * 512
)

// Tar adds every entry of a tar stream, and reads the stream to its end. ctx is
// heeded between two reads. Folders, files and symlinks are entries; the rest
// is refused, and so is what stands behind the end of the archive. Owners and
// extended attributes are passed over.
func (a *Area) Tar(ctx context.Context, r io.Reader) error {
	in := &bounded{ctx: ctx, r: r, left: maxHeader}
	archive := tar.NewReader(in)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return in.padding()
		}
		if err != nil {
			return tarError(err)
		}
		in.left = maxHeader
		if h.Typeflag == tar.TypeReg && h.Size > 0 {
			// A size over the limit is refused before it is read.
			in.left += min(h.Size, a.rules.MaxFileBytes)
		}
		if err := a.entry(h, archive); err != nil {
			return tarError(err)
		}
		in.left = maxHeader
	}
}

// entry adds one entry of a tar archive.
func (a *Area) entry(h *tar.Header, content io.Reader) error {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return refuse(h.Name, "sparse entries are not allowed")
		}
	}
	mode := h.FileInfo().Mode()
	switch h.Typeflag {
	case tar.TypeReg:
		return a.File(h.Name, h.Size, mode, h.ModTime, content)
	case tar.TypeDir:
		return a.Folder(strings.TrimSuffix(h.Name, "/"), mode, h.ModTime)
	case tar.TypeSymlink:
		return a.Symlink(h.Name, h.Linkname)
	case tar.TypeXGlobalHeader:
		return a.passOver(h.Name)
	case tar.TypeLink:
		return refuse(h.Name, "hard links are not allowed")
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return refuse(h.Name, "devices and pipes are not allowed")
	}
	return refuse(h.Name, "entries of type %q are not allowed", h.Typeflag)
}

// passOver counts a header for all entries that follow: git writes one with a
// comment. Nothing in it counts.
func (a *Area) passOver(name string) error {
	if a.rules.Exact {
		return refuse(name, "headers for all entries are not allowed")
	}
	if a.Entries++; a.Entries > a.rules.MaxEntries {
		return refuse(name, "more than %d entries", a.rules.MaxEntries)
	}
	return nil
}

// tarError says of what the library finds that the archive is at fault, and
// leaves other errors alone.
func tarError(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse("", "it is no tar archive, or it is cut: %v", err)
	}
	return err
}

// bounded reads what may be read until the next entry.
type bounded struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	if b.left <= 0 {
		return 0, refuse("", "headers of more than %d bytes for one entry", maxHeader)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// padding reads the zeros behind the end.
func (b *bounded) padding() error {
	b.left = maxPadding + 1
	rest, err := io.ReadAll(io.LimitReader(b, maxPadding+1))
	if err != nil {
		return fmt.Errorf("read behind the end of the archive: %w", err)
	}
	if len(rest) > maxPadding || strings.Trim(string(rest), "\x00") != "" {
		return refuse("", "there is something behind its end")
	}
	return nil
}
