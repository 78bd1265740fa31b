package bridge

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

func openStore(t *testing.T, path string, cfg StoreConfig) *Store {
	t.Helper()
	s, err := OpenStore(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func finish(t *testing.T, s *Store, id, digest, result string) {
	t.Helper()
	if err := s.Finish(Remembered{ID: id, Task: "t", Digest: digest, Status: "success", Seq: 7}, []byte(result)); err != nil {
		t.Fatal(err)
	}
}

// TestStoreOverRestarts: a command is new once, also after a restart; its
// result is kept; one that had begun stays without a result.
func TestStoreOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "commands")
	s := openStore(t, path, StoreConfig{})
	if _, v := s.Lookup("a", "d1"); v != New {
		t.Errorf("an unknown command is %d", v)
	}
	for _, id := range []string{"a", "b"} {
		if err := s.Begin(Remembered{ID: id, Task: "t", Digest: "d1"}); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, s, "a", "d1", `{"x":1}`)
	for range 2 {
		m, v := s.Lookup("a", "d1")
		if v != Same || !m.Done || m.Seq != 7 || m.Status != "success" || m.Task != "t" {
			t.Errorf("a is %d, %+v", v, m)
		}
		if _, v := s.Lookup("a", "d2"); v != Other {
			t.Errorf("other content is %d", v)
		}
		if result, ok, err := s.Result("a"); string(result) != `{"x":1}` || !ok || err != nil {
			t.Errorf("the result is %s, %v, %v", result, ok, err)
		}
		if m, v := s.Lookup("b", "d1"); v != Same || m.Done {
			t.Errorf("b is %d, %+v; want one that has begun", v, m)
		}
		s.Close()
		s = openStore(t, path, StoreConfig{})
	}
}

// TestStoreForgetsResults: of an old command only that it has ended is known.
func TestStoreForgetsResults(t *testing.T) {
	now := time.Unix(1, 0)
	path := filepath.Join(t.TempDir(), "commands")
	cfg := StoreConfig{KeepResults: 2, KeepCommands: 4, Now: func() time.Time { return now }}
	s := openStore(t, path, cfg)
	for i := range 6 {
		finish(t, s, fmt.Sprint(i), "d", "{}")
	}
	for range 2 {
		for i, want := range []Verdict{New, New, Same, Same, Same, Same} {
			m, v := s.Lookup(fmt.Sprint(i), "d")
			_, kept, _ := s.Result(fmt.Sprint(i))
			if v != want || v == Same && !m.Done || kept != (i >= 4) {
				t.Errorf("command %d is %d, %+v, its result kept: %v", i, v, m, kept)
			}
		}
		s.Close()
		s = openStore(t, path, cfg)
	}
	now = now.Add(25 * time.Hour)
	s.Close()
	s = openStore(t, path, cfg)
	if _, kept, _ := s.Result("5"); kept {
		t.Error("a result of 25 hours ago is kept")
	}
}

// TestStoreCompacts: the file stays small, and what it says the same.
func TestStoreCompacts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "commands")
	s := openStore(t, path, StoreConfig{KeepResults: 5})
	big := fmt.Sprintf(`{"x":"%0100000d"}`, 1)
	for i := range 300 {
		finish(t, s, fmt.Sprint(i), "d", big)
	}
	if s.log.size > compactAbove+int64(2*len(big)) {
		t.Errorf("the file has %d bytes", s.log.size)
	}
	s.Close()
	s = openStore(t, path, StoreConfig{KeepResults: 5})
	if m, v := s.Lookup("0", "d"); v != Same || !m.Done {
		t.Errorf("the first command is %d, %+v", v, m)
	}
	if result, ok, _ := s.Result("299"); !ok || string(result) != big {
		t.Error("the last result is gone")
	}
}
