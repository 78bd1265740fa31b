package protocol

// MessageKind tells what a stream line carries (spec section 3).
type MessageKind string

const (
	KindEvent      MessageKind = "event"
	KindReceipt    MessageKind = "command_receipt"
	KindDiagnostic MessageKind = "diagnostic"
)

// ReceiptStatus is the runner's answer to a command.
type ReceiptStatus string

const (
	ReceiptAccepted  ReceiptStatus = "accepted"
	ReceiptDuplicate ReceiptStatus = "duplicate"
	ReceiptRejected  ReceiptStatus = "rejected"
)

// Receipt answers one command. Code is set only where Status is rejected.
type Receipt struct {
	CommandID     string        `json:"commandId"`
	ControllerSeq int64         `json:"controllerSeq"`
	Status        ReceiptStatus `json:"status"`
	Detail        string        `json:"detail"`
	Code          Code          `json:"code,omitempty"`
}

// Level is the weight of a diagnostic.
type Level string

const (
	LevelInfo    Level = "info"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// Diagnostic tells a person or a log something that is no event of the run.
type Diagnostic struct {
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Code    Code   `json:"code"`
}

// StreamMessage is the content of one line that the runner writes: exactly
// one of Event, Receipt and Diagnostic is set, as Kind says.
type StreamMessage struct {
	Kind       MessageKind
	Event      *Event
	Receipt    *Receipt
	Diagnostic *Diagnostic
}
