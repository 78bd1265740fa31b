package protocol

import (
	"encoding/json"
	"time"
)

// Request is a question of the harness that a controller answers (spec
// section 4).
type Request struct {
	Schema      string          `json:"schema"`
	RequestKind string          `json:"requestKind"`
	RequestID   string          `json:"requestId"`
	Type        RequestType     `json:"type"`
	Status      string          `json:"status"`
	Prompt      string          `json:"prompt"`
	Choices     json.RawMessage `json:"choices,omitempty"`
	ExpiresAt   *time.Time      `json:"expiresAt,omitempty"`
}

// RequestType is the kind of answer that a request wants.
type RequestType string

const (
	RequestPermission RequestType = "permission"
	RequestInput      RequestType = "input"
)

// Values of the members of a request that have only one.
const (
	RequestKindRuntime   = "runtime"
	RequestStatusPending = "pending"
)
