package bridge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"prp/controller/files/disktest"
)

// TestOutboxDiskFull: remote.md rule 1. Where there is no room for the rewritten
// file, none is taken from the frames: they go on, and nothing is lost.
func TestOutboxDiskFull(t *testing.T) {
	if !disktest.Apart(t) {
		return
	}
	dir := disktest.Mount(t, "size=9m")
	path := filepath.Join(dir, "outbox")
	o := openOutbox(t, path, OutboxConfig{})
	for range 20 {
		putBig(t, o, "kept", 100<<10)
	}
	last := int64(0)
	for o.log.size < 2*o.live-50<<10 {
		last = putBig(t, o, "done", 10<<10)
		o.Sent(last)
		if err := o.AckKey("done"); err != nil {
			t.Fatal(err)
		}
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		last = putBig(t, o, "done", 1000)
		o.Sent(last)
		if err := o.AckKey("done"); err != nil {
			t.Fatal(err)
		}
	}
	if o.log.failures != 1 {
		t.Errorf("it was tried %d times", o.log.failures)
	}
	if _, err := os.Stat(path + rewritten); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the half of a file takes room: %v", err)
	}
	// Frames may have the room to the last byte.
	var want []string
	for err := error(nil); err == nil; {
		var seq int64
		seq, err = o.Put("more", false, func(int64) []byte { return fmt.Appendf(nil, "%q", strings.Repeat("x", 50<<10)) })
		if err == nil {
			want = append(want, fmt.Sprint(seq))
		} else if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if len(want) < 10 {
		t.Fatalf("there was room for %d frames", len(want))
	}
	if err := errors.Join(os.Remove(filler), o.Ack(last)); err != nil {
		t.Fatal(err)
	}
	if o.log.failures > 0 || o.log.size > compactAbove {
		t.Errorf("with room again the file has %d bytes", o.log.size)
	}
	o.Close()
	o = openOutbox(t, path, OutboxConfig{})
	var got []string
	for after := int64(0); ; {
		f, ok, err := o.Next(after)
		if err != nil || !ok {
			expect(t, "after a restart", got, want...)
			return
		}
		got, after = append(got, fmt.Sprint(f.Seq)), f.Seq
	}
}
