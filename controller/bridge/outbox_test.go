package bridge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func openOutbox(t *testing.T, path string, cfg OutboxConfig) *Outbox {
	t.Helper()
	o, err := OpenOutbox(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

func put(t *testing.T, o *Outbox, key string, soft bool) int64 {
	t.Helper()
	seq, err := o.Put(key, soft, func(seq int64) []byte { return fmt.Appendf(nil, `{"seq":%d,"key":%q}`, seq, key) })
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// waiting lists what is to be sent, in order: "3", or "gap 1-2".
func waiting(t *testing.T, o *Outbox) []string {
	t.Helper()
	var list []string
	for after := int64(0); ; {
		f, ok, err := o.Next(after)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return list
		}
		after = f.Seq
		if f.Gap {
			list = append(list, fmt.Sprintf("gap %d-%d", f.From, f.Seq))
			continue
		}
		if !strings.HasPrefix(string(f.Body), fmt.Sprintf(`{"seq":%d,`, f.Seq)) {
			t.Errorf("frame %d is %s", f.Seq, f.Body)
		}
		list = append(list, fmt.Sprint(f.Seq))
	}
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestOutboxOverRestarts: what is not acknowledged is there again, with the
// same numbers, and numbers go on.
func TestOutboxOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	o := openOutbox(t, path, OutboxConfig{})
	for _, key := range []string{"a", "b", "a", "c"} {
		put(t, o, key, false)
	}
	if err := o.Ack(1); err != nil {
		t.Fatal(err)
	}
	o.Sent(3)
	if err := o.AckKey("a"); err != nil {
		t.Fatal(err)
	}
	expect(t, "before", waiting(t, o), "2", "4")
	o.Close()
	o = openOutbox(t, path, OutboxConfig{})
	expect(t, "after", waiting(t, o), "2", "4")
	if o.Last() != 4 || o.Acked() != 1 {
		t.Errorf("last %d, acked %d; want 4 and 1", o.Last(), o.Acked())
	}
	if err := o.Ack(99); err != nil {
		t.Fatal(err)
	}
	if o.Acked() != 4 {
		t.Errorf("a number that was never used moved the cursor to %d, want 4", o.Acked())
	}
	if seq := put(t, o, "d", false); seq != 5 {
		t.Errorf("the next number is %d, want 5", seq)
	}
	expect(t, "at last", waiting(t, o), "5")
}

// TestOutboxAllAckedOverRestart: an empty outbox remembers its numbers.
func TestOutboxAllAckedOverRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	o := openOutbox(t, path, OutboxConfig{})
	put(t, o, "a", false)
	put(t, o, "b", false)
	o.Sent(1)
	o.Sent(2)
	for _, key := range []string{"b", "a"} {
		if err := o.AckKey(key); err != nil {
			t.Fatal(err)
		}
	}
	o.Close()
	o = openOutbox(t, path, OutboxConfig{})
	if o.Last() != 2 || o.Acked() != 2 {
		t.Errorf("last %d, acked %d; want 2 and 2", o.Last(), o.Acked())
	}
}

// TestOutboxTornTail: a crash in the middle of a write loses that frame only.
func TestOutboxTornTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	o := openOutbox(t, path, OutboxConfig{})
	put(t, o, "a", false)
	o.Close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"seq":2,"key":"b","frame":{"se`)
	f.Close()
	o = openOutbox(t, path, OutboxConfig{})
	expect(t, "after the crash", waiting(t, o), "1")
	if seq := put(t, o, "b", false); seq != 2 {
		t.Errorf("the next number is %d, want 2", seq)
	}
}

// TestOutboxSpoolFull: the oldest soft frames go, what matters stays, and the
// gap is told in its place, also after a restart.
func TestOutboxSpoolFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	limits := OutboxConfig{SpoolBytes: 1000}
	o := openOutbox(t, path, limits)
	put(t, o, "a", false)
	for range 20 {
		put(t, o, "a", true)
	}
	put(t, o, "a", false)
	got := waiting(t, o)
	if len(got) < 4 || got[0] != "1" || !strings.HasPrefix(got[1], "gap 2-") || got[len(got)-1] != "22" {
		t.Fatalf("waiting: %q", got)
	}
	var from, to int64
	fmt.Sscanf(got[1], "gap %d-%d", &from, &to)
	if want := fmt.Sprint(to + 1); got[2] != want {
		t.Errorf("after the gap comes %s, want %s", got[2], want)
	}
	o.Close()
	expect(t, "after a restart", waiting(t, openOutbox(t, path, limits)), got...)
}

// TestOutboxSpoolFullOnDisk: while nobody acknowledges anything the file takes so
// much and no more: what was dropped is not on the disk any more either.
func TestOutboxSpoolFullOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	limits := OutboxConfig{SpoolBytes: 1 << 20, Strict: true}
	o := openOutbox(t, path, limits)
	body := strings.Repeat("x", 20<<10)
	put(t, o, "a", false)
	for range 600 { // 12 MB
		_, err := o.Put("a", true, func(seq int64) []byte { return fmt.Appendf(nil, `{"seq":%d,"x":%q}`, seq, body) })
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > compactAbove+100<<10 {
			t.Fatalf("the file has %d bytes", info.Size())
		}
	}
	got := waiting(t, o)
	if len(got) < 10 || got[0] != "1" || !strings.HasPrefix(got[1], "gap 2-") || got[len(got)-1] != "601" {
		t.Fatalf("waiting: %q", got)
	}
	o.Close()
	expect(t, "after a restart", waiting(t, openOutbox(t, path, limits)), got...)
}

// TestOutboxHardFramesStay: a full spool drops no frame that is not soft and
// was never sent, however old.
func TestOutboxHardFramesStay(t *testing.T) {
	now := time.Unix(1, 0)
	o := openOutbox(t, filepath.Join(t.TempDir(), "outbox"), OutboxConfig{SpoolBytes: 10, Now: func() time.Time { return now }})
	for range 50 {
		put(t, o, "a", false)
	}
	now = now.Add(48 * time.Hour)
	put(t, o, "a", false)
	if n := len(waiting(t, o)); n != 51 {
		t.Errorf("%d frames wait, want 51", n)
	}
}

// TestOutboxKeepsSent: frames that were sent and never acknowledged stay up to
// a number and an age.
func TestOutboxKeepsSent(t *testing.T) {
	now := time.Unix(1, 0)
	o := openOutbox(t, filepath.Join(t.TempDir(), "outbox"), OutboxConfig{KeepSent: 3, Now: func() time.Time { return now }})
	for range 5 {
		o.Sent(put(t, o, "a", false))
	}
	put(t, o, "a", false)
	expect(t, "by number", waiting(t, o), "3", "4", "5", "6")
	now = now.Add(25 * time.Hour)
	put(t, o, "a", false)
	expect(t, "by age", waiting(t, o), "6", "7")
}

// TestOutboxSlowAcks: of a server that acknowledges, however late, nothing that
// it may not have is dropped by number.
func TestOutboxSlowAcks(t *testing.T) {
	o := openOutbox(t, filepath.Join(t.TempDir(), "outbox"), OutboxConfig{KeepSent: 3})
	for range 10 {
		o.Sent(put(t, o, "a", false))
		if err := o.Ack(1); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(waiting(t, o)); n != 9 {
		t.Errorf("%d frames wait, want 9", n)
	}
}

// TestOutboxCompacts: the file does not grow with what is done.
func TestOutboxCompacts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	o := openOutbox(t, path, OutboxConfig{})
	body := strings.Repeat("x", 100<<10)
	for i := range 200 {
		seq, err := o.Put("k", false, func(seq int64) []byte { return fmt.Appendf(nil, `{"seq":%d,"x":%q}`, seq, body) })
		if err != nil {
			t.Fatal(err)
		}
		if i != 150 && i != 199 {
			o.Sent(seq)
			if err := o.drop(func(e *entry) bool { return e.seq == seq }); err != nil {
				t.Fatal(err)
			}
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > compactAbove+200<<10 {
		t.Errorf("the file has %d bytes", info.Size())
	}
	expect(t, "waiting", waiting(t, o), "151", "200")
	o.Close()
	expect(t, "after a restart", waiting(t, openOutbox(t, path, OutboxConfig{})), "151", "200")
}

// TestOutboxTenThousand: many frames stay whole and in order.
func TestOutboxTenThousand(t *testing.T) {
	const frames = 10_000
	path := filepath.Join(t.TempDir(), "outbox")
	o := openOutbox(t, path, OutboxConfig{})
	for range frames {
		put(t, o, "a", true)
	}
	o.Close()
	got := waiting(t, openOutbox(t, path, OutboxConfig{}))
	if len(got) != frames || got[0] != "1" || got[frames-1] != fmt.Sprint(frames) {
		t.Errorf("%d frames wait, want %d from 1 on", len(got), frames)
	}
}

// TestOutboxStrict: a strict outbox loses nothing but soft frames, however often
// they were sent and however old they are (remote.md rule 10).
func TestOutboxStrict(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := openOutbox(t, filepath.Join(t.TempDir(), "outbox"), OutboxConfig{
		Strict: true, KeepSent: 1, Now: func() time.Time { return now },
	})
	for range 3 {
		o.Sent(put(t, o, "hard", false))
	}
	o.Sent(put(t, o, "soft", true))
	now = now.Add(25 * time.Hour)
	put(t, o, "late", false)
	expect(t, "a day later", waiting(t, o), "1", "2", "3", "gap 4-4", "5")
}

// TestOutboxLastKey: the key of the newest frame outlives the frame, a restart
// and a rewrite of the file.
func TestOutboxLastKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox")
	o := openOutbox(t, path, OutboxConfig{})
	if o.LastKey() != "" {
		t.Errorf("an empty outbox has the last key %q", o.LastKey())
	}
	put(t, o, "a", false)
	put(t, o, "b", false)
	if err := o.Ack(2); err != nil {
		t.Fatal(err)
	}
	o.Close()
	o = openOutbox(t, path, OutboxConfig{})
	if o.LastKey() != "b" || o.Bytes() != 0 {
		t.Errorf("after a restart the last key is %q, and %d bytes are kept; want \"b\" and 0", o.LastKey(), o.Bytes())
	}
	big := strings.Repeat("x", 1<<20)
	for i := range 6 {
		if _, err := o.Put("c", false, func(int64) []byte { return fmt.Appendf(nil, "%q", big) }); err != nil {
			t.Fatal(err)
		}
		if err := o.Ack(int64(i + 3)); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 4<<20 {
		t.Errorf("the file was not rewritten: %v, %v", info.Size(), err)
	}
	o.Close()
	if o = openOutbox(t, path, OutboxConfig{}); o.LastKey() != "c" || o.Last() != 8 {
		t.Errorf("after a rewrite the last key is %q of frame %d, want \"c\" of 8", o.LastKey(), o.Last())
	}
}
