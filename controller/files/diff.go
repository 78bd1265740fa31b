package files

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxDiff bounds a diff in a result, in bytes.
	maxDiff = 64 << 10
	// maxEdits bounds the search for the shortest diff, in lines that differ;
	// past that the part that differs is shown as a whole.
	maxEdits = 1000
	// contextLines stand around a change.
	contextLines = 3
)

// Diff shows a change as a unified diff.
type Diff struct {
	Text string `json:"diff"`
	// Omitted says why there is none, or not all: "binary" or "too large".
	Omitted string `json:"diff_omitted,omitempty"`
}

// diffOf is the diff of several files. Where ctx ends a part that differs is
// shown as a whole: what is shown is no reason to fail.
func diffOf(ctx context.Context, list []change) Diff {
	var d Diff
	for _, c := range list {
		switch text, ok := unified(ctx, &c); {
		case !ok:
			d.Omitted = "binary"
		case len(d.Text)+len(text) > maxDiff:
			d.Omitted = "too large"
		default:
			d.Text += text
		}
	}
	return d
}

// unified is the diff of one file; false where it is binary.
func unified(ctx context.Context, c *change) (string, bool) {
	for _, b := range [][]byte{c.before, c.after} {
		if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
			return "", false
		}
	}
	a, b := linesOf(c.before), linesOf(c.after)
	edits := compare(ctx, a, b)
	name := filepath.ToSlash(c.at.rel)
	old, fresh := "a/"+name, "b/"+name
	if !c.exists {
		old = "/dev/null"
	}
	if c.remove {
		fresh = "/dev/null"
	}
	var out strings.Builder
	for len(edits) > 0 {
		// Changes whose context touches stand in one hunk.
		n := 1
		for n < len(edits) && edits[n].a1-edits[n-1].a2 <= 2*contextLines {
			n++
		}
		if out.Len() == 0 {
			fmt.Fprintf(&out, "--- %s\n+++ %s\n", old, fresh)
		}
		hunk(&out, a, b, edits[:n])
		edits = edits[n:]
	}
	return out.String(), true
}

// linesOf splits a text into lines with their ends.
func linesOf(b []byte) []string {
	lines := strings.SplitAfter(string(b), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// edit says that lines a1 to a2 of the old text are lines b1 to b2 of the new.
type edit struct{ a1, a2, b1, b2 int }

func hunk(out *strings.Builder, a, b []string, edits []edit) {
	first, last := edits[0], edits[len(edits)-1]
	before := min(contextLines, first.a1)
	after := min(contextLines, len(a)-last.a2)
	span := func(from, to int) string {
		if from == to {
			return fmt.Sprintf("%d,0", from) // the line before
		}
		return fmt.Sprintf("%d,%d", from+1, to-from)
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(first.a1-before, last.a2+after), span(first.b1-before, last.b2+after))
	at := first.a1 - before
	for _, e := range edits {
		put(out, ' ', a[at:e.a1])
		put(out, '-', a[e.a1:e.a2])
		put(out, '+', b[e.b1:e.b2])
		at = e.a2
	}
	put(out, ' ', a[at:last.a2+after])
}

func put(out *strings.Builder, mark byte, lines []string) {
	for _, l := range lines {
		out.WriteByte(mark)
		out.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// compare finds the places where two texts differ, the fewest lines where that
// is found within bounds (Myers' greedy algorithm).
func compare(ctx context.Context, a, b []string) []edit {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	list := shortest(ctx, a, b)
	if list == nil {
		list = []edit{{0, len(a), 0, len(b)}}
	}
	for i := range list {
		list[i].a1 += head
		list[i].a2 += head
		list[i].b1 += head
		list[i].b2 += head
	}
	return list
}

// shortest is nil where more than maxEdits lines differ, or ctx ends.
func shortest(ctx context.Context, a, b []string) []edit {
	most := min(len(a)+len(b), maxEdits)
	ends := make([]int, 2*most+2) // how far each diagonal got, k at most+k
	var trace [][]int
	for d := 0; d <= most && ctx.Err() == nil; d++ {
		trace = append(trace, append([]int(nil), ends[most-d:most+d+1]...))
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && ends[most+k-1] < ends[most+k+1] {
				x = ends[most+k+1]
			} else {
				x = ends[most+k-1] + 1
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			if ends[most+k] = x; x >= len(a) && x-k >= len(b) {
				return walkBack(trace, len(a), len(b))
			}
		}
	}
	return nil
}

// walkBack follows the rounds from the end to the start. The round d kept the
// ends of the diagonals -d to d as they were before it.
func walkBack(trace [][]int, x, y int) []edit {
	var list []edit
	for d := len(trace) - 1; d > 0; d-- {
		ends := trace[d]
		k := x - y
		before := k - 1
		if k == -d || k != d && ends[d+k-1] < ends[d+k+1] {
			before = k + 1
		}
		px := ends[d+before]
		py := px - before
		e := edit{px, px + 1, py, py}
		if before > k {
			e = edit{px, px, py, py + 1}
		}
		if n := len(list); n > 0 && list[n-1].a1 == e.a2 && list[n-1].b1 == e.b2 {
			list[n-1].a1, list[n-1].b1 = e.a1, e.b1
		} else {
			list = append(list, e)
		}
		x, y = px, py
	}
	slices.Reverse(list)
	return list
}
