//go:build unix

package taskrun

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"prp/controller/checkpoint"
	"prp/controller/workerclient"
)

// packed is a plugin with one file, and its digest.
func packed(t testing.TB, name string) ([]byte, string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	const content = "a tool"
	if err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	_, _ = a.Write([]byte(content)) // a buffer
	a.Close()
	z.Close()
	sum := sha256.Sum256(b.Bytes())
	return b.Bytes(), "sha256:" + hex.EncodeToString(sum[:])
}

// plugin offers a plugin; digest empty is the right one.
func (b *bench) plugin(file, digest string) {
	bytes, right := packed(b.t, file)
	if digest == "" {
		digest = right
	}
	b.offer.Plugins = map[string][]byte{"tools/1.0": bytes}
	b.offer.Bundle.Plugins = []workerclient.TaskRunPlugin{{Name: "tools", Version: "1.0", Digest: digest}}
}

// base offers a checkpoint of a folder with one file; wrong changes its hash.
func (b *bench) base(wrong bool) {
	b.t.Helper()
	tree := b.t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "file"), []byte("of the base"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	store := checkpoint.DirStore{Dir: b.t.TempDir()}
	p, err := checkpoint.Save(b.ctx, store, tree, b.t.TempDir())
	if err != nil {
		b.t.Fatal(err)
	}
	if wrong {
		path := filepath.Join(store.Dir, filepath.FromSlash(p.Key()))
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), int(p.SizeBytes)), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	b.cfg.Store, b.offer.Workspaces = store, true
	b.offer.Base = &workerclient.WorkspaceBaseResponse{
		CheckpointID: "c", PayloadFormat: p.Format, PayloadSHA256: p.SHA256, SizeBytes: p.SizeBytes,
		UncompressedBytes: p.UncompressedBytes, EntryCount: p.EntryCount,
	}
}

// store makes the server and the worker keep workspaces.
func (b *bench) store() {
	b.cfg.Store, b.offer.Workspaces = checkpoint.DirStore{Dir: b.t.TempDir()}, true
}

// elsewhere makes the address that of something else, which answers everything
// with 200 and a body.
func (b *bench) elsewhere(body string) {
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, body) }))
	b.t.Cleanup(other.Close)
	b.http.URL, b.client = other.URL, nil
}
