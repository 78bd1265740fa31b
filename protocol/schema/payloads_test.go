package schema_test

import (
	"encoding/json"

	"prp/protocol"
)

// The shapes of payloads for which package protocol has no type of its own,
// because the runner reads them member by member or passes them on.

type (
	// Command payloads (spec section 2).
	TurnStartPayload struct {
		TurnID string `json:"turnId"`
		Text   string `json:"text"`
	}
	TurnSteerPayload struct {
		TurnID string `json:"turnId,omitempty"`
		Text   string `json:"text"`
	}
	TurnEndPayload struct {
		TurnID string `json:"turnId,omitempty"`
		Reason string `json:"reason,omitempty"`
	}
	RequestResolvePayload struct {
		RequestID string          `json:"requestId"`
		Response  json.RawMessage `json:"response"`
	}

	// Payloads of the runner's own events (spec section 3).
	WorkspaceReady struct {
		WorkingDirectory string `json:"workingDirectory"`
	}
	HarnessStarting struct {
		DriverKind string `json:"driverKind"`
		Transport  string `json:"transport"`
	}
	HarnessReady struct {
		DriverKind    string          `json:"driverKind"`
		DriverVersion string          `json:"driverVersion"`
		Transport     string          `json:"transport"`
		Capabilities  json.RawMessage `json:"capabilities,omitempty"`
	}
	TurnSubmitted struct {
		Text string `json:"text"`
	}
	RequestCreated struct {
		Request protocol.Request `json:"request"`
	}
	ResultProposed struct {
		Result protocol.Result `json:"result"`
	}

	// Payloads of harness messages that hold one object (spec section 4).
	RequestMessage struct {
		Request protocol.Request `json:"request"`
	}
	ResultMessage struct {
		Result json.RawMessage `json:"result"`
	}
	TerminalMessage struct {
		Terminal json.RawMessage `json:"terminal"`
	}

	// StreamLine is a line of the runner; its message is built by kind.
	StreamLine struct {
		Schema  string          `json:"schema"`
		Message json.RawMessage `json:"message"`
	}
)
