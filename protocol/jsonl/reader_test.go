package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// pieces gives n bytes a read.
type pieces struct {
	rest []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.n, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

// got is a line as a test compares it.
type got struct {
	text   string
	flags  Flag
	number int64
}

func readAll(t *testing.T, r *Reader) []got {
	t.Helper()
	var out []got
	for {
		line, flags, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got{string(line), flags, r.LineNumber()})
	}
}

func equal(a, b []got) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestReader(t *testing.T) {
	const limit = 8
	for _, c := range []struct {
		name, in string
		options  []Option
		want     []got
	}{
		{"nothing", "", nil, nil},
		{"one", "ab\n", nil, []got{{"ab", 0, 1}}},
		{"carriage return", "ab\r\ncd\r\n", nil, []got{{"ab", 0, 1}, {"cd", 0, 2}}},
		{"lone carriage return", "a\rb\n", nil, []got{{"a\rb", 0, 1}}},
		{"two carriage returns", "a\r\r\n", nil, []got{{"a\r", 0, 1}}},
		{"no end", "a\nb", nil, []got{{"a", 0, 1}, {"b", Unterminated, 2}}},
		{"half an end", "a\r", nil, []got{{"a", Unterminated, 1}}},
		{"blank", "\n\r\n \t\na\n\n", nil, []got{{"a", 0, 4}}},
		{"blank kept", "\n a\n \n", []Option{KeepBlank}, []got{{"", 0, 1}, {" a", 0, 2}, {" ", 0, 3}}},
		{"blank at the end", "a\n  ", nil, []got{{"a", 0, 1}}},
		{"mark", "\ufeffa\n\ufeffb\n", []Option{SkipBOM}, []got{{"a", 0, 1}, {"\ufeffb", 0, 2}}},
		{"mark at the limit", "\ufeff12345678\n", []Option{SkipBOM}, []got{{"12345678", 0, 1}}},
		{"mark not asked for", "\ufeffa\n", nil, []got{{"\ufeffa", 0, 1}}},
		{"only one mark", "\ufeff\ufeffa\n", []Option{SkipBOM}, []got{{"\ufeffa", 0, 1}}},
		{"half a mark", "\xef\xbb", []Option{SkipBOM}, []got{{"\xef\xbb", Unterminated, 1}}},
		{"only a mark", "\ufeff", []Option{SkipBOM}, nil},
		{"too long", "123456789\nab\n", nil, []got{{"", TooLong, 1}, {"ab", 0, 2}}},
		{"too long without an end", "ab\n1234567890", nil, []got{{"ab", 0, 1}, {"", TooLong, 2}}},
		{"too long and blank", "         \nab\n", nil, []got{{"", TooLong, 1}, {"ab", 0, 2}}},
		{"a return where the limit is", "12345678\r9\nab\n", nil, []got{{"", TooLong, 1}, {"ab", 0, 2}}},
	} {
		for _, n := range []int{1, 2, 3, 1000} {
			t.Run(fmt.Sprintf("%s/%d", c.name, n), func(t *testing.T) {
				r := NewReader(&pieces{[]byte(c.in), n}, limit, c.options...)
				if lines := readAll(t, r); !equal(lines, c.want) {
					t.Errorf("got %+v, want %+v", lines, c.want)
				}
			})
		}
	}
}

// The edge is at the same content length in every form.
func TestF7Edge(t *testing.T) {
	for _, limit := range []int{1, 999, 64 << 10, 1 << 20} {
		sizes := []int{1000, 1 << 20}
		if limit < 1<<20 {
			sizes = append(sizes, 1)
		}
		for _, size := range sizes {
			for _, end := range []string{"\n", "\r\n", "", "\r"} {
				for extra := range 2 {
					t.Run(fmt.Sprintf("%d/%d/%q/%d", limit, size, end, extra), func(t *testing.T) {
						edge(t, limit, size, end, extra)
					})
				}
			}
		}
	}
}

func edge(t *testing.T, limit, size int, end string, extra int) {
	line := strings.Repeat("x", limit+extra)
	r := NewReader(&pieces{[]byte(line + end), size}, limit)
	lines := readAll(t, r)
	if len(lines) != 1 {
		t.Fatalf("got %d lines, want 1", len(lines))
	}
	tooLong := lines[0].flags&TooLong != 0
	if want := extra > 0; tooLong != want {
		t.Errorf("a line of %d bytes with the limit %d: too long %v, want %v", limit+extra, limit, tooLong, want)
	}
	if !tooLong && lines[0].text != line {
		t.Error("the content is not what was written")
	}
	if tooLong && lines[0].text != "" {
		t.Errorf("%d bytes of a line that is too long were returned", len(lines[0].text))
	}
}

// No piece of a line that is too long is ever read as a line.
func TestF8TailOfALongLine(t *testing.T) {
	const limit = 64
	in := "good\n" + strings.Repeat("x", limit) + `{"type":"result"}` + "\r" + `{"type":"terminal"}` + "\nreal\n"
	want := []got{{"good", 0, 1}, {"", TooLong, 2}, {"real", 0, 3}}
	for n := 1; n < len(in); n++ {
		if lines := readAll(t, NewReader(&pieces{[]byte(in), n}, limit)); !equal(lines, want) {
			t.Fatalf("in pieces of %d: got %+v, want %+v", n, lines, want)
		}
	}
}

// endless gives n bytes without a newline.
type endless struct{ left int }

func (e *endless) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), e.left)
	clear(b[:n])
	e.left -= n
	return n, nil
}

// A line of any length is drained in memory that does not depend on it, is told
// as soon as it is known, and the line after it is whole.
func TestF9LongLineInFlatMemory(t *testing.T) {
	const limit, long = 64 << 10, 64 << 20
	in := &endless{long}
	r := NewReader(io.MultiReader(in, strings.NewReader("\nwhole\n")), limit)
	var b Batch
	if err := r.ReadBatch(&b); err != nil || len(b.Lines) != 1 || b.Lines[0].Flags != TooLong {
		t.Fatalf("got %v, %v; want one line that is too long", b.Lines, err)
	}
	if read := long - in.left; read > limit+2*chunk {
		t.Errorf("%d bytes were read before the line was told to be too long", read)
	}
	if err := r.ReadBatch(&b); err != nil || len(b.Lines) != 1 || string(b.Bytes(b.Lines[0])) != "whole" {
		t.Fatalf("got %v, %v; want the next line", b.Lines, err)
	}
	if most := limit + lineEnd + chunk; cap(b.Buf) > most || cap(r.carry) > most {
		t.Errorf("the buffers hold %d and %d bytes, want at most %d", cap(b.Buf), cap(r.carry), most)
	}
}

func TestReadBatchTakesWhatIsThere(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	go func() {
		out.Write([]byte("a\nb\nhal"))
		out.Write([]byte("f\nc\n"))
		out.Close()
	}()
	r := NewReader(in, 100)
	var first, second Batch
	if err := r.ReadBatch(&first); err != nil {
		t.Fatal(err)
	}
	if err := r.ReadBatch(&second); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, b := range []*Batch{&first, &second} {
		for _, l := range b.Lines {
			texts = append(texts, string(b.Bytes(l)))
		}
		texts = append(texts, "|")
	}
	if got, want := strings.Join(texts, " "), "a b | half c |"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := r.ReadBatch(&first); !errors.Is(err, io.EOF) || len(first.Lines) != 0 {
		t.Errorf("got %v, %v; want no lines and EOF", first.Lines, err)
	}
}

func TestReadErrorComesAfterTheLines(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken))
	r := NewReader(in, 100)
	for _, want := range []got{{"a", 0, 1}, {"b", Unterminated, 2}} {
		line, flags, err := r.Next()
		if err != nil || string(line) != want.text || flags != want.flags {
			t.Fatalf("got %q, %v, %v; want %v", line, flags, err, want)
		}
	}
	for range 2 {
		if _, _, err := r.Next(); !errors.Is(err, broken) {
			t.Fatalf("got %v, want the error of the input", err)
		}
	}
}

func TestDataAndErrorInOneRead(t *testing.T) {
	r := NewReader(iotest.DataErrReader(strings.NewReader("a\nb\n")), 100)
	if lines := readAll(t, r); !equal(lines, []got{{"a", 0, 1}, {"b", 0, 2}}) {
		t.Errorf("got %+v", lines)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestReaderWithoutProgress(t *testing.T) {
	if _, _, err := NewReader(idle{}, 100).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v, want io.ErrNoProgress", err)
	}
}

// model splits a whole input the simple way.
func model(in []byte, limit int) []got {
	var out []got
	lines := bytes.Split(in, []byte{'\n'})
	for i, line := range lines {
		var flags Flag
		if i == len(lines)-1 {
			if len(line) == 0 {
				break
			}
			flags = Unterminated
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		switch {
		case len(line) > limit:
			out = append(out, got{"", TooLong, int64(i + 1)})
		case len(bytes.Trim(line, " \t\r")) > 0:
			out = append(out, got{string(line), flags, int64(i + 1)})
		}
	}
	return out
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("a\r\nb\n\n12345678\r\n123456789\nlast\r"), uint8(8), uint16(1))
	f.Add([]byte("\n \n\r\r\n"), uint8(1), uint16(3))
	f.Fuzz(func(t *testing.T, in []byte, limit uint8, size uint16) {
		bound, n := int(limit)+1, int(size)+1
		want := model(in, bound)
		lines := readAll(t, NewReader(&pieces{bytes.Clone(in), n}, bound))
		if !equal(lines, want) {
			t.Fatalf("got %+v, want %+v", lines, want)
		}
		for _, l := range lines {
			if len(l.text) > bound {
				t.Fatalf("a line of %d bytes, limit %d", len(l.text), bound)
			}
		}
	})
}

func BenchmarkReadBatch(b *testing.B) {
	data := bytes.Repeat([]byte(strings.Repeat("x", 199)+"\n"), 10000)
	var batch Batch
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(data), 64<<10)
		for r.ReadBatch(&batch) == nil {
		}
	}
}
