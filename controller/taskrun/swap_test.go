//go:build unix

package taskrun

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"prp/controller/checkpoint"
)

// put makes a file in a folder that is made.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// slowBucket is a bucket whose downloads stop after the first byte. What it has
// come to is told.
func slowBucket(t *testing.T, size int64, from io.Reader) (endpoint string, stopped <-chan struct{}) {
	t.Helper()
	told := make(chan struct{}, 8)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		_, _ = io.CopyN(rw, from, 1)
		_ = http.NewResponseController(rw).Flush()
		told <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s.URL, told
}

// TestKilledInRestore: a worker that is killed while the workspace is restored
// loses nothing of the one that was there: the next run of the task has it (row
// 11).
func TestKilledInRestore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.base(false)
	b.offer.Bundle.Run.TaskID = "task_1"
	space := filepath.Join(b.cfg.Dir, workspacesDir, "task_1")
	put(t, space, "old", "of before")
	want := b.offer.Base
	payload, _, err := b.cfg.Store.Get(b.ctx, checkpoint.Payload{SHA256: want.PayloadSHA256}.Key())
	if err != nil {
		t.Fatal(err)
	}
	defer payload.Close()
	endpoint, stopped := slowBucket(t, want.SizeBytes, payload)
	cmd, said := b.process()
	cmd.Args = append(cmd.Args, "--checkpoints", "s3://bucket", "--s3-endpoint", endpoint)
	cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret-of-the-bucket")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-stopped:
	case <-b.ctx.Done():
		t.Error("the checkpoint was not fetched")
	}
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
	if text, err := os.ReadFile(filepath.Join(space, "old")); err != nil || string(text) != "of before" {
		t.Errorf("the workspace has %q, %v; the worker said %s", text, err, said)
	}
	b.id, b.offer.Base, b.offer.Workspaces, b.cfg.Store = "", nil, false, nil
	b.sh("cat old")
	if st := b.must(); st.Text != "of before" {
		t.Errorf("the next run has %q", st.Text)
	}
}

// TestKilledInSwap: where the worker was killed between the two renames, the next
// run of the task has the old workspace, and where it was killed after them the
// restored one.
func TestKilledInSwap(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]bool{"between": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.offer.Bundle.Run.TaskID = "task_1"
			want := "of before"
			put(t, filepath.Join(b.cfg.Dir, asideDir, "task_1"), "file", want)
			if restored {
				want = "restored"
				put(t, filepath.Join(b.cfg.Dir, workspacesDir, "task_1"), "file", want)
			}
			b.sh("cat file")
			if st := b.must(); st.Text != want {
				t.Errorf("the run has %q, want %q", st.Text, want)
			}
			if left, err := os.ReadDir(filepath.Join(b.cfg.Dir, asideDir)); err != nil || len(left) > 0 {
				t.Errorf("aside is %v, %v", left, err)
			}
			b.clean()
		})
	}
}

// TestReplaceFails: a workspace that cannot be replaced stays where it is.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	w := &worker{cfg: Config{Dir: dir}}
	r := &prepared{dir: t.TempDir(), space: filepath.Join(dir, workspacesDir, "task_1")}
	put(t, r.space, "file", "of before")
	if err := w.replace(r); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a restored one: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(r.space, "file")); err != nil || string(text) != "of before" {
		t.Errorf("the workspace has %q, %v", text, err)
	}
}
