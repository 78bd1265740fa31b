package worker

import (
	"encoding/json"
	"fmt"

	"prp/controller/bridge"
	"prp/protocol"
)

// Codes of the command harness that tell that the program did not run.
const (
	diagNotStarted = "command_not_started"
	diagRefused    = "turn_refused"
)

// watched is what the events of a run tell about its command. It is pure: it is
// fed with events and says what they mean.
type watched struct {
	stdout, stderr capture
	replaced       int64
	// started tells that the program runs; pid and startedAt identify it.
	started   bool
	pid       int64
	startedAt string
	// notStarted is why the program could not be started.
	notStarted string
	// stdoutBytes and stderrBytes are the program's own count, -1 before.
	stdoutBytes, stderrBytes int64
}

func newWatched(m *bridge.Masker) *watched {
	return &watched{
		stdout: capture{mask: m.Stream()}, stderr: capture{mask: m.Stream()}, stdoutBytes: -1, stderrBytes: -1,
	}
}

// member reads a member of a payload; the zero value where it is absent or of
// another type.
func member[T any](p bridge.Members, name string) (v T) {
	_ = json.Unmarshal(p[name], &v)
	return v
}

// apply takes one event. It returns the text that came, if any.
func (w *watched) apply(e *protocol.Event) (stream, delta string) {
	switch e.EventType {
	case protocol.EventItemStarted, protocol.EventItemDelta, protocol.EventItemCompleted, protocol.EventItemFailed, protocol.EventHarnessDiag:
	default:
		return "", ""
	}
	var p bridge.Members // the names are compared exactly
	if json.Unmarshal(e.Payload, &p) != nil {
		return "", ""
	}
	switch e.EventType {
	case protocol.EventItemStarted:
		w.pid, w.startedAt = member[int64](p, "pid"), member[string](p, "startedAt")
		w.started = w.pid != 0
	case protocol.EventItemDelta:
		w.replaced += member[int64](p, "replacedBytes")
		stream, delta = member[string](p, "stream"), member[string](p, "delta")
		if stream == protocol.LogStderr {
			w.stderr.add(delta)
		} else {
			w.stdout.add(delta)
		}
		return stream, delta
	case protocol.EventHarnessDiag:
		if code := member[string](p, "code"); code == diagNotStarted || code == diagRefused {
			w.notStarted = member[string](p, "message")
		}
	default:
		out, errs := member[*int64](p, "stdoutBytes"), member[*int64](p, "stderrBytes")
		if out != nil && errs != nil {
			w.stdoutBytes, w.stderrBytes = *out, *errs
		}
	}
	return "", ""
}

// end closes the captures.
func (w *watched) end() {
	w.stdout.end()
	w.stderr.end()
	if w.stdoutBytes < 0 {
		w.stdoutBytes, w.stderrBytes = w.stdout.total, w.stderr.total
	}
}

// ranResult is the result of command.run.
type ranResult struct {
	// ExitCode and Signal: one of them is null (row 5).
	ExitCode        *int  `json:"exit_code"`
	Signal          *int  `json:"signal"`
	StdoutBytes     int64 `json:"stdout_bytes"`
	StderrBytes     int64 `json:"stderr_bytes"`
	StdoutTruncated bool  `json:"stdout_truncated"`
	StderrTruncated bool  `json:"stderr_truncated"`
	// ReplacedBytes counts bytes that were no UTF-8.
	ReplacedBytes int64 `json:"replaced_bytes,omitempty"`
	// Reason is the runner's reason for the end of the run.
	Reason protocol.Reason `json:"reason,omitempty"`
	// ProcessID is set for a command in the background.
	ProcessID string `json:"process_id,omitempty"`
	PID       int64  `json:"pid,omitempty"`
	StartedAt string `json:"started_at,omitempty"`
}

// outcome is how an execution ended, before it is an envelope.
type outcome struct {
	status  Status
	err     *Error
	result  any
	watched *watched // of a command
}

func failed(err *Error) outcome { return outcome{status: StatusError, err: err} }

func succeeded(result any) outcome { return outcome{status: StatusSuccess, result: result} }

// ended says what the end of a run means for its command (rows 5 and 7). The
// terminal is nil where the runner died without one.
func (w *watched) ended(t *protocol.Terminal) outcome {
	w.end()
	o := outcome{status: StatusSuccess, watched: w}
	r := ranResult{StdoutBytes: w.stdoutBytes, StderrBytes: w.stderrBytes, ReplacedBytes: w.replaced}
	if t == nil {
		o.status, o.err = StatusError, fault(CodeOutcomeUnknown, "the runner died before it told the end of the command")
		o.result = r
		return o
	}
	r.Reason = t.Reconciliation.Reason
	if exit := t.Reconciliation.ProcessExit; exit != nil {
		r.ExitCode, r.Signal = exit.ExitCode, exit.Signal
	}
	o.result = r
	switch t.Reconciliation.Reason {
	case protocol.ReasonSuccess, protocol.ReasonProcessFailed, protocol.ReasonResultMissing:
		if !w.started {
			why := w.notStarted
			if why == "" {
				why = "it did not come to its start"
			}
			o.status, o.err = StatusError, fault(CodeNotStarted, "the command could not be started: %s", why)
			o.err.Details["field"] = "argv"
		}
	case protocol.ReasonStartFailed, protocol.ReasonNotReady:
		o.status, o.err = StatusError, fault(CodeNotStarted, "the command could not be started: %s", t.Reconciliation.Reason)
	case protocol.ReasonRunCancelled, protocol.ReasonRunnerShutdown, protocol.ReasonTurnInterrupted:
		o.status, o.err = StatusCancelled, fault(CodeCancelled, "the command was cancelled")
	case protocol.ReasonControllerClosed, protocol.ReasonRunnerTerminated:
		o.status, o.err = StatusCancelled, fault(CodeCancelled, "the command was ended with the worker")
	default:
		o.status, o.err = StatusError, fault(CodeInternal, "the run of the command failed: %s", t.Reconciliation.Reason)
	}
	return o
}

// timedOut is ended for a run that was ended since its time was up.
func (w *watched) timedOut(t *protocol.Terminal, x *execution) outcome {
	o, late := w.ended(t), tooLate(x)
	o.status, o.err = late.status, late.err
	return o
}

// resultBytes bounds a result's frame, in bytes: what is left for the number.
const resultBytes = MaxFrame - 64

// encode makes the envelope of an outcome as JSON of at most [resultBytes].
// Output that does not fit is cut further.
func (o outcome) encode(r Result, mask *bridge.Masker) []byte {
	r.Status, r.Error, r.Artifacts = o.status, o.err, []any{}
	for most := keepHead + keepTail; ; most /= 2 {
		result := o.result
		if o.watched != nil {
			ran, _ := o.result.(ranResult)
			r.Stdout, ran.StdoutTruncated = o.watched.stdout.text(most)
			r.Stderr, ran.StderrTruncated = o.watched.stderr.text(most)
			result = ran
		}
		r.Result = maskedJSON(result, mask)
		r.Error = maskedError(o.err, mask)
		b, err := json.Marshal(r)
		if err == nil && len(b) <= resultBytes {
			return b
		}
		if o.watched == nil || most < 1024 {
			code, about := CodeInternal, "the result"
			if o.err != nil {
				code, about = o.err.Code, "what is said of it"
			}
			o = failed(fault(code, "%s does not fit into a frame of %d bytes", about, MaxFrame))
			r.Status, r.Stdout, r.Stderr = o.status, "", ""
		}
	}
}

func maskedError(e *Error, mask *bridge.Masker) *Error {
	if e == nil {
		return nil
	}
	out := *e
	out.Message = mask.String(e.Message)
	if out.Details == nil {
		out.Details = map[string]any{}
	}
	var details map[string]any
	if json.Unmarshal(maskedJSON(out.Details, mask), &details) == nil {
		out.Details = details
	}
	return &out
}

// maskedJSON encodes a value with every secret in it masked.
func maskedJSON(v any, mask *bridge.Masker) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		raw, _ = json.Marshal(fmt.Sprintf("not encoded: %s", err))
	}
	return mask.JSON(raw)
}
