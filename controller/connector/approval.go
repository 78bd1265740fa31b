package connector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"prp/controller"
	"prp/controller/bridge"
	"prp/protocol"
)

// riskLevel is what approval_request says: the connector cannot judge a risk, so
// that it tells the highest.
const riskLevel = "high"

// approvalRequest asks a person (seed; row 12).
type approvalRequest struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	RequestID string `json:"request_id"`
	RunID     string `json:"run_id"`
	Action    string `json:"action"`
	RiskLevel string `json:"risk_level"`
	// ArgumentsDigest is SHA-256 of what is asked, in canonical JSON.
	ArgumentsDigest string          `json:"arguments_digest"`
	Choices         json.RawMessage `json:"choices,omitempty"`
	ExpiresAt       string          `json:"expires_at"`
}

// choice is one of the answers that a harness offers.
type choice struct {
	Key  string `json:"key"`
	Kind string `json:"kind"`
}

// pending is the ask of a permission, beside what every ask has.
type pending struct {
	harnessID string
	digest    string
	choices   []choice
}

// asked takes a question of the harness.
func (c *Connector) asked(r *run, raw json.RawMessage) {
	if c.runs[r.req.RunID] != r || r.client == nil {
		return
	}
	q, ok := controller.RequestOf(&protocol.Event{Payload: raw})
	if !ok {
		return // cannot be: the runner has checked it
	}
	if q.Type != protocol.RequestPermission {
		// The protocol of the connector can ask for a yes or no only.
		r.warn("input_not_available", "the harness asks for a text, which a server cannot give; it was answered with an empty one", members{
			"request_id": quoted(q.RequestID),
		})
		r.resolve(q.RequestID, controller.InputResponse(""))
		return
	}
	k := &pending{harnessID: q.RequestID}
	if q.Choices != nil {
		_ = bridge.Decode(q.Choices, &k.choices) // one that cannot be read has none
	}
	k.digest = digestOf(members{"prompt": quoted(q.Prompt), "choices": orNull(q.Choices), "run_id": quoted(r.req.RunID)})
	now := time.Now()
	request := approvalRequest{
		Type: typeApprovalRequest, ID: newID(), RequestID: r.req.RunID + ":" + q.RequestID, RunID: r.req.RunID,
		Action: c.mask.String(q.Prompt), RiskLevel: riskLevel, ArgumentsDigest: k.digest, Choices: c.mask.JSON(q.Choices),
		ExpiresAt: now.Add(c.cfg.Times.Approval).UTC().Format(protocol.TimeLayout),
	}
	c.send(&ask{
		id: request.ID, kind: typeApprovalRequest, run: r, key: request.RequestID, body: marshal(request),
		until: now.Add(c.cfg.Times.Approval), pending: k,
		// What ends it without a grant denies.
		done: func(_ serverAnswer, e *Error) {
			r.warn("approval_denied", fmt.Sprintf("%s was not approved: %s", request.Action, e.Message), members{
				"request_id": quoted(request.RequestID), "error_code": marshal(e.Code),
			})
			r.resolve(k.harnessID, k.answer(false))
		},
	})
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// resolve answers a question of the harness, in the background: the loop never
// waits for a runner.
func (r *run) resolve(id string, response json.RawMessage) {
	client := r.client
	r.c.jobs.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), orderWait)
		defer stop()
		_ = client.Resolve(ctx, id, response) // rejected is a question that is over
	})
}

// settled forgets the ask of a question that is over: the harness has withdrawn
// it, or has its answer.
func (c *Connector) settled(r *run, raw json.RawMessage) {
	id := unquoted(payloadOf(raw)["requestId"])
	c.removeAsk(func(a *ask) bool { return a.run == r && a.pending != nil && a.pending.harnessID == id })
}

// approval takes approval_granted and approval_denied (row 12).
func (c *Connector) approval(in inbound) {
	k := in.answer
	if used, verdict := c.grants.Lookup(k.ApprovalID, ""); k.ApprovalID != "" && verdict != bridge.New {
		if used.Task != k.RequestID && k.RequestID != "" || k.RequestID == "" {
			e := fault(CodeUnauthorized, "the approval %q was used already", k.ApprovalID)
			e.Details["approval_id"] = k.ApprovalID
			c.refuseTo(in, e)
		}
		return // the same answer once more
	}
	a, e := c.meant(in)
	if e != nil {
		c.refuseTo(in, e)
		return
	}
	if in.kind == typeApprovalGranted && k.ArgumentsDigest != "" && k.ArgumentsDigest != a.pending.digest {
		e := fault(CodeUnauthorized, "the approval is for other arguments")
		e.Details["request_id"], e.Details["arguments_digest"] = a.key, a.pending.digest
		c.refuseTo(in, e)
		return
	}
	if k.ApprovalID != "" {
		// On disk before it has an effect: it is used once, also over a restart.
		if err := c.grants.Begin(bridge.Remembered{ID: k.ApprovalID, Task: a.key, Tool: in.kind, Digest: in.kind}); err != nil {
			c.fail(err)
			return
		}
	}
	c.removeAsk(func(other *ask) bool { return other == a })
	if in.kind == typeApprovalDenied {
		reason := k.Reason
		if reason == "" {
			reason = "it was denied"
		}
		a.done(serverAnswer{}, fault(CodeDenied, "%s", reason))
		return
	}
	a.run.resolve(a.pending.harnessID, a.pending.answer(true))
}

// meant finds the question that an answer is for.
func (c *Connector) meant(in inbound) (*ask, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*ask
	for _, a := range c.asks {
		if a.pending == nil || in.runID != "" && a.run.req.RunID != in.runID {
			continue
		}
		if in.answer.RequestID != "" && a.key != in.answer.RequestID || in.replyTo != "" && a.id != in.replyTo {
			continue
		}
		list = append(list, a)
	}
	if len(list) == 1 {
		return list[0], nil
	}
	e := badField("request_id", "expected one question that waits, got %d", len(list))
	e.Details["reason"] = "not_pending"
	return nil, e
}

// answer chooses among what the harness offers: for this once where that can be
// told apart.
func (k *pending) answer(grant bool) json.RawMessage {
	words := []string{"allow_once", "allow", "approve", "yes", "allow_always"}
	if !grant {
		words = []string{"reject_once", "deny", "reject", "no", "reject_always"}
	}
	for _, word := range words {
		i := slices.IndexFunc(k.choices, func(o choice) bool {
			return o.Kind == word || strings.EqualFold(o.Key, word)
		})
		if i >= 0 {
			return controller.PermissionResponse(k.choices[i].Key)
		}
	}
	return controller.PermissionResponse(words[1])
}
