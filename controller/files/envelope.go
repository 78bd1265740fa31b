package files

import (
	"context"
	"slices"
	"strings"
)

// Marks of the envelope.
const (
	envelopeBegin  = "*** Begin Patch"
	envelopeEnd    = "*** End Patch"
	envelopeAdd    = "*** Add File: "
	envelopeUpdate = "*** Update File: "
	envelopeDelete = "*** Delete File: "
	envelopeMove   = "*** Move to: "
	envelopeEOF    = "*** End of File"
)

// chunk is a hunk of an envelope, which has no line numbers.
type chunk struct {
	anchor     string // a line that stands somewhere before it, may be empty
	old, fresh []string
	atEnd      bool
}

// parseEnvelope reads a *** Begin Patch envelope.
func parseEnvelope(text string) ([]fileEdit, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		// The marks may end as the text around them does.
		if strings.HasPrefix(lines[i], "*** ") {
			lines[i] = strings.TrimRight(lines[i], " \t\r")
		}
	}
	if lines[0] != envelopeBegin || lines[len(lines)-1] != envelopeEnd {
		return nil, patchError("", 0, "expected %q to %q", envelopeBegin, envelopeEnd)
	}
	lines = lines[1 : len(lines)-1]
	var edits []fileEdit
	for len(lines) > 0 {
		n := 1
		for n < len(lines) && !isFileMark(lines[n]) {
			n++
		}
		e, err := envelopeFile(lines[0], lines[1:n])
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
		lines = lines[n:]
	}
	return edits, nil
}

func isFileMark(line string) bool {
	return strings.HasPrefix(line, envelopeAdd) || strings.HasPrefix(line, envelopeUpdate) || strings.HasPrefix(line, envelopeDelete)
}

func envelopeFile(mark string, body []string) (fileEdit, error) {
	if name, ok := strings.CutPrefix(mark, envelopeAdd); ok {
		content := []byte{}
		for i, l := range body {
			added, ok := strings.CutPrefix(l, "+")
			if !ok {
				return fileEdit{}, patchError(name, 0, "line %d of the new file: expected it to begin with +", i+1)
			}
			content = append(append(content, added...), '\n')
		}
		return fileEdit{to: name, apply: func(context.Context, []byte) ([]byte, error) { return content, nil }}, nil
	}
	if name, ok := strings.CutPrefix(mark, envelopeDelete); ok {
		if len(body) > 0 {
			return fileEdit{}, patchError(name, 0, "expected nothing after a deletion")
		}
		return fileEdit{from: name, apply: func(context.Context, []byte) ([]byte, error) { return nil, nil }}, nil
	}
	name, ok := strings.CutPrefix(mark, envelopeUpdate)
	if !ok {
		return fileEdit{}, patchError("", 0, "expected a line that begins with %q, %q or %q", envelopeAdd, envelopeUpdate, envelopeDelete)
	}
	e := fileEdit{from: name, to: name}
	if len(body) > 0 {
		if to, moved := strings.CutPrefix(body[0], envelopeMove); moved {
			e.to, body = to, body[1:]
		}
	}
	chunks, err := parseChunks(name, body)
	if err != nil {
		return e, err
	}
	if len(chunks) == 0 && e.to == e.from {
		return e, patchError(name, 0, "expected a hunk, got none")
	}
	e.apply = func(ctx context.Context, before []byte) ([]byte, error) {
		return applyChunks(ctx, name, chunks, before)
	}
	return e, nil
}

func parseChunks(name string, body []string) ([]chunk, error) {
	var list []chunk
	for i, l := range body {
		anchor, begins := strings.CutPrefix(l, "@@")
		switch {
		case begins:
			list = append(list, chunk{anchor: strings.TrimPrefix(anchor, " ")})
			continue
		case len(list) == 0:
			list = append(list, chunk{})
		}
		c := &list[len(list)-1]
		switch {
		case c.atEnd:
			return nil, patchError(name, len(list), "expected nothing after %q", envelopeEOF)
		case l == envelopeEOF:
			c.atEnd = true
		case l == "":
			c.old, c.fresh = append(c.old, "\n"), append(c.fresh, "\n")
		case l[0] == ' ':
			c.old, c.fresh = append(c.old, l[1:]+"\n"), append(c.fresh, l[1:]+"\n")
		case l[0] == '-':
			c.old = append(c.old, l[1:]+"\n")
		case l[0] == '+':
			c.fresh = append(c.fresh, l[1:]+"\n")
		default:
			return nil, patchError(name, len(list), "line %d: expected it to begin with a blank, + or -", i+1)
		}
	}
	for i, c := range list {
		if len(c.old) == 0 && len(c.fresh) == 0 {
			return nil, patchError(name, i+1, "expected lines, got none")
		}
	}
	return list, nil
}

// applyChunks applies hunks in their order. A hunk has to fit at exactly one
// place after the one before it, or after its anchor.
func applyChunks(ctx context.Context, name string, chunks []chunk, before []byte) ([]byte, error) {
	lines := linesOf(before)
	// The envelope knows no last line without an end; one keeps it.
	bare := len(lines) > 0 && !strings.HasSuffix(lines[len(lines)-1], "\n")
	if bare {
		lines[len(lines)-1] += "\n"
	}
	var out []string
	from := 0
	for i, c := range chunks {
		at, err := c.place(ctx, name, i+1, lines, from)
		if err != nil {
			return nil, err
		}
		out = append(append(out, lines[from:at]...), c.fresh...)
		from = at + len(c.old)
	}
	out = append(out, lines[from:]...)
	text := strings.Join(out, "")
	if bare && len(out) > 0 && out[len(out)-1] == lines[len(lines)-1] {
		text = strings.TrimSuffix(text, "\n")
	}
	return []byte(text), nil
}

func (c chunk) place(ctx context.Context, name string, number int, lines []string, from int) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if c.anchor != "" {
		i := slices.Index(lines[from:], c.anchor+"\n")
		if i < 0 {
			return 0, patchError(name, number, "its line %q is not in the file", c.anchor)
		}
		from += i + 1
	}
	if len(c.old) == 0 {
		if c.anchor != "" {
			return from, nil
		}
		return len(lines), nil
	}
	if c.atEnd {
		if at := len(lines) - len(c.old); at >= from && slices.Equal(lines[at:], c.old) {
			return at, nil
		}
		return 0, patchError(name, number, "its old lines are not at the end of the file")
	}
	found := -1
	for at := from; at+len(c.old) <= len(lines); at++ {
		if ctx.Err() != nil { // many lines that are equal take long
			return 0, context.Cause(ctx)
		}
		if !slices.Equal(lines[at:at+len(c.old)], c.old) {
			continue
		}
		// After an anchor the first place counts.
		if c.anchor != "" {
			return at, nil
		}
		if found >= 0 {
			return 0, patchError(name, number, "its old lines stand at more than one place; give more of them, or a line after @@")
		}
		found = at
	}
	if found < 0 {
		return 0, patchError(name, number, "its %d old lines are not in the file", len(c.old))
	}
	return found, nil
}
