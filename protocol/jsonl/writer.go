package jsonl

import "io"

// Writer writes whole lines, each call in one write of the output, so that a
// reader never sees a line torn by a writer that stops between two of its
// parts.
type Writer struct {
	out io.Writer
	buf []byte
	err error
}

// NewWriter returns a writer of lines to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// WriteLine writes one line and its end. The line has no \n inside; one at its
// end is not doubled.
func (w *Writer) WriteLine(line []byte) error {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		return w.WriteLines(line)
	}
	w.buf = append(append(w.buf[:0], line...), '\n')
	return w.WriteLines(w.buf)
}

// WriteLines writes a batch of whole lines that have their ends. It blocks as
// the output does. After an error, also a short write, a line may be torn:
// nothing more is written and every later call returns that error.
func (w *Writer) WriteLines(lines []byte) error {
	if w.err != nil {
		return w.err
	}
	n, err := w.out.Write(lines)
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	w.err = err
	return err
}
