package connector

import (
	"encoding/json"
	"fmt"
	"strings"

	"prp/controller/bridge"
	"prp/protocol"
)

// completion is the payload of the one completion of a run (row 10).
type completion struct {
	Status RunStatus `json:"status"`
	// ExitCode is null where the harness did not exit by itself; Signal is
	// what ended it.
	ExitCode *int            `json:"exit_code"`
	Signal   *int            `json:"signal,omitempty"`
	Summary  string          `json:"summary"`
	Usage    json.RawMessage `json:"usage,omitempty"`
	Error    *endError       `json:"error,omitempty"`
	// Reason is the runner's reason for the end, Disposition what the harness
	// says about its work: three facts, none replaces another (prp.md section 5).
	Reason protocol.Reason `json:"reason,omitempty"`
	// Cause is why the connector has ended the run, where it was the connector.
	Cause       string               `json:"cause,omitempty"`
	Disposition protocol.Disposition `json:"disposition,omitempty"`
	NewRunID    string               `json:"new_run_id,omitempty"`
	SourceEvent protocol.EventType   `json:"source_event,omitempty"`
	SourceSeq   int64                `json:"source_seq,omitempty"`
}

// endError is why a run did not succeed.
type endError struct {
	Code    Code   `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Reasons of ends that the connector makes.
const (
	reasonTokens    = "max_tokens_exceeded"
	reasonQuota     = "quota_exceeded"
	reasonHandedOff = "handed_off"
	reasonStopAll   = "stopped"
	reasonCancelled = "cancelled_before_start"
	reasonNoRunner  = "runner_not_started"
	reasonNotGoing  = "turn_not_started"
	reasonUnknown   = "outcome_unknown"
)

// statusOf is the status of a terminal.
func statusOf(s protocol.RunTerminalState) RunStatus {
	switch s {
	case protocol.RunSucceeded:
		return StatusSucceeded
	case protocol.RunCancelled:
		return StatusCancelled
	}
	return StatusFailed
}

// completed is the completion of a run that has a terminal.
func (t *translation) completed(e *protocol.Event) event {
	var term protocol.Terminal
	if bridge.Decode(e.Payload, &term) != nil {
		return t.lost(e.EmittedAt, "the terminal of the run cannot be read")
	}
	c := completion{
		Status: statusOf(term.RunTerminalState), Reason: term.Reconciliation.Reason,
		Disposition: term.ReportedWorkDisposition, SourceEvent: e.EventType, SourceSeq: e.SourceSeq,
	}
	if exit := term.Reconciliation.ProcessExit; exit != nil {
		c.ExitCode, c.Signal = exit.ExitCode, exit.Signal
	}
	if c.Status == StatusFailed {
		c.Error = &endError{
			Code: CodeAdapter, Reason: string(c.Reason),
			Message: fmt.Sprintf("the run ended as %s: %s", c.Status, c.Reason),
		}
	}
	return t.complete(c, e.EmittedAt)
}

// complete adds what the translation knows. A cause of ours replaces the status
// of a run that we have ended, and never that of one that had succeeded.
func (t *translation) complete(c completion, at string) event {
	c.Summary, c.Usage = t.summary, t.usage
	if k := t.cause; k != nil && c.Status != StatusSucceeded {
		if c.Status != StatusUnknown {
			c.Status = k.status
		}
		c.why(*k)
	}
	if c.Summary == "" {
		c.Summary = c.words(t.cause)
	}
	c.Summary = t.mask.String(c.Summary)
	if c.Error != nil {
		c.Error.Message = t.mask.String(c.Error.Message)
	}
	var p members
	if json.Unmarshal(marshal(c), &p) != nil {
		p = members{} // cannot be: a struct is an object
	}
	return event{kind: kindCompletion, at: at, payload: p}
}

// why tells a cause of ours. A run that was cancelled as it should be is no error.
func (c *completion) why(k cause) {
	c.Cause, c.NewRunID, c.Error = k.reason, k.newRunID, nil
	if c.Status != StatusCancelled {
		c.Error = &endError{Code: k.code, Reason: k.reason, Message: k.message}
	}
}

// words say in a sentence what a harness without a summary has not said.
func (c *completion) words(k *cause) string {
	switch {
	case c.Error != nil:
		return c.Error.Message
	case k != nil && c.Cause == k.reason:
		return k.message
	}
	return fmt.Sprintf("the run ended as %s: %s", c.Status, c.Reason)
}

// lost is the completion of a run whose end nobody has seen (remote.md rule 4).
func (t *translation) lost(at, why string) event {
	return t.complete(completion{Status: StatusUnknown, Error: &endError{
		Code: CodeInternal, Reason: reasonUnknown, Message: why + "; it was not run again",
	}}, at)
}

// unstarted is the completion of a run that came to no start.
func (t *translation) unstarted(at string, k cause) event {
	if t.cause == nil {
		t.cause = &k
	}
	return t.complete(completion{Status: k.status}, at)
}

// warning is an event of the connector itself.
func warning(at, code, message string, more members) event {
	p := members{"code": quoted(code), "message": quoted(message)}
	for name, raw := range more {
		p[name] = raw
	}
	return event{kind: kindWarning, at: at, payload: p}
}

// runEvent is the frame of an event (seed; row 9).
type runEvent struct {
	Type      string    `json:"type"`
	RunID     string    `json:"run_id"`
	Event     eventKind `json:"event"`
	EventID   string    `json:"event_id"`
	Seq       int64     `json:"seq"`
	Timestamp string    `json:"timestamp"`
	Payload   members   `json:"payload"`
}

// frame is an event with its number.
func (ev event) frame(runID string, seq int64) []byte {
	return marshal(runEvent{
		Type: typeRunEvent, RunID: runID, Event: ev.kind, EventID: fmt.Sprintf("%s_%d", runID, seq),
		Seq: seq, Timestamp: ev.at, Payload: ev.payload,
	})
}

// gapFrame tells events that were dropped while the spool was full (remote.md
// rule 10). Its number is that of the last one, so that the cursor goes on.
func gapFrame(runID string, from, to int64, at string) []byte {
	ev := warning(at, "events_dropped", fmt.Sprintf("%d pieces of text were dropped, since the spool was full", to-from+1), members{
		"from_seq": marshal(from), "to_seq": marshal(to),
	})
	return ev.frame(runID, to)
}

// shorten cuts the longest texts of a run_event until it has at most limit
// bytes. What does not fit even then loses its payload: the number has to
// arrive.
func shorten(frame []byte, limit int) []byte {
	if len(frame) <= limit {
		return frame
	}
	var ev runEvent
	if json.Unmarshal(frame, &ev) != nil {
		return frame
	}
	original := marshal(len(frame))
	for len(frame) > limit {
		longest, size := "", 0
		for name, raw := range ev.Payload {
			if len(raw) > size || len(raw) == size && name < longest {
				longest, size = name, len(raw)
			}
		}
		if size <= shortEnough {
			break
		}
		ev.Payload[longest] = halved(ev.Payload[longest])
		ev.Payload["truncated_from_bytes"] = original
		frame = marshal(ev)
	}
	if len(frame) > limit {
		ev.Payload = members{"truncated_from_bytes": original}
		frame = marshal(ev)
	}
	return frame
}

// shortEnough is the length in bytes of a member that is not cut further.
const shortEnough = 64

// halved is the first half of a text; of anything else it is a remark.
func halved(raw json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return quoted("[left out]")
	}
	return quoted(strings.ToValidUTF8(s[:len(s)/2], ""))
}
