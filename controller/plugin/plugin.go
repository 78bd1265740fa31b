package plugin

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"prp/controller/unpack"
)

// Limits of a plugin (workerclient.md row 9).
const (
	MaxFiles     = 2000
	MaxFileBytes = 16 << 20
	MaxBytes     = 64 << 20
	MaxPacked    = 32 << 20
)

const (
	// maxEntries leaves room for a folder for each file.
	maxEntries = 2 * MaxFiles
	// maxDepth is that of workspaces (row 11).
	maxDepth = 64
)

// ErrDigest is an archive that is not the pinned one.
var ErrDigest = errors.New("the plugin's archive is not the pinned one")

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// CheckDigest says what is wrong with the form of a pin's digest: nil for
// "sha256:" and 64 digits.
func CheckDigest(digest string) error {
	if !digestForm.MatchString(digest) {
		return fmt.Errorf("expected a digest of \"sha256:\" and 64 digits 0-9 and a-f, got %q", digest)
	}
	return nil
}

// Summary says what was unpacked.
type Summary struct {
	Files int64
	// Bytes are the contents of the files, Packed the archive.
	Bytes, Packed int64
}

// Install reads an archive from r to its end, checks it against the digest and
// unpacks it as the folder dir, which must not exist or be empty. It blocks
// until that is done, and looks at ctx between two reads. Where it returns an
// error dir is as it was: [ErrDigest] for other bytes than the pinned, an
// [*unpack.Refused] for what a plugin may not have.
func Install(ctx context.Context, r io.Reader, digest, dir string) (Summary, error) {
	packed, err := read(ctx, r, digest)
	if err != nil {
		return Summary{}, fmt.Errorf("plugin: %w", err)
	}
	area, err := unpack.Open(dir, unpack.Rules{
		MaxBytes: MaxBytes, MaxFileBytes: MaxFileBytes, MaxFiles: MaxFiles, MaxEntries: maxEntries,
		MaxDepth: maxDepth, Portable: true,
	})
	if err != nil {
		return Summary{}, fmt.Errorf("plugin: %w", err)
	}
	err = fill(ctx, area, packed)
	if err == nil && area.Files == 0 {
		err = &unpack.Refused{Why: "it has no files"}
	}
	if err == nil {
		err = area.Commit()
	}
	if err != nil {
		return Summary{}, fmt.Errorf("plugin: %w", errors.Join(err, area.Discard()))
	}
	return Summary{Files: area.Files, Bytes: area.Bytes, Packed: int64(len(packed))}, nil
}

// read is the whole archive, checked against the pin.
func read(ctx context.Context, r io.Reader, digest string) ([]byte, error) {
	if err := CheckDigest(digest); err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	if _, err := io.Copy(&packed, io.LimitReader(heeding{ctx, r}, MaxPacked+1)); err != nil {
		return nil, err
	}
	if packed.Len() > MaxPacked {
		return nil, &unpack.Refused{Why: fmt.Sprintf("it has more than %d bytes", MaxPacked)}
	}
	if sum := sha256.Sum256(packed.Bytes()); "sha256:"+hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%w: expected %s, got sha256:%x", ErrDigest, digest, sum)
	}
	return packed.Bytes(), nil
}

// First bytes of the formats.
var (
	gzipMagic     = []byte{0x1f, 0x8b}
	zipMagic      = []byte("PK\x03\x04")
	emptyZipMagic = []byte("PK\x05\x06")
)

func fill(ctx context.Context, area *unpack.Area, packed []byte) error {
	switch {
	case bytes.HasPrefix(packed, gzipMagic):
		return fillTar(ctx, area, packed)
	case bytes.HasPrefix(packed, zipMagic), bytes.HasPrefix(packed, emptyZipMagic):
		return fillZip(ctx, area, packed)
	}
	return &unpack.Refused{Why: fmt.Sprintf("expected a .tar.gz or a .zip, got bytes that begin with %q", packed[:min(len(packed), 8)])}
}

func fillTar(ctx context.Context, area *unpack.Area, packed []byte) error {
	in := bytes.NewReader(packed)
	z, err := gzip.NewReader(in)
	if err != nil {
		return broken(err)
	}
	z.Multistream(false)
	if err := area.Tar(ctx, z); err != nil {
		return broken(err)
	}
	if in.Len() > 0 {
		return &unpack.Refused{Why: fmt.Sprintf("there are %d bytes behind its end", in.Len())}
	}
	return nil
}

func fillZip(ctx context.Context, area *unpack.Area, packed []byte) error {
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return broken(err)
	}
	for _, f := range z.File {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := addZip(ctx, area, f); err != nil {
			return broken(err)
		}
	}
	return nil
}

// encrypted is the flag of an entry that needs a password.
const encrypted = 1

func addZip(ctx context.Context, area *unpack.Area, f *zip.File) error {
	mode := f.Mode()
	switch {
	case f.Flags&encrypted != 0:
		return &unpack.Refused{Name: f.Name, Why: "it is encrypted"}
	// A name with a slash at its end makes a folder of whatever it is.
	case mode.Type()&^fs.ModeDir != 0:
		return &unpack.Refused{Name: f.Name, Why: fmt.Sprintf("a plugin has files and folders, not %s", mode.Type()&^fs.ModeDir)}
	case mode.IsDir():
		return area.Folder(strings.TrimSuffix(f.Name, "/"), mode, time.Time{})
	case f.UncompressedSize64 > MaxBytes:
		return &unpack.Refused{Name: f.Name, Why: fmt.Sprintf("more than the %d bytes of a file", MaxFileBytes)}
	}
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	return area.File(f.Name, int64(f.UncompressedSize64), mode&fs.ModePerm, time.Time{}, heeding{ctx, content})
}

// broken says of what the libraries find that the archive is at fault.
func broken(err error) error {
	for _, known := range []error{
		gzip.ErrHeader, gzip.ErrChecksum, zip.ErrFormat, zip.ErrChecksum, zip.ErrAlgorithm,
		io.ErrUnexpectedEOF, io.EOF,
	} {
		if errors.Is(err, known) {
			return &unpack.Refused{Why: fmt.Sprintf("it is broken: %v", err)}
		}
	}
	return err
}

// heeding ends a read when its context does.
type heeding struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (h heeding) Read(p []byte) (int, error) {
	if h.ctx.Err() != nil {
		return 0, context.Cause(h.ctx)
	}
	return h.r.Read(p)
}
