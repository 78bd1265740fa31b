package bridge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// blocked makes the rewriting of a file fail until it is called.
func blocked(t *testing.T, path string) (free func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path+rewritten, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(path + rewritten); err != nil {
			t.Fatal(err)
		}
	}
}

func putBig(t *testing.T, o *Outbox, key string, size int) int64 {
	t.Helper()
	seq, err := o.Put(key, false, func(seq int64) []byte { return fmt.Appendf(nil, `{"seq":%d,"x":%q}`, seq, strings.Repeat("x", size)) })
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// TestOutboxCannotCompact: what only saves room stops nothing where it fails. It
// is not tried again with each frame, but when the file has grown, by more each
// time, or when it needs much less room; and nothing is lost.
func TestOutboxCannotCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	o := openOutbox(t, path, OutboxConfig{})
	free := blocked(t, path)
	putBig(t, o, "kept", 1<<20)
	acked := func(size int) {
		t.Helper()
		seq := putBig(t, o, "done", size)
		o.Sent(seq)
		if err := o.AckKey("done"); err != nil {
			t.Fatal(err)
		}
	}
	sizes := []int64{}
	for range 100 { // 10 MB, of which 1 MB is needed
		before := o.log.failures
		if acked(100 << 10); o.log.failures > before {
			sizes = append(sizes, o.log.size>>20)
		}
	}
	if want := "[4 8]"; fmt.Sprint(sizes) != want {
		t.Errorf("it was tried at %d MiB, want %s", sizes, want)
	}
	// Half as much room is reason enough.
	tries := o.log.failures
	if err := o.Ack(1); err != nil {
		t.Fatal(err)
	}
	if o.log.failures != tries+1 {
		t.Errorf("it was tried %d times more, want once", o.log.failures-tries)
	}
	for range 100 {
		acked(1)
	}
	if o.log.failures != tries+1 {
		t.Errorf("it was tried %d times more, want once", o.log.failures-tries)
	}
	last := fmt.Sprint(put(t, o, "last", false))
	free()
	for range 300 {
		if acked(100 << 10); o.log.failures == 0 {
			break
		}
	}
	if o.log.failures > 0 || o.log.size > compactAbove {
		t.Errorf("%d tries failed, and the file has %d bytes", o.log.failures, o.log.size)
	}
	expect(t, "waiting", waiting(t, o), last)
	o.Close()
	expect(t, "after a restart", waiting(t, openOutbox(t, path, OutboxConfig{})), last)
}

// TestStoreCannotCompact: a command is remembered whether there is room to
// rewrite the file or not.
func TestStoreCannotCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := openStore(t, path, StoreConfig{KeepResults: 2})
	free := blocked(t, path)
	result := fmt.Appendf(nil, "%q", strings.Repeat("x", 100<<10))
	for i := range 100 {
		m := Remembered{ID: fmt.Sprint(i), Digest: "d"}
		if err := s.Begin(m); err != nil {
			t.Fatal(err)
		}
		m.Status = "success"
		if err := s.Finish(m, result); err != nil {
			t.Fatal(err)
		}
	}
	if s.log.failures < 1 || s.log.failures > 2 {
		t.Errorf("it was tried %d times", s.log.failures)
	}
	check := func(what string) {
		t.Helper()
		for i := range 100 {
			if m, v := s.Lookup(fmt.Sprint(i), "d"); v != Same || !m.Done {
				t.Fatalf("%s: command %d: %v, %+v", what, i, v, m)
			}
		}
		if got, ok, err := s.Result("99"); err != nil || !ok || string(got) != string(result) {
			t.Errorf("%s: the result is %.30q, %v, %v", what, got, ok, err)
		}
	}
	check("before")
	s.Close()
	free()
	s = openStore(t, path, StoreConfig{KeepResults: 2})
	check("after a restart")
}

// TestLeftover: what a crash has left of a rewriting takes no room.
func TestLeftover(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	if err := os.WriteFile(path+rewritten, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	openOutbox(t, path, OutboxConfig{})
	if _, err := os.Stat(path + rewritten); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
}
