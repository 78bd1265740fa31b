package artifact

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"prp/controller/bridge"
)

// Download is an artifact and where it is put.
type Download struct {
	// URL is the presigned URL. Issued is when it came, by [time.Now]; zero is
	// now.
	URL    string
	Issued time.Time
	// Root is the folder that nothing leaves, and Name the file in it, with "/"
	// between folders that are there. A file of this name is replaced.
	Root *os.Root
	Name string
	// Want is what the artifact has to be. An empty SHA256 and a Size of 0 are
	// not known, and not checked.
	Want Sum
}

// Download fetches an artifact by HTTP GET into a temporary file, checks it and
// renames it. It blocks until then, until [Config] gives it up, or until ctx
// ends. The error is an *[Error].
func (c *Client) Download(ctx context.Context, d Download) (Sum, error) {
	t, err := c.newTask("download", d.URL, d.Issued)
	if err != nil {
		return Sum{}, err
	}
	if err := c.check(d); err != nil {
		return Sum{}, t.fail(0, &failure{err: err, next: stop})
	}
	t.once = func(ctx context.Context) (Sum, *failure) { return c.fetch(ctx, t.target.String(), d) }
	return c.run(ctx, t)
}

// check looks at what can be known before anything is asked.
func (c *Client) check(d Download) error {
	if d.Want.SHA256 != "" {
		if raw, err := hex.DecodeString(d.Want.SHA256); err != nil || len(raw) != sha256.Size {
			return fmt.Errorf("expected a hash of 64 hex digits, got %q", d.Want.SHA256)
		}
	}
	if d.Want.Size > c.cfg.MaxDownload {
		return c.tooLarge(d.Want.Size)
	}
	if !filepath.IsLocal(d.Name) || d.Name == "." {
		return fmt.Errorf("expected a name inside the folder, got %q", d.Name)
	}
	return nil
}

func (c *Client) tooLarge(size int64) error {
	return fmt.Errorf("expected at most %d bytes, got %d: %w", c.cfg.MaxDownload, size, ErrTooLarge)
}

// fetch is one request and its file.
func (c *Client) fetch(ctx context.Context, url string, d Download) (Sum, *failure) {
	ctx, stall := bridge.WithStall(ctx, c.cfg.Stall)
	defer stall.Stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return Sum{}, &failure{err: errors.New("expected an address that can be requested"), next: stop}
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return Sum{}, netFailure(err)
	}
	defer answer.Body.Close()
	stall.Moved()
	if answer.StatusCode != http.StatusOK {
		return Sum{}, statusFailure(answer)
	}
	if answer.ContentLength > c.cfg.MaxDownload {
		return Sum{}, &failure{err: c.tooLarge(answer.ContentLength), next: stop}
	}
	sum, failed := c.keep(answer.Body, stall, d)
	if failed != nil && failed.next == again && ctx.Err() != nil {
		failed.err = context.Cause(ctx)
	}
	return sum, failed
}

// keep writes the temporary file, checks it and gives it its name.
func (c *Client) keep(body io.Reader, stall *bridge.Stall, d Download) (Sum, *failure) {
	// The name of the artifact is no part of it: it may be as long as names can
	// be.
	part := path.Join(path.Dir(d.Name), "."+rand.Text()+".part")
	// Only we can read it until the caller decides otherwise.
	f, err := d.Root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return Sum{}, &failure{err: err, next: stop}
	}
	sum, failed := c.copy(f, body, stall)
	if failed == nil {
		if err := errors.Join(matches(sum, d.Want), f.Sync()); err != nil {
			failed = &failure{err: err, next: stop}
		}
	}
	if err := f.Close(); err != nil && failed == nil {
		failed = &failure{err: err, next: stop}
	}
	if failed == nil {
		if err := d.Root.Rename(part, d.Name); err != nil {
			failed = &failure{err: err, next: stop}
		}
	}
	if failed != nil {
		if err := d.Root.Remove(part); err != nil {
			failed.err = errors.Join(failed.err, err)
		}
		return Sum{}, failed
	}
	syncDir(d.Root, path.Dir(d.Name))
	return sum, nil
}

// copy reads to the end, bounded. What the network does may succeed later, what
// the disk does not.
func (c *Client) copy(f io.Writer, body io.Reader, stall *bridge.Stall) (Sum, *failure) {
	sum, buf := Sum{}, make([]byte, chunk)
	hash := sha256.New()
	for {
		n, err := body.Read(buf)
		stall.Moved()
		sum.Size += int64(n)
		if sum.Size > c.cfg.MaxDownload {
			return Sum{}, &failure{err: c.tooLarge(sum.Size), next: stop}
		}
		hash.Write(buf[:n])
		if _, err := f.Write(buf[:n]); err != nil {
			return Sum{}, &failure{err: err, next: stop}
		}
		if err == io.EOF {
			sum.SHA256 = hex.EncodeToString(hash.Sum(nil))
			return sum, nil
		}
		if err != nil {
			return Sum{}, &failure{err: fmt.Errorf("the answer broke off after %d bytes: %w", sum.Size, err)}
		}
	}
}

// matches compares with what was announced.
func matches(got, want Sum) error {
	if want.Size > 0 && got.Size != want.Size {
		return fmt.Errorf("expected %d bytes, got %d: %w", want.Size, got.Size, ErrMismatch)
	}
	if want.SHA256 != "" && !strings.EqualFold(got.SHA256, want.SHA256) {
		return fmt.Errorf("expected the hash %q, got %q: %w", want.SHA256, got.SHA256, ErrMismatch)
	}
	return nil
}

// syncDir makes the rename outlive a power failure where the platform can.
func syncDir(root *os.Root, dir string) {
	if d, err := root.Open(dir); err == nil {
		_ = d.Sync() // not every platform can sync a folder
		d.Close()
	}
}
