package controller

import (
	"context"
	"encoding/json"

	"prp/protocol"
)

// Prepare sends run.prepare: the runner starts the harness. The receipt comes
// once the harness is ready, or has failed.
func (c *Client) Prepare(ctx context.Context) error {
	return c.do(ctx, protocol.RunPrepare, nil)
}

// OpenSession sends session.open.
func (c *Client) OpenSession(ctx context.Context) error {
	return c.do(ctx, protocol.SessionOpen, nil)
}

// StartTurn sends turn.start. The payload's further members, where extra is
// not nil, are passed on to the harness as they are.
func (c *Client) StartTurn(ctx context.Context, turnID, text string, extra map[string]any) error {
	payload := map[string]any{}
	for k, v := range extra {
		payload[k] = v
	}
	payload["turnId"], payload["text"] = turnID, text
	return c.do(ctx, protocol.TurnStart, payload)
}

// Steer sends turn.steer to the active turn.
func (c *Client) Steer(ctx context.Context, text string) error {
	return c.do(ctx, protocol.TurnSteer, map[string]any{"text": text})
}

// Interrupt sends turn.interrupt to the active turn; reason may be empty.
func (c *Client) Interrupt(ctx context.Context, reason string) error {
	return c.do(ctx, protocol.TurnInterrupt, withReason(reason))
}

// StopTurn sends turn.stop to the active turn; reason may be empty.
func (c *Client) StopTurn(ctx context.Context, reason string) error {
	return c.do(ctx, protocol.TurnStop, withReason(reason))
}

// Resolve answers a pending request. The response is any JSON value; see
// [PermissionResponse] and [InputResponse] for the two types of requests.
func (c *Client) Resolve(ctx context.Context, requestID string, response any) error {
	return c.do(ctx, protocol.RequestResolve, map[string]any{"requestId": requestID, "response": response})
}

// CloseSession sends session.close; the harness's stdin ends after it.
func (c *Client) CloseSession(ctx context.Context) error {
	return c.do(ctx, protocol.SessionClose, nil)
}

// Cancel sends run.cancel.
func (c *Client) Cancel(ctx context.Context) error {
	return c.do(ctx, protocol.RunCancel, nil)
}

// Drain sends runner.drain: no further turn starts.
func (c *Client) Drain(ctx context.Context) error {
	return c.do(ctx, protocol.RunnerDrain, nil)
}

// Shutdown sends runner.shutdown: the runner ends the run at once.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.do(ctx, protocol.RunnerShutdown, nil)
}

func (c *Client) do(ctx context.Context, kind protocol.CommandType, payload any) error {
	_, err := c.Send(ctx, Command{Type: kind, Payload: payload})
	return err
}

func withReason(reason string) any {
	if reason == "" {
		return nil
	}
	return map[string]any{"reason": reason}
}

// PermissionResponse answers a request of type permission with the key of one
// of its choices.
func PermissionResponse(key string) json.RawMessage { return object("decision", key) }

// InputResponse answers a request of type input with a text.
func InputResponse(text string) json.RawMessage { return object("text", text) }

func object(name, value string) json.RawMessage {
	b := append([]byte{'{'}, protocol.AppendString(nil, name)...)
	b = append(b, ':')
	return append(protocol.AppendString(b, value), '}')
}
