package connector

import (
	"encoding/json"
	"fmt"
	"time"
)

// handoffRequest gives the work of a run to another agent (seed; row 13).
type handoffRequest struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	HandoffID string          `json:"handoff_id"`
	FromRunID string          `json:"from_run_id"`
	ToAgentID string          `json:"to_agent_id"`
	Bundle    json.RawMessage `json:"bundle"`
}

// handoffAccepted is the status of handoff_ack that ends the source.
const handoffAccepted = "accepted"

// handoff takes interaction.handoff of a harness: to_agent_id and bundle. The
// source goes on until the server has accepted.
func (c *Connector) handoff(r *run, raw json.RawMessage) {
	if c.runs[r.req.RunID] != r {
		return
	}
	p := payloadOf(raw)
	to, bundle := unquoted(p["to_agent_id"]), c.mask.JSON(orNull(p["bundle"]))
	switch {
	case to == "" || bundle[0] != '{':
		r.warn("handoff_invalid", "expected to_agent_id and a bundle that is an object", nil)
		return
	case len(bundle) > maxBundle:
		r.warn("handoff_too_large", fmt.Sprintf("expected a bundle of at most %d bytes, got %d", maxBundle, len(bundle)), nil)
		return
	}
	request := handoffRequest{
		Type: typeHandoff, ID: newID(), HandoffID: newID(), FromRunID: r.req.RunID, ToAgentID: to, Bundle: bundle,
	}
	more := members{"handoff_id": quoted(request.HandoffID)}
	c.send(&ask{
		id: request.ID, kind: typeHandoff, run: r, key: request.HandoffID, body: marshal(request),
		until: time.Now().Add(c.cfg.Times.Handoff),
		done: func(answer serverAnswer, e *Error) {
			switch {
			case e != nil:
				r.warn("handoff_failed", "the handoff was not accepted: "+e.Message, more)
			case answer.Status != handoffAccepted:
				r.warn("handoff_rejected", "the handoff was not accepted: "+answer.Status+": "+answer.Reason, more)
			default:
				c.end(r, &cause{
					status: StatusCancelled, reason: reasonHandedOff,
					message: "the work goes on in another run", newRunID: answer.NewRunID,
				})
			}
		},
	})
}
