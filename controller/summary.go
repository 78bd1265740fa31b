package controller

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"prp/protocol"
)

// summaryLen bounds a summary, in characters: it is one line for a person.
const summaryLen = 160

// payload is a payload's members, each as it was written.
type payload map[string]json.RawMessage

// parsePayload reads the members; false where it is no object.
func parsePayload(raw json.RawMessage) (payload, bool) {
	var p payload
	if json.Unmarshal(raw, &p) != nil || p == nil {
		return payload{}, false
	}
	return p, true
}

// raw is a member as it was written; nil where it is absent or null.
func (p payload) raw(name string) json.RawMessage {
	if v := p[name]; string(v) != "null" {
		return v
	}
	return nil
}

// text is the first of the named members that is a string, and not empty.
func (p payload) text(names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(p[name], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// blank reports whether a member is the empty string.
func (p payload) blank(name string) bool { return string(p[name]) == `""` }

// object is the members of a member.
func (p payload) object(name string) payload {
	o, _ := parsePayload(p[name])
	return o
}

// The protocol leaves an item's payload to the harness. These are the names
// under which harnesses are known to put what a person wants to see.
func (p payload) itemKind() string { return p.text("itemType", "itemKind", "kind", "type") }

func (p payload) title() string {
	return p.text("title", "command", "path", "name", "summary")
}
func (p payload) delta() string { return p.text("delta", "text", "content", "output") }

// Summarize says in one line what an event means to a person. It never fails:
// of a payload that has not the expected shape it says what it can.
func Summarize(e *protocol.Event) string {
	p, _ := parsePayload(e.Payload)
	return OneLine(summary(e, p))
}

func summary(e *protocol.Event, p payload) string {
	switch e.EventType {
	case protocol.EventPhaseChanged:
		return strings.ReplaceAll(p.text("phase"), "_", " ")
	case protocol.EventWorkspaceReady:
		return p.text("workingDirectory")
	case protocol.EventHarnessStarting:
		return p.text("driverKind") + " over " + p.text("transport")
	case protocol.EventHarnessReady:
		return strings.TrimSpace(p.text("driverKind") + " " + p.text("driverVersion"))
	case protocol.EventHarnessExited:
		return exitSummary(e.Payload)
	case protocol.EventHarnessDiag, protocol.EventRunnerDiag:
		return join(": ", p.text("code"), p.text("message", "detail", "text"))
	case protocol.EventSessionStarted, protocol.EventSessionResumed, protocol.EventSessionClosed, protocol.EventSessionFailed:
		return p.text("reason", "message", "error")
	case protocol.EventTurnSubmitted:
		return join(": ", e.TurnID, p.text("text"))
	case protocol.EventRequestCreated:
		r := p.object("request")
		return fmt.Sprintf("%s %s: %s", r.text("type"), r.text("requestId"), r.text("prompt"))
	case protocol.EventRequestResolved, protocol.EventRequestExpired, protocol.EventRequestCancelled:
		return join(": ", p.text("requestId"), responseText(p))
	case protocol.EventResultProposed:
		r := p.object("result")
		return join(": ", r.text("reportedWorkDisposition"), r.text("summary"))
	case protocol.EventRunTerminal:
		return terminalSummary(e.Payload)
	case protocol.EventItemDelta:
		return p.delta()
	}
	switch {
	case e.EventType.EndsTurn(), strings.HasPrefix(string(e.EventType), "turn."):
		return join(": ", e.TurnID, p.text("reason", "message", "error", "summary"))
	case strings.HasPrefix(string(e.EventType), "item."):
		return itemSummary(e, p)
	}
	return compact(e.Payload)
}

func itemSummary(e *protocol.Event, p payload) string {
	what := join(" ", p.itemKind(), e.ItemID)
	return join(": ", what, p.text("title", "command", "path", "name", "summary", "text", "message", "error", "reason"))
}

// responseText is a person's reading of an answer.
func responseText(p payload) string {
	r := p.object("response")
	if t := r.text("decision", "text", "choice", "key"); t != "" {
		return t
	}
	if r.blank("text") {
		return `""` // an answer, and nothing in it
	}
	if t := p.text("response", "reason"); t != "" {
		return t
	}
	return compact(p.raw("response"))
}

func exitSummary(raw json.RawMessage) string {
	x, ok := readExited(raw)
	if !ok {
		return compact(raw)
	}
	s := ExitText(&x.ProcessExit)
	if !x.SemanticResultObserved {
		s += ", no result"
	}
	if n := x.Containment.Swept; n > 0 {
		s += fmt.Sprintf(", %d left over and ended", n)
	}
	if n := len(x.Containment.Survivors); n > 0 {
		s += fmt.Sprintf(", %d could not be ended", n)
	}
	return s
}

// ExitText says how a process ended; nil is one that never ran.
func ExitText(x *protocol.ExitFact) string {
	switch {
	case x == nil:
		return "never ran"
	case x.Signal != nil:
		return "ended by signal " + strconv.Itoa(*x.Signal)
	case x.ExitCode != nil:
		return "exit " + strconv.Itoa(*x.ExitCode)
	}
	return "end unknown"
}

func terminalSummary(raw json.RawMessage) string {
	t, ok := readTerminal(raw)
	if !ok {
		return compact(raw)
	}
	return fmt.Sprintf("run %s, turn %s, work %s: %s",
		t.RunTerminalState, t.TurnTerminalState, t.ReportedWorkDisposition, t.Reconciliation.Reason)
}

// reasons says each reason as a sentence, in the order of the spec's table
// (spec section 5).
var reasons = []struct {
	reason protocol.Reason
	text   string
}{
	{protocol.ReasonTurnInterrupted, "The turn was interrupted by the controller."},
	{protocol.ReasonRunCancelled, "The run was cancelled by the controller."},
	{protocol.ReasonRunnerShutdown, "The runner was told to shut down."},
	{protocol.ReasonControllerClosed, "The controller closed the runner's stdin."},
	{protocol.ReasonRunnerTerminated, "The runner was told to end by a signal."},
	{protocol.ReasonStartFailed, "The harness could not be started."},
	{protocol.ReasonNotReady, "The harness was not ready in time, or ended before it was."},
	{protocol.ReasonProtocolViolation, "The harness broke the protocol."},
	{protocol.ReasonRunTimedOut, "The run took longer than it may."},
	{protocol.ReasonBudgetExceeded, "The harness sent more events than it may."},
	{protocol.ReasonSuccess, "The harness ended well and left a valid result."},
	{protocol.ReasonProcessFailed, "The harness process failed."},
	{protocol.ReasonResultMissing, "The harness ended well but left no valid result."},
}

// Reasons lists every reason of a run.terminal, in the order of the spec's table.
func Reasons() []protocol.Reason {
	list := make([]protocol.Reason, 0, len(reasons))
	for _, r := range reasons {
		list = append(list, r.reason)
	}
	return list
}

// ReasonText says a reason as a sentence; an unknown one as it is.
func ReasonText(r protocol.Reason) string {
	for _, known := range reasons {
		if known.reason == r {
			return known.text
		}
	}
	return strconv.Quote(string(r))
}

// join puts sep between the parts that are not empty.
func join(sep string, parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, sep)
}

// compact is JSON as a summary; an empty object says nothing.
func compact(raw json.RawMessage) string {
	if s := string(raw); s != "{}" && s != "null" {
		return s
	}
	return ""
}

// OneLine is a text that is safe on one line of a terminal: no control or
// format characters (text of a harness must not move the cursor or turn the
// writing direction), bounded, without space at the ends.
func OneLine(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(s) {
		if n >= summaryLen {
			b.WriteRune('…')
			break
		}
		if r == '\n' {
			b.WriteString(" ⏎ ")
			n += 3
			continue
		}
		b.WriteRune(visible(r))
		n++
	}
	return b.String()
}

// Readable is a text that is safe on a terminal as [OneLine] makes it, but whole
// and in its own lines: what a person has to decide about must not be cut.
func Readable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return visible(r)
	}, strings.TrimSpace(s))
}

// visible is a character as a terminal may get it.
func visible(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case r == utf8.RuneError, !unicode.IsPrint(r):
		return '\uFFFD'
	}
	return r
}

// lastWord is what stands after the last dot of an event type.
func lastWord(t protocol.EventType) string {
	return string(t[strings.LastIndexByte(string(t), '.')+1:])
}

// DeltaText is the text that an item.delta event adds, as it was written.
func DeltaText(e *protocol.Event) string {
	p, _ := parsePayload(e.Payload)
	return p.delta()
}
