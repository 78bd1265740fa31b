package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prp/controller/devserver"
	"prp/controller/workerclient"
)

// pages are the stdout and the stderr of a command as files.
func pages(t *testing.T) (s *streams, read func() (out, err string)) {
	t.Helper()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(t.TempDir(), "page"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files[i] = f
	}
	return &streams{out: &output{File: files[0]}, err: &output{File: files[1]}}, func() (string, string) {
		out, err := os.ReadFile(files[0].Name())
		said, err2 := os.ReadFile(files[1].Name())
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return string(out), string(said)
	}
}

// TestShownFramesAreSafe: what a worker says moves no cursor, and what is shown of
// its result has the same value.
func TestShownFramesAreSafe(t *testing.T) {
	t.Parallel()
	const evil = "\u009b2J\u202e\U000e0041\u00e9 end"
	progress, err := json.Marshal(map[string]any{"progress": map[string]any{"message": "\x1b[2J" + evil}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := json.Marshal(map[string]any{"status": "success", "stdout": evil})
	if err != nil {
		t.Fatal(err)
	}
	s, read := pages(t)
	status := (&devserverOptions{}).show(t.Context(), s, strings.NewReader(string(progress)+"\n"+string(result)+"\n"))
	out, said := read()
	if status != exitOK || strings.ContainsAny(out+said, "\x1b\u009b\u202e\U000e0041") || !strings.Contains(out, "\u00e9") {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, said)
	}
	var shown struct{ Stdout string }
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown.Stdout != evil {
		t.Errorf("stdout %q has the value %q, want %q, %v", out, shown.Stdout, evil, err)
	}
}

// TestShownNamesAreComparedExactly: a member in other letters is not known, so that
// a door that mistypes one is found out.
func TestShownNamesAreComparedExactly(t *testing.T) {
	t.Parallel()
	s, _ := pages(t)
	o := &devserverOptions{}
	if status := o.show(t.Context(), s, strings.NewReader(`{"Status":"success"}`)); status != exitFailed {
		t.Errorf("a result: status %d", status)
	}
	frame := `{"type":"run_event","Event":"completion","payload":{"status":"succeeded"}}`
	if status := o.showFrames(t.Context(), s, strings.NewReader(frame), devserver.Order{Watch: "r"}); status != exitFailed {
		t.Errorf("a completion: status %d", status)
	}
	w := &watching{o: o, s: s, run: make(chan string, 1)}
	if err := w.watch(t.Context(), strings.NewReader(`{"End":{"status":"SUCCEEDED"}}`)); err == nil {
		t.Errorf("an end: %+v", w.last)
	}
}

// TestEndIsShownAlthoughTold: a run whose end is here has ended, also where a signal
// has come at the same time; without its end it goes on.
func TestEndIsShownAlthoughTold(t *testing.T) {
	t.Parallel()
	told, cancel := context.WithCancel(t.Context())
	cancel()
	line, err := json.Marshal(devserver.Progress{End: &workerclient.PatchTaskRunRequest{Status: "SUCCEEDED"}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]error{string(line): nil, "": errUnwatched} {
		s, _ := pages(t)
		w := &watching{o: &devserverOptions{}, s: s, run: make(chan string, 1)}
		if err := w.watch(told, io.MultiReader(strings.NewReader(text))); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}
