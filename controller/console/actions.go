package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"prp/controller"
	"prp/protocol"
)

// actionWait bounds how long an action waits for the runner's receipt: an order
// that is given while the harness is being prepared waits for it.
const actionWait = 45 * time.Second

// actions are what a person can do to an active run.
var actions = map[string]protocol.CommandType{
	"resolve":   protocol.RequestResolve,
	"interrupt": protocol.TurnInterrupt,
	"stop":      protocol.TurnStop,
	"close":     protocol.SessionClose,
	"cancel":    protocol.RunCancel,
}

// decode reads a body strictly: no unknown, doubled or trailing member.
func decode(r *http.Request, into any) *refusal {
	body, err := readAll(r)
	if err == nil {
		err = protocol.CheckJSON(body)
	}
	if err == nil {
		err = unmarshalStrict(body, into)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, codeInvalidBody, fmt.Sprintf("expected a JSON object of this action: %s", err))
	}
	return nil
}

// act sends a command for a person and answers with the runner's receipt.
func (s *Server) act(w http.ResponseWriter, req *http.Request, r *run, name string) {
	payload, no := actionPayload(req, name)
	if no != nil {
		no.write(w)
		return
	}
	client := r.running()
	if client == nil {
		runOver().write(w)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), actionWait)
	defer cancel()
	receipt, err := client.Send(ctx, controller.Command{Type: actions[name], Payload: payload})
	rejected := new(controller.RejectedError)
	switch {
	case err == nil:
		answer(w, http.StatusOK, map[string]any{"receipt": receipt})
	case errors.As(err, &rejected):
		refuse(http.StatusConflict, string(rejected.Code()), rejected.Receipt.Detail).writeWith(w, rejected.Receipt)
	case errors.Is(err, controller.ErrRunnerGone), errors.Is(err, controller.ErrClosed):
		runOver().write(w)
	case ctx.Err() != nil:
		refuse(http.StatusGatewayTimeout, "no_receipt", "the runner has not answered in time; the action may still take effect").write(w)
	default:
		refuse(http.StatusBadRequest, codeInvalidBody, err.Error()).write(w)
	}
}

func runOver() *refusal { return refuse(http.StatusGone, "run_over", "the run is over") }

// actionPayload is the command's payload for the body of an action.
func actionPayload(req *http.Request, name string) (json.RawMessage, *refusal) {
	var body any
	if name == "resolve" {
		var b struct {
			RequestID string          `json:"requestId"`
			Response  json.RawMessage `json:"response"`
		}
		if no := decode(req, &b); no != nil {
			return nil, no
		}
		if b.RequestID == "" || b.Response == nil {
			return nil, refuse(http.StatusBadRequest, codeInvalidBody, "expected requestId and response")
		}
		body = b
	} else {
		var b struct {
			Reason string `json:"reason,omitempty"`
		}
		if no := decode(req, &b); no != nil {
			return nil, no
		}
		body = b
	}
	payload, err := json.Marshal(body)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, codeInvalidBody, err.Error())
	}
	return payload, nil
}

// startBody is what is asked for with a new run.
type startBody struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// startRun starts a run and answers with it.
func (s *Server) startRun(w http.ResponseWriter, req *http.Request) {
	var b startBody
	no := decode(req, &b)
	var r *run
	if no == nil {
		if b.Text == "" {
			b.Text = s.cfg.Text
		}
		r, no = s.runs.start(b.Kind, b.Name, b.Text)
	}
	if no != nil {
		no.write(w)
		return
	}
	answer(w, http.StatusCreated, map[string]any{"run": r.info()})
}

// listBody is everything that the page shows beside a run.
type listBody struct {
	Choices []Choice  `json:"choices"`
	Text    string    `json:"text"`
	Runs    []runInfo `json:"runs"`
	Limits  struct {
		Active  int `json:"active"`
		Kept    int `json:"kept"`
		Streams int `json:"streams"`
		Body    int `json:"bodyBytes"`
	} `json:"limits"`
}

func (s *Server) listRuns(w http.ResponseWriter) {
	body := listBody{Choices: s.cfg.Choices, Text: s.cfg.Text, Runs: []runInfo{}}
	if body.Choices == nil {
		body.Choices = []Choice{}
	}
	for _, r := range s.runs.list() {
		body.Runs = append(body.Runs, r.info())
	}
	body.Limits.Active, body.Limits.Kept, body.Limits.Streams, body.Limits.Body = maxActiveRuns, maxKeptRuns, maxStreams, maxBody
	answer(w, http.StatusOK, body)
}

// finalTrace answers with the trace of a run that is over.
func (s *Server) finalTrace(w http.ResponseWriter, r *run) {
	body, over, err := r.trace()
	switch {
	case err != nil:
		refuse(http.StatusInternalServerError, "internal", err.Error()).write(w)
	case !over:
		refuse(http.StatusConflict, "run_active", "expected a run that is over; this one is active").write(w)
	default:
		answer(w, http.StatusOK, body)
	}
}
