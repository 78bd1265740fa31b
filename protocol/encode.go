package protocol

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// The Append functions print one whole line, with its newline, after dst and
// return the longer slice. They allocate only where dst is too short, never
// fail, and copy a payload as it is: the caller vouches that it is one valid
// JSON value. An empty payload stands for {}.

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string with the fewest escapes: only
// quotation mark, backslash and the control characters below U+0020. A byte
// that is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte { return appendQuoted(dst, s) }

func appendQuoted[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = decodeRune(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			dst = utf8.AppendRune(append(dst, s[from:i]...), utf8.RuneError)
		} else {
			dst = appendEscape(append(dst, s[from:i]...), c)
		}
		i += size
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// plain are the bytes that stand for themselves in a JSON string whatever comes
// next to them.
var plain = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

func decodeRune[T string | []byte](s T) (rune, int) {
	var head [utf8.UTFMax]byte
	n := copy(head[:], s)
	return utf8.DecodeRune(head[:n])
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

func appendPayload(dst, payload []byte) []byte {
	if len(payload) == 0 {
		return append(dst, "{}"...)
	}
	return append(dst, payload...)
}

const (
	streamHead     = `{"schema":"` + SchemaStream + `","message":{"kind":"`
	eventHead      = streamHead + `event","event":{"schema":`
	receiptHead    = streamHead + `command_receipt","commandId":`
	diagnosticHead = streamHead + `diagnostic","level":`
)

// AppendEvent appends the stream line of e (spec section 3). TurnID and ItemID
// are left out where empty. Schema, SourceKind and SchemaVersion may be left
// at zero for what this version of the protocol writes, and SourceEventID for
// the [EventID] of run and sequence number.
func AppendEvent(dst []byte, e *Event) []byte {
	dst = appendFixed(dst, eventHead, e.Schema, SchemaEvent)
	if e.SourceEventID != "" {
		dst = appendText(dst, `,"sourceEventId":`, e.SourceEventID)
	} else {
		dst = appendEventID(append(dst, `,"sourceEventId":`...), e.RunID, e.SourceSeq)
	}
	dst = appendInt(dst, `,"sourceSeq":`, e.SourceSeq)
	dst = appendText(dst, `,"sourceInstanceId":`, e.SourceInstanceID)
	dst = appendFixed(dst, `,"sourceKind":`, e.SourceKind, SourceKindRunner)
	dst = appendText(dst, `,"runId":`, e.RunID)
	dst = appendText(dst, `,"normalizedSessionId":`, e.NormalizedSessionID)
	if e.TurnID != "" {
		dst = appendText(dst, `,"turnId":`, e.TurnID)
	}
	if e.ItemID != "" {
		dst = appendText(dst, `,"itemId":`, e.ItemID)
	}
	dst = appendText(dst, `,"eventType":`, string(e.EventType))
	version := e.SchemaVersion
	if version == 0 {
		version = EventSchemaVersion
	}
	dst = appendInt(dst, `,"schemaVersion":`, int64(version))
	dst = appendInt(dst, `,"priority":`, int64(e.Priority))
	dst = appendText(dst, `,"emittedAt":`, e.EmittedAt)
	dst = append(dst, `,"payload":`...)
	dst = appendPayload(dst, e.Payload)
	return append(dst, "}}}\n"...)
}

// AppendReceipt appends the stream line of r (spec section 3). The code is
// written where the status is rejected and only there.
func AppendReceipt(dst []byte, r *Receipt) []byte {
	dst = append(dst, receiptHead...)
	dst = AppendString(dst, r.CommandID)
	dst = appendInt(dst, `,"controllerSeq":`, r.ControllerSeq)
	dst = appendText(dst, `,"status":`, string(r.Status))
	dst = appendText(dst, `,"detail":`, r.Detail)
	if r.Status == ReceiptRejected {
		dst = appendText(dst, `,"code":`, string(r.Code))
	}
	return append(dst, "}}\n"...)
}

// AppendDiagnostic appends the stream line of d (spec section 3).
func AppendDiagnostic(dst []byte, d *Diagnostic) []byte {
	dst = append(dst, diagnosticHead...)
	dst = AppendString(dst, string(d.Level))
	dst = appendText(dst, `,"message":`, d.Message)
	dst = appendText(dst, `,"code":`, string(d.Code))
	return append(dst, "}}\n"...)
}

// AppendHarnessCommand appends the line that passes a command on to a harness
// of the given family (spec section 1).
func AppendHarnessCommand(dst []byte, family Family, commandID string, t CommandType, payload []byte) []byte {
	dst = appendText(dst, `{"schema":`, family.CommandSchema())
	dst = appendText(dst, `,"commandId":`, commandID)
	dst = appendText(dst, `,"type":`, string(t))
	dst = append(dst, `,"payload":`...)
	dst = appendPayload(dst, payload)
	return append(dst, "}\n"...)
}

// AppendHarnessEvent appends the payload of a harness's event message (spec
// section 4), which is no line: it goes into [AppendMessage]. TurnID and ItemID
// are left out where empty.
func AppendHarnessEvent(dst []byte, t EventType, turnID, itemID string, payload []byte) []byte {
	dst = appendText(dst, `{"eventType":`, string(t))
	if turnID != "" {
		dst = appendText(dst, `,"turnId":`, turnID)
	}
	if itemID != "" {
		dst = appendText(dst, `,"itemId":`, itemID)
	}
	dst = append(dst, `,"payload":`...)
	return append(appendPayload(dst, payload), '}')
}

// AppendMessage appends the line of a harness of the given family (spec
// section 4).
func AppendMessage(dst []byte, family Family, seq int64, t MessageType, payload []byte) []byte {
	dst = appendText(dst, `{"schema":`, family.MessageSchema())
	dst = appendInt(dst, `,"messageSeq":`, seq)
	dst = appendText(dst, `,"type":`, string(t))
	dst = append(dst, `,"payload":`...)
	dst = appendPayload(dst, payload)
	return append(dst, "}\n"...)
}

// AppendCommand appends the line of c as a controller writes it (spec section
// 2). Args and Digest are not written. An empty Schema stands for
// [SchemaCommand]. Times are written with as many decimals as they have.
func AppendCommand(dst []byte, c *Command) []byte {
	schema := c.Schema
	if schema == "" {
		schema = SchemaCommand
	}
	dst = appendText(dst, `{"schema":`, schema)
	dst = appendText(dst, `,"commandId":`, c.CommandID)
	dst = appendInt(dst, `,"controllerSeq":`, c.ControllerSeq)
	dst = appendText(dst, `,"type":`, string(c.Type))
	dst = appendTime(dst, `,"issuedAt":"`, c.IssuedAt)
	if c.DeadlineAt != nil {
		dst = appendTime(dst, `,"deadlineAt":"`, *c.DeadlineAt)
	}
	if c.Precondition != nil {
		dst = append(dst, `,"precondition":`...)
		dst = appendPrecondition(dst, c.Precondition)
	}
	dst = append(dst, `,"payload":`...)
	dst = appendPayload(dst, c.Payload)
	return append(dst, "}\n"...)
}

func appendPrecondition(dst []byte, p *Precondition) []byte {
	mark := len(dst)
	dst = appendList(dst, `,"runnerState":[`, p.RunnerState)
	dst = appendList(dst, `,"runState":[`, p.RunState)
	dst = appendList(dst, `,"sessionState":[`, p.SessionState)
	switch {
	case p.ActiveTurnID == nil:
	case *p.ActiveTurnID == "":
		dst = append(dst, `,"activeTurnId":null`...)
	default:
		dst = appendText(dst, `,"activeTurnId":`, *p.ActiveTurnID)
	}
	if len(dst) == mark {
		return append(dst, "{}"...)
	}
	dst[mark] = '{' // in place of the first comma
	return append(dst, '}')
}

// appendList appends nothing for a nil list, which is an absent member; an
// empty list is a member that nothing can satisfy.
func appendList[S ~string](dst []byte, name string, list []S) []byte {
	if list == nil {
		return dst
	}
	dst = append(dst, name...)
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, string(s))
	}
	return append(dst, ']')
}

func appendText(dst []byte, name, s string) []byte {
	return AppendString(append(dst, name...), s)
}

// EventID is the sourceEventId of an event (spec section 3): both parts are the
// same in every run of the same script.
func EventID(runID string, seq int64) string {
	return fmt.Sprintf("event_%s_%03d", runID, seq)
}

// appendEventID appends [EventID] as a JSON string without making it.
func appendEventID(dst []byte, runID string, seq int64) []byte {
	dst = append(dst, `"event_`...)
	at := len(dst)
	dst = AppendString(dst, runID)
	// What the id has before and after the run id takes the place of its quotes.
	dst = append(dst[:at], dst[at+1:len(dst)-1]...)
	dst = append(dst, '_')
	dst = appendZeros(dst, seq)
	return append(strconv.AppendInt(dst, seq, 10), '"')
}

// appendZeros appends what a number lacks to three digits.
func appendZeros(dst []byte, seq int64) []byte {
	for limit := int64(100); limit > 1 && seq < limit; limit /= 10 {
		dst = append(dst, '0')
	}
	return dst
}

// appendFixed appends a text that is nearly always usual, which needs no
// escapes; an empty one stands for it.
func appendFixed(dst []byte, name, s, usual string) []byte {
	dst = append(dst, name...)
	if s != "" && s != usual {
		return AppendString(dst, s)
	}
	dst = append(append(dst, '"'), usual...)
	return append(dst, '"')
}

func appendInt(dst []byte, name string, v int64) []byte {
	return strconv.AppendInt(append(dst, name...), v, 10)
}

func appendTime(dst []byte, name string, t time.Time) []byte {
	return append(t.AppendFormat(append(dst, name...), time.RFC3339Nano), '"')
}
