package protocol

import "encoding/json"

// Disposition is what a result says about the work.
type Disposition string

const (
	DispositionDone        Disposition = "done"
	DispositionBlocked     Disposition = "blocked"
	DispositionNeedsReview Disposition = "needs_review"
	DispositionYielded     Disposition = "yielded"
)

// Result is the semantic result of a run: the harness's claim about its work
// (spec section 4).
type Result struct {
	Schema                  string            `json:"schema"`
	ReportedWorkDisposition Disposition       `json:"reportedWorkDisposition"`
	Summary                 string            `json:"summary"`
	CompletionClaim         CompletionClaim   `json:"completionClaim"`
	Evidence                []json.RawMessage `json:"evidence"`
	Verification            []json.RawMessage `json:"verification"`
	AttentionRequests       []json.RawMessage `json:"attentionRequests"`
	Artifacts               []json.RawMessage `json:"artifacts"`
	// Blocker is required with the disposition blocked.
	Blocker json.RawMessage `json:"blocker,omitempty"`
	// Continuation is required with the disposition yielded.
	Continuation *Continuation `json:"continuation,omitempty"`
}

// CompletionClaim says how far the harness claims to have come.
type CompletionClaim struct {
	ContractRevision   json.RawMessage   `json:"contractRevision"`
	ObjectiveSatisfied bool              `json:"objectiveSatisfied"`
	Criteria           []json.RawMessage `json:"criteria"`
	RemainingWork      []json.RawMessage `json:"remainingWork"`
}

// Continuation says how yielded work goes on.
type Continuation struct {
	Kind           string `json:"kind"`
	Summary        string `json:"summary"`
	IdempotencyKey string `json:"idempotencyKey"`
}
