package protocol

import "encoding/json"

// MessageType names what a harness says (spec section 4).
type MessageType string

const (
	MessageReady      MessageType = "ready"
	MessageEvent      MessageType = "event"
	MessageRequest    MessageType = "request"
	MessageResult     MessageType = "result"
	MessageTerminal   MessageType = "terminal"
	MessageLog        MessageType = "log"
	MessageDiagnostic MessageType = "diagnostic"
)

// MessageEnvelope is one line that a harness writes.
type MessageEnvelope struct {
	Schema     string          `json:"schema"`
	MessageSeq int64           `json:"messageSeq"`
	Type       MessageType     `json:"type"`
	Payload    json.RawMessage `json:"payload"`
}

// Ready is the payload of the first message of a harness.
type Ready struct {
	Version    string `json:"version"`
	DriverKind string `json:"driverKind,omitempty"`
	// Capabilities is a list of names, or an object whose members with the
	// value true or an object are the names.
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
}

// HarnessEvent is the payload of an event message.
type HarnessEvent struct {
	EventType EventType       `json:"eventType"`
	TurnID    string          `json:"turnId,omitempty"`
	ItemID    string          `json:"itemId,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
}

// Streams of a log message.
const (
	LogStdout = "stdout"
	LogStderr = "stderr"
)

// Log is the payload of a log message. In a [HarnessMessage] Text lives only as
// long as the line: clone it to keep it.
type Log struct {
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

// HarnessMessage is a decoded and checked line of a harness. Raw, Event.Payload
// and Log.Text are slices of the line and live only as long as it does. Which
// of the members below Type are set depends on Type.
type HarnessMessage struct {
	Family Family
	Seq    int64
	Type   MessageType

	Event   HarnessEvent // event; Payload is "{}" where it was absent
	Log     Log          // log
	Ready   *Ready       // ready
	Request *Request     // request
	// Raw is the object inside the payload: the request, the result, the
	// terminal, or the whole payload of a diagnostic, as it was written.
	Raw json.RawMessage
	// RequestID is the requestId in the payload of an event that ends a
	// request (runtime_request.resolved, expired, cancelled), empty where it
	// is missing or no string.
	RequestID string
}

// MessageFault says why a line of a harness violates the protocol. Detail
// names what was expected and seen, never the content of the line.
type MessageFault struct {
	Code   Code
	Detail string
}

// Error implements error.
func (f *MessageFault) Error() string { return string(f.Code) + ": " + f.Detail }

// HarnessCommand is one line that the runner writes to the harness's stdin:
// a command of the controller that was accepted, passed on.
type HarnessCommand struct {
	Schema    string          `json:"schema"`
	CommandID string          `json:"commandId"`
	Type      CommandType     `json:"type"`
	Payload   json.RawMessage `json:"payload"`
}
