package jsonl

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// calls records each write; from the second on it takes only short bytes.
type calls struct {
	writes []string
	short  int
	err    error
}

func (c *calls) Write(p []byte) (int, error) {
	n := len(p)
	if c.short > 0 && len(c.writes) > 0 {
		n = min(n, c.short)
	}
	c.writes = append(c.writes, string(p[:n]))
	return n, c.err
}

func TestWriterWritesALineAtOnce(t *testing.T) {
	out := &calls{}
	w := NewWriter(out)
	for _, line := range []string{"a", "bc\n", ""} {
		if err := w.WriteLine([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteLines([]byte("d\ne\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(out.writes, "|"), "a\n|bc\n|\n|d\ne\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriterStopsAfterAShortWrite(t *testing.T) {
	out := &calls{short: 1}
	w := NewWriter(out)
	if err := w.WriteLine([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.WriteLine([]byte("abc")); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("got %v, want io.ErrShortWrite", err)
		}
	}
	if got, want := strings.Join(out.writes, "|"), "abc\n|a"; got != want {
		t.Errorf("got %q, want %q: nothing after a torn line", got, want)
	}
}

func TestWriterKeepsItsError(t *testing.T) {
	broken := errors.New("broken")
	out := &calls{err: broken}
	w := NewWriter(out)
	for range 2 {
		if err := w.WriteLine([]byte("a")); !errors.Is(err, broken) {
			t.Fatalf("got %v, want the error of the output", err)
		}
	}
	if len(out.writes) != 1 {
		t.Errorf("%d writes after an error, want none", len(out.writes)-1)
	}
}
