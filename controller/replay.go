package controller

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"prp/protocol"
	"prp/protocol/jsonl"
)

// Rules that a line of a recorded stream can break ([Problem.Rule]).
const (
	// RuleLine is a line that is no message of the stream.
	RuleLine = "line"
	// RuleBinding is an event of another run, session or source.
	RuleBinding = "binding"
	// RuleSequence is an event that is not the next one.
	RuleSequence = "sequence"
	// RulePayload is an event whose payload its type does not have.
	RulePayload = "payload"
	// RuleTerminal is a stream that does not end with run.terminal.
	RuleTerminal = "terminal"
)

// Problem is one thing that is wrong with a recorded stream.
type Problem struct {
	// Line is the number of the line, from 1, counting blank ones; 0 where the
	// stream has none.
	Line int64 `json:"line"`
	// Path is the member, for example "message.event.sourceSeq"; empty for the line.
	Path string `json:"path,omitempty"`
	// Rule is one of the Rule constants.
	Rule string `json:"rule"`
	// Detail says what was expected and what was seen.
	Detail string `json:"detail"`
}

// String is the problem as one line.
func (p Problem) String() string {
	text := join(": ", p.Path, p.Detail+" ("+p.Rule+")")
	if p.Line == 0 {
		return text
	}
	return fmt.Sprintf("line %d: %s", p.Line, text)
}

// Replayer checks and folds a recorded stream, a trace or a journal, line by
// line. It is not for use by several goroutines.
type Replayer struct {
	// Snapshot is the fold of the events so far.
	Snapshot Snapshot
	// Lines, Events, Receipts and Diagnostics count what was read.
	Lines, Events, Receipts, Diagnostics int64

	decoder *protocol.Decoder
	bound   binding
	line    int64
	limit   int
	refused Problem // the first line that is no message
}

// NewReplayer is a replayer that has read nothing.
func NewReplayer() *Replayer {
	return &Replayer{decoder: protocol.NewDecoder(), limit: defaultStreamLine}
}

// Message checks and folds the line with the given number. It returns the
// message, where there is one, and what is wrong with it. After a problem the
// replay goes on: an event that can be read is folded, and the snapshot's
// integrity tells the rest.
func (r *Replayer) Message(number int64, line []byte, flags jsonl.Flag) (protocol.StreamMessage, []Problem) {
	r.line = number
	r.Lines++
	m, err := decodeLine(r.decoder, number, line, flags, r.limit)
	if err != nil {
		b := new(BindingError)
		errors.As(err, &b)
		p := Problem{Line: number, Path: b.Path, Rule: RuleLine, Detail: b.Detail}
		if r.refused.Rule == "" {
			r.refused = p
		}
		return m, []Problem{p}
	}
	switch m.Kind {
	case protocol.KindReceipt:
		r.Receipts++
	case protocol.KindDiagnostic:
		r.Diagnostics++
	case protocol.KindEvent:
		return m, r.event(m.Event)
	}
	return m, nil
}

// event checks the place of an event and folds it.
func (r *Replayer) event(e *protocol.Event) []Problem {
	var problems []Problem
	r.Events++
	if path, detail := r.bound.check(e); detail != "" {
		rule := RuleBinding
		switch path {
		case "message.event.sourceSeq":
			rule = RuleSequence
			r.bound.last = max(r.bound.last, e.SourceSeq) // one gap is one problem
		case "message.event":
			rule = RuleTerminal
		}
		problems = append(problems, Problem{Line: r.line, Path: path, Rule: rule, Detail: detail})
	}
	unreadable := len(r.Snapshot.Integrity.Unreadable)
	r.Snapshot.Apply(*e)
	if len(r.Snapshot.Integrity.Unreadable) > unreadable {
		problems = append(problems, Problem{
			Line: r.line, Path: "message.event.payload", Rule: RulePayload,
			Detail: fmt.Sprintf("expected the payload of %q, got another shape", e.EventType),
		})
	}
	return problems
}

// End says what is wrong with a stream that ends here.
func (r *Replayer) End() []Problem {
	if r.bound.ended {
		return nil
	}
	seen := "the end of the stream"
	if r.Lines == 0 {
		seen = "an empty stream"
	}
	return []Problem{{Line: r.line, Rule: RuleTerminal, Detail: "expected run.terminal at the end, got " + seen}}
}

// NoRecord tells a file of another kind from a record with mistakes: it is an
// error of one line where lines were read and none of them was a message, with
// what is wrong with the first. Ask at the end of the file; an empty one is a
// record that has not begun.
func (r *Replayer) NoRecord() error {
	if r.Lines == 0 || r.Events+r.Receipts+r.Diagnostics > 0 {
		return nil
	}
	seen := "1 line"
	if r.Lines > 1 {
		seen = fmt.Sprintf("%d lines", r.Lines)
	}
	return fmt.Errorf("expected a recorded run, which is lines of JSON of the schema %s as 'prp run --record' writes them, got %s of something else; %s",
		protocol.SchemaStream, seen, r.refused)
}

// Replay reads a recorded stream to its end and returns its replayer and all
// problems. The error is one of reading.
func Replay(in io.Reader) (*Replayer, []Problem, error) {
	r := NewReplayer()
	var problems []Problem
	lines := jsonl.NewReader(in, r.limit)
	for {
		line, flags, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return r, append(problems, r.End()...), nil
		}
		if err != nil {
			return r, problems, err
		}
		_, found := r.Message(lines.LineNumber(), line, flags)
		problems = append(problems, found...)
	}
}

// Verdict says in one line what a replay has shown.
func (r *Replayer) Verdict(problems int) string {
	parts := []string{fmt.Sprintf("%d events", r.Events)}
	if t := r.Snapshot.Terminal; t != nil {
		parts = append(parts, fmt.Sprintf("run %s (%s)", t.RunTerminalState, t.Reconciliation.Reason))
	} else {
		parts = append(parts, "no terminal")
	}
	switch problems {
	case 0:
		parts = append(parts, "valid")
	case 1:
		parts = append(parts, "1 problem")
	default:
		parts = append(parts, fmt.Sprintf("%d problems", problems))
	}
	return strings.Join(parts, ", ")
}
