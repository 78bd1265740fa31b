package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
)

// PayloadStore keeps payloads by keys. It is safe for several goroutines.
type PayloadStore interface {
	// Put stores size bytes from r under a key and returns when they are
	// durable. What was stored under the key is replaced; a reader sees the old
	// bytes or the new ones, never a mixture. Other than size bytes are an
	// error, and nothing is stored. The key is one that CheckKey takes.
	Put(ctx context.Context, key string, size int64, r io.Reader) error
	// Get opens what is stored under a key, and tells its size in bytes. The
	// caller closes it. The error is fs.ErrNotExist where there is nothing.
	Get(ctx context.Context, key string) (io.ReadCloser, int64, error)
}

// maxKey bounds a key, in bytes: less than a name may have on any system.
const maxKey = 200

var keyForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*$`)

// CheckKey says what is wrong with a key: it has parts with slashes between, of
// small letters, digits, ".", "_" and "-", each with a letter or digit first,
// and 200 bytes at most.
func CheckKey(key string) error {
	if len(key) > maxKey || !keyForm.MatchString(key) {
		return fmt.Errorf("expected a key of up to %d letters a-z, digits, '.', '_', '-' and '/', got %.*q", maxKey, maxKey, key)
	}
	return nil
}

// Key is where a payload is stored. It depends on the bytes alone, so that the
// same bytes are stored once.
func (p Payload) Key() string { return "sha256/" + p.SHA256 + ".tar.zst" }

// DirStore is a [PayloadStore] in a folder.
type DirStore struct {
	// Dir is made by Put where it does not exist.
	Dir string
}

const (
	// storeDir and storeFile are modes: a payload is a whole workspace and
	// nobody else's business.
	storeDir  = 0o700
	storeFile = 0o600
)

// Put implements [PayloadStore].
func (s DirStore) Put(ctx context.Context, key string, size int64, r io.Reader) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, storeDir); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	dir := path.Dir(key)
	if err := root.MkdirAll(dir, storeDir); err != nil {
		return err
	}
	// No key has a part that begins with a dot.
	temporary := path.Join(dir, "."+rand.Text()+".part")
	err = write(ctx, root, temporary, size, r)
	if err == nil {
		err = root.Rename(temporary, filepath.FromSlash(key))
	}
	if err != nil {
		if gone := root.Remove(temporary); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return fmt.Errorf("store payload %q: %w", key, err)
	}
	return syncFolders(root, dir)
}

// write makes a file of exactly size bytes and returns when it is on the disk.
func write(ctx context.Context, root *os.Root, name string, size int64, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, storeFile)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(&heeding{ctx, r}, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("expected %d bytes, got %d or more", size, n)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncFolders makes a new name durable, with those of the folders above it.
// Windows has no such call for folders.
func syncFolders(root *os.Root, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for {
		f, err := root.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}

// Get implements [PayloadStore].
func (s DirStore) Get(_ context.Context, key string) (io.ReadCloser, int64, error) {
	if err := CheckKey(key); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenInRoot(s.Dir, filepath.FromSlash(key))
	if err != nil {
		return nil, 0, fmt.Errorf("payload %q: %w", key, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("expected a file, got %s", info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("payload %q: %w", key, err)
	}
	return f, info.Size(), nil
}

// Save captures a folder and stores the payload under its [Payload.Key].
// The bytes are kept in a file in scratch meanwhile, which must exist; they are
// removed in any case.
func Save(ctx context.Context, store PayloadStore, dir, scratch string) (Payload, error) {
	f, err := os.CreateTemp(scratch, "checkpoint-*.tar.zst")
	if err != nil {
		return Payload{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	p, err := Capture(ctx, dir, f)
	if err != nil {
		return Payload{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Payload{}, err
	}
	// Closing is hidden from the store; it may read the bytes again.
	return p, store.Put(ctx, p.Key(), p.SizeBytes, struct{ io.ReadSeeker }{f})
}

// Load restores a folder from the payload that a store has under its
// [Payload.Key].
func Load(ctx context.Context, store PayloadStore, want Payload, dir string) error {
	if err := want.Check(); err != nil {
		return err
	}
	r, size, err := store.Get(ctx, want.Key())
	if err != nil {
		return err
	}
	defer r.Close()
	if size != want.SizeBytes {
		return fmt.Errorf("%w: expected %d bytes, the store has %d", ErrHash, want.SizeBytes, size)
	}
	return Restore(ctx, r, want, dir)
}
