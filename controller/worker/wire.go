package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"prp/controller/bridge"
)

// ProtocolVersion is what hello says.
const ProtocolVersion = 1

// MaxFrame bounds a frame each way, in bytes (worker.md row 2).
const MaxFrame = 1 << 20

// maxID bounds ids, in characters, as elsewhere in the protocol. A command with
// a longer one is told so (row 2), up to maxEchoedID; beyond that the frame is
// ignored, since its id would take the room of the answer.
const (
	maxID       = 160
	maxEchoedID = 4096
)

// Tools (seed).
const (
	ToolPing         = "worker.ping"
	ToolCapabilities = "worker.capabilities"
	ToolRead         = "file.read"
	ToolWrite        = "file.write"
	ToolSearch       = "file.search"
	ToolPatch        = "file.apply_patch"
	ToolRun          = "command.run"
	ToolStatus       = "process.status"
	ToolCancel       = "task.cancel"
)

// Tools lists every tool in the order of the seed.
func Tools() []string {
	return []string{
		ToolPing, ToolCapabilities, ToolRead, ToolWrite, ToolSearch, ToolPatch, ToolRun, ToolStatus, ToolCancel,
	}
}

// Status is how a command ended (row 4).
type Status string

// Statuses.
const (
	StatusSuccess   Status = "success"
	StatusError     Status = "error"
	StatusCancelled Status = "cancelled"
	StatusTimeout   Status = "timeout"
)

// Code is a stable word for an error (row 17). Those of package files are
// passed on.
type Code string

// Codes.
const (
	CodeInvalidRequest   Code = "INVALID_REQUEST"
	CodeUnknownTool      Code = "UNKNOWN_TOOL"
	CodeUnsupported      Code = "UNSUPPORTED"
	CodePolicyDenied     Code = "POLICY_DENIED"
	CodeApprovalRequired Code = "APPROVAL_REQUIRED"
	CodeApprovalInvalid  Code = "APPROVAL_INVALID"
	CodeProcessNotFound  Code = "PROCESS_NOT_FOUND"
	CodeNotStarted       Code = "COMMAND_NOT_STARTED"
	CodeTimeout          Code = "TIMEOUT"
	CodeCancelled        Code = "CANCELLED"
	CodeBusy             Code = "BUSY"
	CodeOutcomeUnknown   Code = "OUTCOME_UNKNOWN"
	CodeInternal         Code = "INTERNAL"
)

// Error is why a command did not succeed. Details name the field or path.
type Error struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

func fault(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Details: map[string]any{}}
}

func badField(field, format string, args ...any) *Error {
	e := fault(CodeInvalidRequest, field+": "+format, args...)
	e.Details["field"] = field
	return e
}

func expired(format string, args ...any) *Error {
	e := fault(CodeTimeout, format, args...)
	e.Details["field"] = "timeout_ms"
	return e
}

// Command is a command of the server (seed).
type Command struct {
	CommandID string
	TaskID    string
	Tool      string
	Args      json.RawMessage
	// Timeout bounds the execution (row 7).
	Timeout time.Duration
	Policy  PolicyContext
	// digest is of all of it, content of what is done: tool and arguments.
	digest, content string
}

// PolicyContext is what the server says of an approval (row 16).
type PolicyContext struct {
	Approved   bool
	ApprovalID string
	// Digest, where it is given, is the content that was approved.
	Digest string
}

// Result is the answer to a command (seed, row 4).
type Result struct {
	CommandID  string          `json:"command_id"`
	TaskID     string          `json:"task_id"`
	Tool       string          `json:"tool"`
	Status     Status          `json:"status"`
	StartedAt  string          `json:"started_at"`
	FinishedAt string          `json:"finished_at"`
	DurationMS int64           `json:"duration_ms"`
	Stdout     string          `json:"stdout"`
	Stderr     string          `json:"stderr"`
	Result     json.RawMessage `json:"result"`
	Artifacts  []any           `json:"artifacts"`
	Error      *Error          `json:"error"`
}

// Capabilities is what a worker can do (seed).
type Capabilities struct {
	WorkerID     string   `json:"worker_id"`
	Machine      string   `json:"machine"`
	OS           string   `json:"os"`
	Version      string   `json:"version"`
	Capabilities []string `json:"capabilities"`
}

// hello is the first frame of a connection (row 1).
type hello struct {
	Event string `json:"event"`
	Capabilities
	ProtocolVersion int    `json:"protocol_version"`
	InstanceID      string `json:"instance_id"`
	LastSeq         int64  `json:"last_seq"`
	AckSeq          int64  `json:"ack_seq"`
}

// progress is a report of a running command (seed).
type progress struct {
	Event     string       `json:"event"`
	CommandID string       `json:"command_id"`
	Progress  progressBody `json:"progress"`
}

type progressBody struct {
	// Percent is null where nobody can know it.
	Percent *int   `json:"percent"`
	Message string `json:"message"`
}

// gap tells frames that were dropped while the spool was full (remote.md rule 10).
type gap struct {
	Event   string `json:"event"`
	FromSeq int64  `json:"from_seq"`
	ToSeq   int64  `json:"to_seq"`
}

// withSeq adds the number of the outbox to a frame, a JSON object.
func withSeq(body []byte, seq int64) []byte {
	b := append(bytes.Clone(body[:len(body)-1]), `,"seq":`...)
	return append(fmt.Appendf(b, "%d", seq), '}')
}

// inbound is a frame of the server.
type inbound struct {
	command *Command
	// bad is a command that cannot be executed; command has its ids.
	bad *Error
	// ackID and ackSeq acknowledge; isAck tells that one is given.
	isAck   bool
	ackID   string
	ackSeq  int64
	isEvent bool
}

// errIgnored is a frame that is none of ours (row 2).
var errIgnored = errors.New("expected a command, an event or an acknowledgement")

// decodeFrame reads a frame of the server.
func decodeFrame(frame []byte) (inbound, error) {
	m, err := bridge.OpenFrame(frame)
	if err != nil {
		if id := strayID(frame); id != "" {
			return inbound{command: &Command{CommandID: id}, bad: badField("frame", "%s", err)}, nil
		}
		return inbound{}, errIgnored
	}
	var in inbound
	if raw, ok := m["ack_seq"]; ok && m["tool"] == nil {
		in.isAck = json.Unmarshal(raw, &in.ackSeq) == nil
	}
	switch {
	case m["tool"] != nil:
		return decodeCommand(m)
	case m["ack"] != nil:
		in.isAck = json.Unmarshal(m["ack"], &in.ackID) == nil || in.isAck
	case m["event"] != nil:
		in.isEvent = true
	}
	if in.isAck || in.isEvent {
		return in, nil
	}
	if id, err := text(m, "command_id", maxEchoedID); err == nil && id != "" {
		return inbound{command: &Command{CommandID: id}, bad: badField("tool", "expected a command, an event or an acknowledgement")}, nil
	}
	return in, errIgnored
}

// strayID is the command_id of a frame that is JSON and breaks one of our rules
// for it, such as a name that is given twice: its sender waits for an answer.
// Empty where there is none, or which it is could be argued about.
func strayID(frame []byte) string {
	var m bridge.Members
	if json.Unmarshal(frame, &m) != nil || m == nil {
		return ""
	}
	id, bad := text(m, "command_id", maxEchoedID)
	if bad != nil || strings.ContainsRune(id, utf8.RuneError) {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(frame))
	_, _ = d.Token() // the brace: it was read before
	for given := 0; d.More(); {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		if name == "command_id" {
			if given++; given > 1 {
				return ""
			}
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return ""
		}
	}
	return id
}

// text reads a member that is a string of at most so many characters; empty
// where it is absent.
func text(m bridge.Members, name string, most int) (string, *Error) {
	s, err := m.Text(name, most)
	if err != nil {
		return "", badField(name, "%s", err)
	}
	return s, nil
}

const (
	defaultTimeout = 30 * time.Second
	// maxTimeout bounds timeout_ms: a day.
	maxTimeout = 24 * time.Hour
)

// decodeCommand reads a frame with the member tool.
func decodeCommand(m bridge.Members) (inbound, error) {
	c := &Command{Timeout: defaultTimeout, Args: m["args"]}
	id, bad := text(m, "command_id", maxEchoedID)
	if bad != nil || id == "" {
		return inbound{}, errIgnored // nobody could tell what an answer is to
	}
	c.CommandID = id
	in := inbound{command: c, bad: longID(id)}
	for _, member := range []struct {
		name string
		at   *string
	}{{"task_id", &c.TaskID}, {"tool", &c.Tool}} {
		if *member.at, bad = text(m, member.name, maxID); bad != nil && in.bad == nil {
			in.bad = bad
		}
	}
	if c.Args == nil {
		c.Args = json.RawMessage("{}")
	}
	if bytes.TrimSpace(c.Args)[0] != '{' && in.bad == nil {
		in.bad = badField("args", "expected an object")
	}
	if bad := decodeTimeout(m["timeout_ms"], c); bad != nil && in.bad == nil {
		in.bad = bad
	}
	if !decodePolicyContext(m["policy_context"], &c.Policy) && in.bad == nil {
		in.bad = badField("policy_context", "expected an object with approved and approval_id")
	}
	c.digests(m)
	return in, nil
}

// longID refuses an id that is longer than others are.
func longID(id string) *Error {
	if n := utf8.RuneCountInString(id); n > maxID {
		return badField("command_id", "expected at most %d characters, got %d", maxID, n)
	}
	return nil
}

// decodePolicyContext reads what is said of an approval. Names are compared
// exactly; members that are not known are of no account.
func decodePolicyContext(raw json.RawMessage, into *PolicyContext) bool {
	if raw == nil {
		return true
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return false
	}
	for name, at := range map[string]any{"approved": &into.Approved, "approval_id": &into.ApprovalID, "digest": &into.Digest} {
		if value := m[name]; value != nil && json.Unmarshal(value, at) != nil {
			return false
		}
	}
	return true
}

func decodeTimeout(raw json.RawMessage, c *Command) *Error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	var ms int64
	if err := json.Unmarshal(raw, &ms); err != nil || ms < 1 || ms > maxTimeout.Milliseconds() {
		return badField("timeout_ms", "expected a whole number from 1 to %d", maxTimeout.Milliseconds())
	}
	c.Timeout = time.Duration(ms) * time.Millisecond
	return nil
}

// digests makes the two digests, over canonical JSON: space and the order of
// members do not count.
func (c *Command) digests(m bridge.Members) {
	c.digest = m.Digest()
	c.content = bridge.Members{"tool": m["tool"], "args": c.Args}.Digest()
}
