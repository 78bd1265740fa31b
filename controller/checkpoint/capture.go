package checkpoint

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"prp/controller/unpack"
)

// Format is the name of the format on the wire.
const Format = "tar.zst.v1"

// Limits of a checkpoint (workerclient.md row 11).
const (
	// MaxBytes bounds the contents of all files, in bytes, and the payload.
	MaxBytes = 4 << 30
	// MaxEntries bounds files, symlinks and folders.
	MaxEntries = 500_000
	// MaxDepth bounds the parts of a name.
	MaxDepth = 64
)

const (
	// window is how far back the compressor looks, in bytes: as far as zstd does at
	// its usual level. Four times of it cost a quarter more time and twice the
	// memory, for less than a hundredth of the bytes of source code.
	window = 2 << 20
	// maxWindow is the largest window of other compressors at their usual
	// levels that is taken, in bytes.
	maxWindow = 64 << 20
	// listed is how many names of a folder are read at once.
	listed = 1024
	// chunk is how much of a file is in memory, in bytes.
	chunk = 256 << 10
)

// rules are those of [Limits] for package unpack.
func rules(l Limits) unpack.Rules {
	return unpack.Rules{
		MaxBytes: l.MaxBytes, MaxFileBytes: l.MaxBytes, MaxFiles: l.MaxEntries, MaxEntries: l.MaxEntries,
		MaxDepth: l.MaxDepth, Symlinks: true, Exact: true,
	}
}

// Limits bound a checkpoint. A member of 0 is the limit of the format.
type Limits struct {
	MaxBytes, MaxEntries int64
	MaxDepth             int
}

func (l Limits) filled() Limits {
	return Limits{
		MaxBytes: cmp.Or(l.MaxBytes, MaxBytes), MaxEntries: cmp.Or(l.MaxEntries, MaxEntries),
		MaxDepth: cmp.Or(l.MaxDepth, MaxDepth),
	}
}

// Payload is what is said of a checkpoint's bytes.
type Payload struct {
	Format string
	// SHA256 is the hash of the stored bytes, 64 digits of lower case.
	SHA256 string
	// SizeBytes are the stored bytes.
	SizeBytes int64
	// UncompressedBytes are the contents of the files, without headers.
	UncompressedBytes int64
	// EntryCount counts files, symlinks and folders.
	EntryCount int64
}

// Capture writes the checkpoint of a folder to w. It blocks until the folder is
// read and looks at ctx between two files and two pieces of one. Where it
// returns an error, w has a part that is worth nothing; an entry that cannot be
// stored is an [*unpack.Refused].
func Capture(ctx context.Context, dir string, w io.Writer) (Payload, error) {
	return Limits{}.Capture(ctx, dir, w)
}

// Capture is the function of this name with other limits.
func (l Limits) Capture(ctx context.Context, dir string, w io.Writer) (Payload, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Payload{}, fmt.Errorf("capture: %w", err)
	}
	defer root.Close()
	out := &meter{w: w, hash: sha256.New()}
	z, err := newWriter(out)
	if err != nil {
		return Payload{}, err
	}
	c := &capture{ctx: ctx, limits: l.filled(), tar: tar.NewWriter(z), buffer: make([]byte, chunk)}
	c.rules = rules(c.limits)
	err = c.folder(root, "")
	if err == nil {
		err = c.tar.Close()
	}
	// Close ends the compressor's frame, and gives its memory back.
	if err = errors.Join(err, z.Close()); err != nil {
		return Payload{}, fmt.Errorf("capture: %w", err)
	}
	return Payload{
		Format: Format, SHA256: hex.EncodeToString(out.hash.Sum(nil)), SizeBytes: out.n,
		UncompressedBytes: c.bytes, EntryCount: c.entries,
	}, nil
}

// newWriter is the compressor. Each option that has a part in the bytes stands
// here, so that no default changes them. With a concurrency of 2 it looks for
// matches while files are read and the block before is coded and written, in
// the same order and with the same bytes as one thread; blocks that are
// independent of each other would be other bytes, and much more memory.
func newWriter(w io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(window),
		zstd.WithEncoderConcurrency(2), zstd.WithConcurrentBlocks(false), zstd.WithEncoderCRC(true),
		zstd.WithAllLitEntropyCompression(true), zstd.WithNoEntropyCompression(false),
		zstd.WithLowerEncoderMem(false), zstd.WithZeroFrames(true))
}

// meter counts and hashes what is stored.
type meter struct {
	w    io.Writer
	hash hash.Hash
	n    int64
}

// Write implements io.Writer.
func (m *meter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	m.hash.Write(p[:n])
	m.n += int64(n)
	if err == nil && m.n > MaxBytes {
		err = fmt.Errorf("the payload has more than %d bytes", int64(MaxBytes))
	}
	return n, err
}

// capture is one call of Capture.
type capture struct {
	ctx            context.Context
	limits         Limits
	rules          unpack.Rules
	tar            *tar.Writer
	buffer         []byte
	bytes, entries int64
	// waiting counts the names that are listed and not stored yet.
	waiting int64
}

// folder stores what is in a folder. prefix is its name with a slash, or empty.
// The contents of "a" have names that begin with "a/": "a-b" and "a.c" come
// before them, so that folders wait until a name comes that is behind.
func (c *capture) folder(root *os.Root, prefix string) error {
	names, err := c.list(root, prefix)
	if err != nil {
		return err
	}
	// The last one is the first to be done: what comes before the contents of
	// one that waits has its name as a beginning.
	var waiting []string
	behind := func(name string) error {
		for n := len(waiting) - 1; n >= 0 && (name == "" || waiting[n] < name); n-- {
			key := waiting[n]
			waiting = waiting[:n]
			if err := c.down(root, prefix, key); err != nil {
				return err
			}
		}
		return nil
	}
	for _, name := range names {
		if err := behind(name); err != nil {
			return err
		}
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		isFolder, err := c.entry(root, prefix, name)
		if err != nil {
			return err
		}
		if isFolder {
			waiting = append(waiting, name+"/")
		}
	}
	return behind("")
}

// list reads the names in a folder and orders them by their bytes. It asks for
// no more than names: package os would look at each entry for the rest.
func (c *capture) list(root *os.Root, prefix string) ([]string, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, named(prefix, err)
	}
	defer f.Close()
	var names []string
	for {
		batch, err := f.Readdirnames(listed)
		names = append(names, batch...)
		if c.waiting += int64(len(batch)); c.entries+c.waiting > c.limits.MaxEntries {
			return nil, &unpack.Refused{Name: prefix, Why: fmt.Sprintf("more than %d entries", c.limits.MaxEntries)}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, named(prefix, err)
		}
	}
	slices.Sort(names)
	return names, nil
}

// down stores what is in a folder of a folder.
func (c *capture) down(root *os.Root, prefix, key string) error {
	sub, err := root.OpenRoot(key[:len(key)-1])
	if err != nil {
		return named(prefix+key, err)
	}
	defer sub.Close()
	// What is open has to be the folder of this name, and not where a symlink
	// leads that somebody put in its place.
	there, err1 := root.Lstat(key[:len(key)-1])
	opened, err2 := sub.Stat(".")
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(there, opened) {
		return named(prefix+key, cmp.Or(err, errChanged))
	}
	return c.folder(sub, prefix+key)
}

// entry stores one name of a folder, and tells whether it is one itself: what
// is in that comes later.
func (c *capture) entry(root *os.Root, prefix, base string) (isFolder bool, err error) {
	name := prefix + base
	c.entries, c.waiting = c.entries+1, c.waiting-1
	if err := c.rules.CheckName(name); err != nil {
		return false, err
	}
	info, err := root.Lstat(base)
	if err != nil {
		return false, named(name, err)
	}
	if err := c.rules.CheckTime(name, info.ModTime()); err != nil && info.Mode().Type() != fs.ModeSymlink {
		return false, err // it could not be restored
	}
	switch info.Mode().Type() {
	case 0:
		return false, c.file(root, name, base, info)
	case fs.ModeDir:
		return true, c.tar.WriteHeader(header(name+"/", tar.TypeDir, info))
	case fs.ModeSymlink:
		return false, c.symlink(root, name, base, info)
	}
	return false, &unpack.Refused{Name: name, Why: fmt.Sprintf("a checkpoint has files, folders and symlinks, not %s", info.Mode())}
}

// header has what is kept of a file. Only what is set is written.
func header(name string, kind byte, info fs.FileInfo) *tar.Header {
	h := &tar.Header{Typeflag: kind, Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	if h.ModTime.Nanosecond() != 0 {
		h.Format = tar.FormatPAX // else the part of the second is lost
	}
	return h
}

func (c *capture) symlink(root *os.Root, name, base string, info fs.FileInfo) error {
	target, err := root.Readlink(base)
	if err != nil {
		return named(name, err)
	}
	if err := c.rules.CheckLink(name, target); err != nil {
		return err
	}
	h := header(name, tar.TypeSymlink, info)
	// The bits of a symlink mean nothing and differ between systems.
	h.Linkname, h.Mode, h.ModTime, h.Format = target, 0o777, time.Unix(0, 0), tar.FormatUnknown
	return c.tar.WriteHeader(h)
}

// readNow are the flags to open a file for reading. A pipe that took the place
// of one would be waited for without an end; Windows has none in folders.
func readNow() int {
	if runtime.GOOS == "windows" {
		return os.O_RDONLY
	}
	return os.O_RDONLY | syscall.O_NONBLOCK
}

func (c *capture) file(root *os.Root, name, base string, info fs.FileInfo) error {
	if info.Size() > c.limits.MaxBytes-c.bytes {
		return &unpack.Refused{Name: name, Why: fmt.Sprintf("with it the files have more than %d bytes in all", c.limits.MaxBytes)}
	}
	f, err := root.OpenFile(base, readNow(), 0)
	if err != nil {
		return named(name, err)
	}
	defer f.Close()
	// The file that is open has to be the one that was looked at.
	if now, err := f.Stat(); err != nil || !same(now, info) {
		return named(name, cmp.Or(err, errChanged))
	}
	h := header(name, tar.TypeReg, info)
	h.Size = info.Size()
	if err := c.tar.WriteHeader(h); err != nil {
		return named(name, err)
	}
	in := &heeding{ctx: c.ctx, r: io.LimitReader(f, h.Size)}
	n, err := io.CopyBuffer(struct{ io.Writer }{c.tar}, in, c.buffer)
	if err != nil {
		return named(name, err)
	}
	c.bytes += n
	if now, err := f.Stat(); err != nil || n != h.Size || !same(now, info) {
		return named(name, cmp.Or(err, errChanged))
	}
	return nil
}

var errChanged = errors.New("somebody changed it meanwhile")

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

func named(name string, err error) error { return fmt.Errorf("%q: %w", name, err) }

// heeding ends a read when its context does.
type heeding struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (h *heeding) Read(p []byte) (int, error) {
	if h.ctx.Err() != nil {
		return 0, context.Cause(h.ctx)
	}
	return h.r.Read(p)
}
