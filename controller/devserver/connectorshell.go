package devserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"prp/controller/bridge"
)

// ShellPath takes an [Order] by POST and answers with frames, one a line.
const ShellPath = "/shell"

// Order is what a person wants of a connector's server.
type Order struct {
	// Frame is sent to the connector, where it is not empty.
	Frame map[string]any `json:"frame,omitempty"`
	// Watch is the run whose frames are wanted, up to its completion; empty is
	// every run, without an end.
	Watch string `json:"watch,omitempty"`
	// Reply wants the answer to the frame only, and Sent nothing.
	Reply bool `json:"reply,omitempty"`
	Sent  bool `json:"sent,omitempty"`
	// Past wants also what came before.
	Past bool `json:"past,omitempty"`
}

// PostOrder hands an order to the connector's server whose files are in a folder,
// as [Post] does for a worker's. What it waits for is a server, a connector, or a
// question.
func PostOrder(ctx context.Context, dir string, order Order, wait time.Duration, tell func(why string)) (io.ReadCloser, error) {
	body, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	return PostTo(ctx, dir, ShellPath, body, wait, tell)
}

// shell takes one order.
func (c *Connector) shell(rw http.ResponseWriter, r *http.Request) {
	var o Order
	if err := readBody(rw, r, maxFrame, &o); err != nil {
		http.Error(rw, "expected an order as a JSON object", http.StatusBadRequest)
		return
	}
	at := len(c.Frames())
	if o.Past {
		at = 0
	}
	id := ""
	if o.Frame != nil {
		if !c.Registered() {
			http.Error(rw, "no connector is registered", http.StatusServiceUnavailable)
			return
		}
		question := ""
		if kind, _ := o.Frame["type"].(string); strings.HasPrefix(kind, "approval_") {
			request, _ := o.Frame["request_id"].(string)
			var status int
			var why string
			if question, status, why = c.decide(request); why != "" {
				http.Error(rw, why, status)
				return
			}
			o.Frame["request_id"] = question
		}
		id = rand.Text()
		o.Frame["id"] = id
		if err := c.Send(encode(o.Frame)); err != nil {
			c.undecide(question)
			http.Error(rw, err.Error(), http.StatusBadGateway)
			return
		}
	}
	rw.Header().Set("Content-Type", "application/x-ndjson")
	if !o.Sent {
		c.copyOrder(rw, r, o, id, at)
	}
}

// decide finds the question that a decision is for, and takes it off the list: a
// connector is silent about a decision that it takes, so that a person would not
// learn that there was nothing to decide. A question that is asked again later is
// on the list again, since its answer was lost with the link (connector.md row 12).
func (c *Connector) decide(request string) (question string, status int, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for i, f := range c.frames {
		if r := c.runs[f.RunID]; f.Type != "approval_request" || r != nil && r.over {
			continue
		}
		var m struct {
			RequestID string `json:"request_id"`
		}
		_ = bridge.Decode(f.Raw, &m) // it was parsed before
		wanted := request == "" || request == m.RequestID
		if wanted && i >= c.decided[m.RequestID] && !slices.Contains(list, m.RequestID) {
			list = append(list, m.RequestID)
		}
	}
	switch {
	case len(list) == 0 && request != "":
		return "", http.StatusServiceUnavailable, fmt.Sprintf("no question %q waits", request)
	case len(list) == 0:
		return "", http.StatusServiceUnavailable, "no question waits"
	case len(list) > 1:
		return "", http.StatusConflict, "expected one question that waits, got " + strings.Join(list, ", ") + "; name the one that is meant"
	}
	c.decided[list[0]] = len(c.frames)
	return list[0], 0, ""
}

// undecide puts a question on the list again whose answer was not sent.
func (c *Connector) undecide(question string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.decided, question)
}

// copyOrder writes the frames that an order wants, from an index on.
func (c *Connector) copyOrder(rw http.ResponseWriter, r *http.Request, o Order, id string, at int) {
	out := http.NewResponseController(rw)
	for {
		var list []ConnectorFrame
		err := c.Await(r.Context(), func() bool {
			list = slices.Clone(c.Frames()[at:])
			return len(list) > 0
		})
		if err != nil {
			return
		}
		at += len(list)
		for _, f := range list {
			wanted := f.ReplyTo == id && id != "" || !o.Reply && (f.RunID == o.Watch || o.Watch == "")
			if !wanted || f.Type == "heartbeat" {
				continue
			}
			if _, err := rw.Write(append(slices.Clone(f.Raw), '\n')); err != nil {
				return
			}
			if o.Reply || o.Watch != "" && f.event == "completion" || f.Type == "error" && f.ReplyTo == id {
				return
			}
		}
		if out.Flush() != nil {
			return
		}
	}
}
