package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

const (
	binaryMark = "GIT binary patch"
	// maxBinary bounds binary hunks, in bytes of the patch. They are compressed,
	// the parser unpacks them whole, and a byte can become a thousand: so they
	// stay below what a patch may change (maxPatchBytes).
	maxBinary = 64 << 10
)

// parseUnified reads a unified diff.
func parseUnified(text string) ([]fileEdit, error) {
	if i := strings.Index("\n"+text, "\n"+binaryMark); i >= 0 && len(text)-i > maxBinary {
		return nil, refuse(TooLarge, "", "expected at most %d bytes from the first binary hunk on, got %d; use file.write", maxBinary, len(text)-i)
	}
	text, hunks := normalize(text)
	parsed, _, err := gitdiff.Parse(strings.NewReader(text))
	if err != nil {
		return nil, patchError("", 0, "the diff cannot be read: %s", err)
	}
	fragments := 0
	for _, f := range parsed {
		fragments += len(f.TextFragments)
	}
	// The parser takes what it does not know for text between files.
	if hunks != fragments {
		return nil, patchError("", 0, "expected %d hunks that belong to a file, got %d", hunks, fragments)
	}
	var edits []fileEdit
	for _, f := range parsed {
		e, err := unifiedEdit(f)
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
	}
	return edits, nil
}

// normalize counts the hunks of a diff, and takes a/ and b/ off the names of a
// header that is not git's: the parser does that for git's only, and does not
// tell which it was.
func normalize(text string) (string, int) {
	lines := strings.SplitAfter(text, "\n")
	hunks, old, fresh := 0, 0, 0
	git := false
	for i, line := range lines {
		switch {
		case old > 0 || fresh > 0:
			switch {
			case strings.HasPrefix(line, "-"):
				old--
			case strings.HasPrefix(line, "+"):
				fresh--
			case !strings.HasPrefix(line, `\`):
				old--
				fresh--
			}
		case strings.HasPrefix(line, "diff --git "):
			git = true
		case strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			if !git {
				lines[i], lines[i+1] = withoutPrefixes(line, lines[i+1])
			}
			git = false
		default:
			if a, b, ok := hunkSizes(line); ok {
				hunks, old, fresh = hunks+1, a, b
			}
		}
	}
	return strings.Join(lines, ""), hunks
}

// withoutPrefixes takes "--- a/" and "+++ b/" apart where both have it, or one
// is no file.
func withoutPrefixes(old, fresh string) (string, string) {
	const null = "/dev/null"
	a, hasA := strings.CutPrefix(old, "--- a/")
	b, hasB := strings.CutPrefix(fresh, "+++ b/")
	noA, noB := strings.HasPrefix(old, "--- "+null), strings.HasPrefix(fresh, "+++ "+null)
	if (hasA || noA) && (hasB || noB) {
		if hasA {
			old = "--- " + a
		}
		if hasB {
			fresh = "+++ " + b
		}
	}
	return old, fresh
}

// hunkSizes reads how many lines a hunk has, from "@@ -1,2 +3,4 @@".
func hunkSizes(line string) (old, fresh int, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return 0, 0, false
	}
	a, rest, ok := strings.Cut(rest, " +")
	b, _, ok2 := strings.Cut(rest, " @@")
	if !ok || !ok2 {
		return 0, 0, false
	}
	size := func(s string) int {
		from, n := 0, 1
		if strings.Contains(s, ",") {
			if _, err := fmt.Sscanf(s, "%d,%d", &from, &n); err != nil {
				return 1
			}
		}
		return n
	}
	return size(a), size(b), true
}

// Kinds of a file in the modes that git writes.
const (
	gitKind    = 0o170000
	gitRegular = 0o100000
)

func unifiedEdit(f *gitdiff.File) (fileEdit, error) {
	e := fileEdit{from: f.OldName, to: f.NewName, mode: f.NewMode.Perm()}
	for _, mode := range []uint32{uint32(f.OldMode), uint32(f.NewMode)} {
		if mode != 0 && mode&gitKind != gitRegular {
			return e, patchError(f.NewName, 0, "expected a regular file, got mode %o", mode)
		}
	}
	if f.IsCopy {
		return e, patchError(f.NewName, 0, "expected no copy, which is not supported")
	}
	name := e.to
	switch {
	case f.IsNew:
		e.from = ""
	case f.IsDelete:
		e.to, name = "", e.from
	}
	e.apply = func(ctx context.Context, before []byte) ([]byte, error) { return applyUnified(ctx, name, f, before) }
	return e, nil
}

// applyUnified moves each hunk to where its lines stand, and then lets the
// library apply all of them, into memory since it writes what comes before a
// conflict.
func applyUnified(ctx context.Context, name string, f *gitdiff.File, before []byte) ([]byte, error) {
	lines := linesOf(before)
	from, shift := 0, int64(0)
	for i, h := range f.TextFragments {
		var old []string
		for _, l := range h.Lines {
			if l.Old() {
				old = append(old, l.Line)
			}
		}
		want := int(h.OldPosition - 1 + shift)
		if h.OldLines == 0 {
			want++ // the position is the line before
		}
		at, err := nearest(ctx, lines, old, want, from)
		if err != nil {
			return nil, err
		}
		if at < 0 {
			return nil, patchError(name, i+1, "its %d old lines are not in the file", len(old))
		}
		shift += int64(at - want)
		// The library counts the place of an insertion like any other.
		h.OldPosition = int64(at + 1)
		from = at + len(old)
	}
	if f.IsDelete && !f.IsBinary && from < len(lines) {
		return nil, patchError(name, 0, "the file to delete has lines that the patch does not have")
	}
	var out bytes.Buffer
	if err := gitdiff.Apply(&out, bytes.NewReader(before), f); err != nil {
		hunk := 0
		var at *gitdiff.ApplyError
		if errors.As(err, &at) {
			hunk = at.Fragment
		}
		return nil, patchError(name, hunk, "%s", err)
	}
	return out.Bytes(), nil
}

// nearest finds lines in a file at or after from, as near to a place as can be;
// of two places that are equally near, the first. -1 is nowhere. The error is the
// cause of ctx: in a file of many equal lines it takes long.
func nearest(ctx context.Context, lines, old []string, want, from int) (int, error) {
	last := len(lines) - len(old)
	if last < from {
		return -1, nil
	}
	want = min(max(want, from), last)
	for d := 0; want-d >= from || want+d <= last; d++ {
		if ctx.Err() != nil {
			return -1, context.Cause(ctx)
		}
		for _, at := range []int{want - d, want + d} {
			if at >= from && at <= last && slices.Equal(lines[at:at+len(old)], old) {
				return at, nil
			}
		}
	}
	return -1, nil
}
