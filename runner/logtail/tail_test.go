package logtail

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAdd(t *testing.T) {
	for _, c := range []struct {
		name             string
		maxLines, maxLen int
		add              []string
		want             []string
		dropped          int64
	}{
		{"nothing", 2, 100, nil, []string{}, 0},
		{"order", 3, 100, []string{"a", "b"}, []string{"> a", "> b"}, 0},
		{"lines", 2, 100, []string{"a", "b", "c"}, []string{"> b", "> c"}, 1},
		{"exactly the bytes", 9, 6, []string{"a", "b"}, []string{"> a", "> b"}, 0},
		{"one byte more", 9, 6, []string{"a", "bc"}, []string{"> bc"}, 1},
		{"empty line", 9, 100, []string{"a", "", "b"}, []string{"> a", "> ", "> b"}, 0},
		{"newlines", 9, 100, []string{"a\nb\r\nc", "d\n"}, []string{"> a", "> b", "> c", "> d"}, 0},
		{"blank lines inside", 9, 100, []string{"a\n\nb"}, []string{"> a", "> ", "> b"}, 0},
		{"a line above the bytes keeps its head", 9, 6, []string{"x", "abcdefgh"}, []string{"> abcd"}, 1},
		{"cut at a character", 9, 6, []string{"aé€"}, []string{"> aé"}, 0},
		{"cut inside a character", 9, 7, []string{"aé€"}, []string{"> aé"}, 0},
		{"not UTF-8", 9, 100, []string{"a\xffb\xe2\x82"}, []string{"> a\ufffdb\ufffd\ufffd"}, 0},
		{"not UTF-8 and cut", 9, 7, []string{"a\xffb\xff"}, []string{"> a\ufffdb"}, 0},
		{"no lines", 0, 100, []string{"a\nb"}, []string{}, 2},
		{"no bytes", 9, 0, []string{"a", ""}, []string{}, 2},
		{"below zero", -1, -1, []string{"a"}, []string{}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			tail := New(c.maxLines, c.maxLen)
			for _, text := range c.add {
				tail.Add("> ", []byte(text))
			}
			lines, size, dropped := tail.Snapshot()
			if fmt.Sprintf("%q", lines) != fmt.Sprintf("%q", c.want) || dropped != c.dropped {
				t.Errorf("got %q, %d dropped; want %q, %d dropped", lines, dropped, c.want, c.dropped)
			}
			if want := len(strings.Join(lines, "")); size != want {
				t.Errorf("got %d bytes, the lines have %d", size, want)
			}
			if lines == nil {
				t.Error("the lines are nil, which would be null in JSON")
			}
		})
	}
}

// Retained and dropped lines add up, and the tail is the last lines.
func TestF35Numbers(t *testing.T) {
	const added = 10_000
	for _, limits := range [][2]int{{32, 16384}, {32, 100}, {1, 50}, {20_000, 1 << 20}, {500, 777}} {
		tail := New(limits[0], limits[1])
		for i := range added {
			tail.Add("stderr: ", fmt.Appendf(nil, "line %d é", i))
			few := limits[0] <= 32 // a snapshot of many lines at each step would take seconds
			if !few && i%97 != 0 && i != added-1 {
				continue
			}
			lines, size, dropped := tail.Snapshot()
			if int64(len(lines))+dropped != int64(i+1) {
				t.Fatalf("limits %v: %d retained and %d dropped, %d were added", limits, len(lines), dropped, i+1)
			}
			if len(lines) > limits[0] || size > limits[1] {
				t.Fatalf("limits %v: %d lines and %d bytes are retained", limits, len(lines), size)
			}
			for j, line := range lines {
				if want := fmt.Sprintf("stderr: line %d é", i+1-len(lines)+j); line != want {
					t.Fatalf("limits %v: got %q, want %q", limits, line, want)
				}
			}
		}
	}
}

// A flood leaves memory as it is and allocates nothing.
func TestFloodIsFlat(t *testing.T) {
	const maxBytes = 16384
	tail := New(32, maxBytes)
	short, long := []byte("an ordinary line"), bytes.Repeat([]byte("é"), 10<<10)
	flood := func() {
		for range 100 {
			tail.Add("stdout: ", short)
			tail.Add("stdout: ", long)
			tail.Add("stdout: ", short)
		}
	}
	flood()
	if n := testing.AllocsPerRun(20, flood); n > 0 {
		t.Errorf("a flood costs %v allocations", n)
	}
	if most := 8 * maxBytes; cap(tail.buf) > most || len(tail.lengths) > 32 {
		t.Errorf("%d bytes and %d places, want at most %d and 32", cap(tail.buf), len(tail.lengths), most)
	}
}

func TestSnapshotIsACopy(t *testing.T) {
	tail := New(2, 100)
	text := []byte("first")
	tail.Add("", text)
	lines, _, _ := tail.Snapshot()
	copy(text, "#####")
	for range 300 {
		tail.Add("", []byte("other"))
	}
	if lines[0] != "first" {
		t.Errorf("the snapshot has become %q", lines[0])
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("a\nb\r\n\xff€"), uint8(3), uint8(9))
	f.Fuzz(func(t *testing.T, text []byte, maxLines, maxBytes uint8) {
		tail := New(int(maxLines), int(maxBytes))
		added := int64(0)
		for range 5 {
			tail.Add("p: ", text)
			added += int64(max(1, bytes.Count(text, []byte{'\n'})))
			if len(text) > 0 && bytes.IndexByte(text, '\n') >= 0 && text[len(text)-1] != '\n' {
				added++
			}
			lines, size, dropped := tail.Snapshot()
			if int64(len(lines))+dropped != added {
				t.Fatalf("%d retained, %d dropped, %d added", len(lines), dropped, added)
			}
			all := strings.Join(lines, "")
			if len(all) != size || size > int(maxBytes) || len(lines) > int(maxLines) || !utf8.ValidString(all) {
				t.Fatalf("%q: %d bytes said, limits %d and %d", lines, size, maxLines, maxBytes)
			}
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	tail := New(32, 16384)
	text := []byte(strings.Repeat("x", 100))
	b.ReportAllocs()
	for b.Loop() {
		tail.Add("stderr: ", text)
	}
}
