package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/klauspost/compress/zstd"

	"prp/controller/unpack"
)

// ErrHash is a payload whose bytes are not those that were announced.
var ErrHash = errors.New("the payload's bytes have another hash or size than announced")

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Check says what is wrong with the numbers of a payload that somebody else
// announces. Only what Restore could not take is wrong: the counts of a
// checkpoint that another program made may be counted otherwise.
func (p Payload) Check() error {
	switch {
	case p.Format != Format:
		return fmt.Errorf("expected payload format %q, got %q", Format, p.Format)
	case !hexHash.MatchString(p.SHA256):
		return fmt.Errorf("expected a SHA-256 of 64 digits 0-9 and a-f, got %q", p.SHA256)
	case p.SizeBytes <= 0 || p.SizeBytes > MaxBytes:
		return fmt.Errorf("expected a payload of 1 to %d bytes, got %d", int64(MaxBytes), p.SizeBytes)
	}
	return nil
}

// Restore makes the folder dir from the bytes of a checkpoint, which are read
// from r. dir must not exist or be empty. It blocks until everything is
// written, and looks at ctx between two reads. Where it returns an error dir is
// as it was: an [*unpack.Refused] for what may not be in a checkpoint,
// [ErrHash] for other bytes than want announces.
func Restore(ctx context.Context, r io.Reader, want Payload, dir string) error {
	return Limits{}.Restore(ctx, r, want, dir)
}

// Restore is the function of this name with other limits.
func (l Limits) Restore(ctx context.Context, r io.Reader, want Payload, dir string) error {
	if err := want.Check(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	area, err := unpack.Open(dir, rules(l.filled()))
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	err = restore(ctx, r, want, area)
	if err == nil {
		err = area.Commit()
	}
	if err != nil {
		return fmt.Errorf("restore: %w", errors.Join(err, area.Discard()))
	}
	return nil
}

// restore fills the area and checks the hash.
func restore(ctx context.Context, r io.Reader, want Payload, area *unpack.Area) error {
	hash := sha256.New()
	stored := &io.LimitedReader{R: &heeding{ctx, r}, N: want.SizeBytes + 1}
	in := io.TeeReader(stored, hash)
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	entries := area.Tar(ctx, z)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Wrong bytes are told as such, whatever they look like as an archive.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return errors.Join(entries, err)
	}
	if stored.N != 1 || hex.EncodeToString(hash.Sum(nil)) != want.SHA256 {
		return fmt.Errorf("%w: expected %d bytes with SHA-256 %s", ErrHash, want.SizeBytes, want.SHA256)
	}
	return entries
}
