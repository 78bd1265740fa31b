package devserver

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/coder/websocket"

	"prp/controller/bridge"
)

func parseConnectorFrame(raw []byte) ConnectorFrame {
	var m struct {
		Type    string `json:"type"`
		ID      string `json:"id"`
		ReplyTo string `json:"reply_to"`
		RunID   string `json:"run_id"`
		Event   string `json:"event"`
		Seq     int64  `json:"seq"`
		Payload struct {
			FromSeq int64 `json:"from_seq"`
		} `json:"payload"`
	}
	if bridge.Decode(raw, &m) != nil {
		return ConnectorFrame{Type: "other", Raw: raw}
	}
	return ConnectorFrame{
		Type: m.Type, ID: m.ID, ReplyTo: m.ReplyTo, RunID: m.RunID, Seq: m.Seq, Raw: raw,
		event: m.Event, fromSeq: m.Payload.FromSeq,
	}
}

// take records a frame and makes the answers.
func (c *Connector) take(p *peer, f ConnectorFrame) []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Type == "register" {
		c.sessions++
		p.number = c.sessions
	}
	f.Session, f.Transport = p.number, p.transport
	c.frames = append(c.frames, f)
	defer c.notify()
	switch f.Type {
	case "register":
		return c.register(p, f)
	case "heartbeat":
		return []any{map[string]any{"type": "heartbeat_ack", "reply_to": f.ID}}
	case "run_event":
		return c.deliver(f)
	case "handoff":
		return c.handoff(f)
	case "upload_artifact":
		return c.uploadURL(p, f)
	case "artifact_uploaded":
		c.uploaded(f)
	case "download_artifact":
		return c.downloadURL(p, f)
	}
	return nil
}

// register tells a connector what is known of its runs.
func (c *Connector) register(p *peer, f ConnectorFrame) []any {
	var m struct {
		ConnectorID string           `json:"connector_id"`
		Resume      map[string]int64 `json:"resume"`
	}
	_ = bridge.Decode(f.Raw, &m) // it was parsed before
	if p.ids != "" && p.ids != m.ConnectorID {
		go p.quit(websocket.StatusPolicyViolation)
		return nil
	}
	if old := c.current; old != nil && old != p { // the newest wins (row 3)
		c.current = nil
		go old.quit(0)
	}
	acked := map[string]int64{}
	for id, seq := range m.Resume {
		r := c.run(id)
		r.cursor = max(r.cursor, seq) // a server that began anew
		acked[id] = r.cursor
	}
	settings := c.cfg.Settings
	if settings == nil {
		settings = map[string]any{}
	}
	ack := map[string]any{
		"type": "register_ack", "reply_to": f.ID, "connector_id": m.ConnectorID,
		"server_time": time.Now().UTC().Format(time.RFC3339), "config": settings, "acked": acked,
	}
	if c.pending != nil {
		ack["pending_commands"] = c.pending
		c.pending = nil
	}
	return []any{ack}
}

func (c *Connector) run(id string) *deliveredRun {
	r := c.runs[id]
	if r == nil {
		r = &deliveredRun{}
		c.runs[id] = r
	}
	return r
}

// deliver takes an event once, in order, and acknowledges it.
func (c *Connector) deliver(f ConnectorFrame) []any {
	r := c.run(f.RunID)
	first := f.Seq
	if f.fromSeq > 0 {
		first = f.fromSeq
	}
	switch {
	case f.Seq <= r.cursor: // it was here before
	case first > r.cursor+1:
		r.faults = append(r.faults, fmt.Sprintf("expected event %d, got %d", r.cursor+1, f.Seq))
		return nil
	default:
		if r.over {
			r.faults = append(r.faults, fmt.Sprintf("event %d came after the completion", f.Seq))
		}
		r.cursor = f.Seq
		r.events = append(r.events, f)
		r.over = r.over || f.event == "completion"
	}
	if every := int64(max(1, c.cfg.AckEvery)); f.Seq%every != 0 && f.event != "completion" {
		return nil
	}
	return []any{map[string]any{"type": "event_ack", "run_id": f.RunID, "seq": r.cursor}}
}

// handoff accepts a handoff and makes a run for the other agent of it. A second
// one with its id gets the same answer.
func (c *Connector) handoff(f ConnectorFrame) []any {
	var m struct {
		HandoffID string          `json:"handoff_id"`
		FromRunID string          `json:"from_run_id"`
		ToAgentID string          `json:"to_agent_id"`
		Bundle    json.RawMessage `json:"bundle"`
	}
	_ = bridge.Decode(f.Raw, &m) // it was parsed before
	var b struct {
		Objective string `json:"objective"`
	}
	_ = bridge.Decode(m.Bundle, &b) // one without an objective has none
	if b.Objective == "" {
		b.Objective = "Go on with the work of another run."
	}
	run := "run_" + m.HandoffID
	known := slices.ContainsFunc(c.frames[:len(c.frames)-1], func(o ConnectorFrame) bool {
		return o.Type == "handoff" && o.ID == f.ID
	})
	ack := map[string]any{
		"type": "handoff_ack", "reply_to": f.ID, "handoff_id": m.HandoffID, "status": "accepted", "new_run_id": run,
	}
	if known {
		return []any{ack}
	}
	return []any{ack, map[string]any{
		"type": "create_run", "id": rand.Text(), "run_id": run, "agent_id": m.ToAgentID, "goal": b.Objective,
		"handoff": map[string]any{"handoff_id": m.HandoffID, "from_run_id": m.FromRunID, "bundle": m.Bundle},
	}}
}
