package translate

import (
	"strconv"

	"prp/harness/fields"
	"prp/harness/text"
	"prp/protocol"
)

// callKind is what a request of ours was for.
type callKind uint8

const (
	callInitialize callKind = iota
	callAuthenticate
	callNew
	callLoad
	callResume
	callPrompt
	callClose
)

// Error codes of JSON-RPC and of the Agent Client Protocol.
const (
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeAuthRequired   = -32000
)

// call sends a request and returns its id.
func (s *State) call(kind callKind, method string, params []byte) int64 {
	s.nextID++
	s.calls[s.nextID] = kind
	s.write(fields.New().Text("jsonrpc", "2.0").Number("id", s.nextID).Text("method", method).Own("params", params).Object())
	return s.nextID
}

func (s *State) notify(method string, params []byte) {
	s.write(fields.New().Text("jsonrpc", "2.0").Text("method", method).Own("params", params).Object())
}

// reply answers a request of the agent under its own id, as it was written.
func (s *State) reply(id value, result []byte) {
	s.write(fields.New().Text("jsonrpc", "2.0").Own("id", id).Own("result", result).Object())
}

func (s *State) refuse(id value, code int64, message string) {
	e := fields.New().Number("code", code).Text("message", message).Object()
	s.write(fields.New().Text("jsonrpc", "2.0").Own("id", id).Own("error", e).Object())
}

// Line takes a line of the agent's stdout.
func (s *State) Line(line []byte) {
	if s.turn != nil && s.cfg.TurnIdle > 0 && s.turn.cancelled == cancelNone && len(s.requests) == 0 {
		s.setTimer(TimerIdle, s.cfg.TurnIdle)
	}
	line, replaced := Repair(line)
	message, ok := parse(line)
	if !ok || message["jsonrpc"] == nil && message["method"] == nil && message["id"] == nil {
		s.noise(line)
		return
	}
	if replaced > 0 {
		s.diagnose("agent_text_repaired", "", "text that is no valid Unicode was replaced by U+FFFD",
			size(len(line)).Number("replaced", int64(replaced)))
	}
	method, id := message["method"], message["id"]
	switch {
	case !method.isNull() && !id.isNull():
		s.agentAsks(method.text(), id, message["params"])
	case !method.isNull():
		s.agentTells(method.text(), message["params"])
	default:
		s.agentAnswers(id, message)
	}
}

// noise is a line that is no message: a fault of the agent that ends nothing.
func (s *State) noise(line []byte) {
	s.diagnose("agent_noise", "", "the agent wrote a line that is no JSON-RPC message to its stdout", size(len(line)))
	start, _ := text.Head(string(line), maxShort)
	if !s.saidReady {
		s.note("the agent wrote: " + start)
		return
	}
	s.say(protocol.MessageLog, fields.New().Text("stream", protocol.LogStdout).
		Own("text", protocol.AppendString(nil, start)).Object())
}

// LongLine is a line that was over the bound and is gone.
func (s *State) LongLine(limit int) {
	s.diagnose("agent_line_too_long", "", "a line of the agent is over the bound and was dropped",
		fields.New().Number("limit", int64(limit)))
}

func (s *State) agentAsks(method string, id, params value) {
	if protocol.CheckJSON(id) != nil || id.kind() != '"' && id.kind() != '0' {
		s.diagnose("agent_bad_id", method, "a request has an id that is neither a string nor a number", size(len(id)))
		return
	}
	switch method {
	case "session/request_permission":
		s.permissionAsked(id, params.object())
	case "elicitation/create":
		s.inputAsked(id, params.object())
	default:
		s.refuse(id, codeMethodNotFound, "method not found")
		s.diagnose("agent_unknown_request", method, "a request that this client does not know was refused", size(len(params)))
	}
}

func (s *State) agentTells(method string, params value) {
	switch method {
	case "session/update":
		s.update(params.object(), len(params))
	case "$/cancel_request":
		s.requestWithdrawn(params.object())
	default:
		s.diagnose("agent_unknown_notification", method, "a notification that this client does not know", size(len(params)))
	}
}

func (s *State) agentAnswers(id value, message object) {
	n, ok := id.integer()
	kind, known := s.calls[n]
	if !ok || !known {
		s.diagnose("agent_unknown_answer", "", "an answer to a request that was not made", size(len(id)))
		return
	}
	delete(s.calls, n)
	var fault *rpcError
	if e := message["error"]; !e.isNull() {
		fault = readError(e)
	}
	result := message["result"].object()
	switch kind {
	case callInitialize:
		s.initialized(result, fault)
	case callAuthenticate:
		s.authenticated(fault)
	case callNew, callLoad, callResume:
		s.sessionAnswered(kind, result, fault)
	case callPrompt:
		s.promptAnswered(n, result, fault)
	case callClose:
		s.sessionEnded()
	}
}

// rpcError is the agent's refusal of a request of ours.
type rpcError struct {
	code    int64
	message string
	data    value
}

func readError(v value) *rpcError {
	o := v.object()
	code, _ := o["code"].integer()
	e := &rpcError{code: code, message: o["message"].text(), data: o["data"]}
	if e.message == "" {
		e.message = "error " + strconv.FormatInt(code, 10)
	}
	return e
}

// fields tells an error in an event.
func (e *rpcError) fields(code string) *fields.Fields {
	return fields.New().Text("code", code).Short("message", e.message).Number("rpcCode", e.code).Raw("data", e.data, maxRaw)
}
