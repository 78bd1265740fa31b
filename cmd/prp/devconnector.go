package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"prp/controller"
	"prp/controller/bridge"
	"prp/controller/devserver"
)

// devAgents are the agents that the configuration has without --agents.
const devAgents = `[
  {"agent_id":"happy","runtime":"fake","model":"none","tools":["terminal","file"],"max_turns":1,
   "supports":["streaming","cancellation"],"max_concurrent_runs":4,"harness":"prp harness fake --script happy-path"},
  {"agent_id":"asks","runtime":"fake","model":"none","tools":["terminal"],"max_turns":1,
   "supports":["streaming","cancellation","approval"],"max_concurrent_runs":4,"harness":"prp harness fake --script permission-input"},
  {"agent_id":"stays","runtime":"fake","model":"none","tools":["terminal"],"max_turns":1,
   "supports":["streaming","cancellation"],"max_concurrent_runs":4,"harness":"prp harness fake --script linger"}
]`

// connector is the server for prp connect, or what a person wants of it.
func (o *devserverOptions) connector(s *streams, word string, args []string) int {
	order := devserver.Order{}
	switch {
	case word == "connector" && len(args) == 0:
		return o.serveConnector(s)
	case word == "create" && len(args) >= 2:
		run := "run-" + strings.ToLower(rand.Text()[:8])
		fmt.Fprintf(s.err, "the run is %s\n", run)
		order.Watch = run
		order.Frame = map[string]any{"type": "create_run", "run_id": run, "agent_id": args[0], "goal": strings.Join(args[1:], " ")}
	case word == "watch" && len(args) <= 1:
		order.Past = true
		order.Watch = strings.Join(args, "")
	case (word == "approve" || word == "deny") && len(args) <= 1:
		order.Sent = true
		order.Frame = map[string]any{"type": "approval_granted", "approval_id": rand.Text(), "approved_by": "devserver"}
		if word == "deny" {
			order.Frame = map[string]any{"type": "approval_denied", "reason": "denied by devserver"}
		}
		if len(args) == 1 {
			order.Frame["request_id"] = args[0]
		}
	case word == "cancel" && len(args) == 1:
		order.Reply = true
		order.Frame = map[string]any{"type": "cancel_run", "run_id": args[0]}
	default:
		return fail(s, "devserver", misuse("expected worker, send TOOL, connector, create AGENT GOAL, watch [RUN], approve [REQUEST], deny [REQUEST] or cancel RUN, got %q",
			append([]string{word}, args...)))
	}
	ctx, stop := untilTold()
	defer stop()
	answer, err := devserver.PostOrder(ctx, o.dir, order, o.wait, o.sayWaiting(s))
	if err != nil {
		return fail(s, "devserver", unwatched(ctx, err))
	}
	defer answer.Close()
	return o.showFrames(ctx, s, answer, order)
}

func (o *devserverOptions) serveConnector(s *streams) int {
	rules, err := o.rules(devserver.ParseConnectorRule)
	if err != nil {
		return fail(s, "devserver", err)
	}
	agents := []byte(devAgents)
	if o.agents != "" {
		if agents, err = os.ReadFile(o.agents); err != nil {
			return fail(s, "devserver", misuse("--agents: %s", err))
		}
	}
	release, err := o.alone()
	if err != nil {
		return fail(s, "devserver", err)
	}
	defer release()
	host, err := devserver.ListenConnector(o.dir, o.addr, json.RawMessage(agents), devserver.ConnectorConfig{Rules: rules})
	if err != nil {
		return fail(s, "devserver", err)
	}
	ctx, stop := untilTold()
	defer stop()
	fmt.Fprintf(s.out, "prp connect --config %s\n", shellQuoted(host.ConfigFile()))
	sayServing(s)
	if err := host.Serve(ctx); err != nil {
		return fail(s, "devserver", err)
	}
	return exitOK
}

// shownFrame has the members of a frame that a person sees.
type shownFrame struct {
	Type      string                     `json:"type"`
	Event     string                     `json:"event"`
	Status    string                     `json:"status"`
	Message   string                     `json:"message"`
	Action    string                     `json:"action"`
	RunID     string                     `json:"run_id"`
	RequestID string                     `json:"request_id"`
	Seq       int64                      `json:"seq"`
	Code      int                        `json:"code"`
	Payload   map[string]json.RawMessage `json:"payload"`
}

// showFrames prints the frames that an order brings, a line each.
func (o *devserverOptions) showFrames(ctx context.Context, s *streams, answer io.Reader, order devserver.Order) int {
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		var f shownFrame
		if err := bridge.Decode(lines.Bytes(), &f); err != nil {
			return fail(s, "devserver", err)
		}
		if o.json {
			fmt.Fprintf(s.out, "%s\n", lines.Bytes())
		} else {
			fmt.Fprintln(s.out, controller.OneLine(f.line()))
		}
		status := text(f.Payload["status"])
		switch {
		case order.Watch == "" && !order.Reply: // of all runs there is no end
		case f.Type == "error":
			return exitFailed
		case f.Type == "run_cancelled", f.Event == "completion" && status == "succeeded":
			return exitOK
		case f.Event == "completion" && status == "cancelled":
			return exitCancelled
		case f.Event == "completion":
			return exitFailed
		}
	}
	err := lines.Err()
	if err == nil && !order.Sent {
		err = errors.New("the server has ended before the run")
	}
	if err != nil {
		return fail(s, "devserver", unwatched(ctx, err))
	}
	return exitOK
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// line is a frame for a person.
func (f *shownFrame) line() string {
	switch f.Type {
	case "run_event":
		detail := ""
		for _, name := range []string{"text", "title", "command", "message", "summary", "source_event"} {
			if detail = text(f.Payload[name]); detail != "" {
				break
			}
		}
		return fmt.Sprintf("%s %4d %-11s %s %s", f.RunID, f.Seq, f.Event, text(f.Payload["tool"])+text(f.Payload["status"]), detail)
	case "approval_request":
		return fmt.Sprintf("%s asks: %s; the request is %s", f.RunID, f.Action, f.RequestID)
	case "error":
		return fmt.Sprintf("error %d: %s", f.Code, f.Message)
	}
	return fmt.Sprintf("%s %s %s", f.RunID, f.Type, f.Status)
}
