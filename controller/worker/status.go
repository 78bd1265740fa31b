package worker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"prp/controller/files"
	"prp/protocol"
)

// maxRead bounds what one process.status reads, in bytes.
const maxRead = 256 << 10

// statusArgs are the arguments of process.status.
type statusArgs struct {
	ProcessID string `json:"process_id"`
	// Stream is stdout where it is empty. Offset is where to read from, and
	// MaxBytes how much; 0 reads nothing.
	Stream   string `json:"stream,omitempty"`
	Offset   int64  `json:"offset,omitempty"`
	MaxBytes int64  `json:"max_bytes,omitempty"`
}

// statusResult is the result of process.status.
type statusResult struct {
	processStatus
	Output *processOutput `json:"output"`
}

// processOutput is a part of the output. NextOffset is where to go on.
type processOutput struct {
	Stream     string `json:"stream"`
	Offset     int64  `json:"offset"`
	NextOffset int64  `json:"next_offset"`
	Encoding   string `json:"encoding"`
	Content    string `json:"content"`
}

func makeStatus(w *Worker, x *execution) (subject, *Error) {
	args := statusArgs{Stream: protocol.LogStdout}
	if e := decodeArgs(&x.command, &args); e != nil {
		return subject{}, e
	}
	switch {
	case !slices.Contains([]string{protocol.LogStdout, protocol.LogStderr}, args.Stream):
		return subject{}, badField("args.stream", "expected %q or %q, got %q", protocol.LogStdout, protocol.LogStderr, args.Stream)
	case args.Offset < 0 || args.MaxBytes < 0 || args.MaxBytes > maxRead:
		return subject{}, badField("args.max_bytes", "expected an offset from 0 and max_bytes from 0 to %d", maxRead)
	}
	x.do = func(context.Context, *execution) outcome {
		p := w.processes[args.ProcessID]
		if p == nil {
			e := fault(CodeProcessNotFound, "there is no process %q, or it has ended more than %s ago", args.ProcessID, w.cfg.KeepProcess)
			e.Details["field"] = "args.process_id"
			return failed(e)
		}
		result := statusResult{processStatus: p.snapshot()}
		if args.MaxBytes > 0 {
			part, err := p.read(args, w.fileMask())
			if err != nil {
				return failed(fault(CodeInternal, "the output cannot be read: %s", err))
			}
			result.Output = part
		}
		return succeeded(result)
	}
	return subject{}, nil
}

// read reads a part of the output, cut at a character: the stream is valid UTF-8,
// and only a part of it may begin or end inside one. What the process has
// written was masked with the secrets of then; the mask hides those of now, such
// as a token that was renewed.
func (p *background) read(args statusArgs, mask *files.Mask) (*processOutput, error) {
	f, err := os.Open(filepath.Join(p.dir, args.Stream))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	edge := int64(0)
	if mask != nil {
		edge = int64(mask.Edge)
	}
	size := max(info.Size()-args.Offset, 0)
	from := max(min(args.Offset, info.Size())-edge, 0)
	b := make([]byte, min(args.Offset, info.Size())-from+min(size, args.MaxBytes+edge))
	n, err := f.ReadAt(b, from)
	if n < len(b) {
		return nil, errors.Join(errors.New("expected more output"), err)
	}
	begin := int(min(args.Offset, info.Size()) - from)
	out := &processOutput{Stream: args.Stream, Offset: args.Offset}
	for end := min(len(b), begin+int(args.MaxBytes)); ; end = begin + (end-begin)/2 {
		end = begin + len(files.WholeText(b[begin:end]))
		out.fill(b, begin, end, mask)
		// What needs escapes takes more room than it has bytes.
		if text, err := json.Marshal(out.Content); err != nil || len(text) <= resultBytes-frameRoom {
			return out, err
		}
	}
}

// fill puts a part of b into the answer.
func (out *processOutput) fill(b []byte, from, to int, mask *files.Mask) {
	part := b[from:to]
	valid := utf8.Valid(part)
	out.NextOffset = out.Offset + int64(len(part))
	if mask != nil {
		part = mask.Part(b, from, to)
	}
	if out.Encoding, out.Content = files.UTF8, string(part); !valid {
		out.Encoding, out.Content = files.Base64, base64.StdEncoding.EncodeToString(part)
	}
}
