package translate

import (
	"bytes"
	"strconv"

	"prp/harness/fields"
	"prp/harness/text"
	"prp/protocol"
)

// request is a question of the agent that waits for the controller.
type request struct {
	id      string // ours
	rpc     value  // the agent's, as it was written
	input   bool   // a text is asked for, else a permission
	field   string // of the text in the answer
	options []option
}

// requestCancelled is the error code of a request that was withdrawn.
const requestCancelled = -32800

var outcomeCancelled = []byte(`{"outcome":{"outcome":"cancelled"}}`)

func outcomeSelected(o option) []byte {
	if o.id == "" {
		return outcomeCancelled
	}
	selected := fields.New().Text("outcome", "selected").Text("optionId", o.id).Object()
	return fields.New().Own("outcome", selected).Object()
}

// permissionAsked takes session/request_permission. It can come before its
// tool_call and then opens the item.
func (s *State) permissionAsked(id value, params object) {
	if s.turn == nil || s.turn.cancelled != cancelNone || s.gone {
		s.reply(id, outcomeCancelled)
		s.diagnose("agent_late_request", "session/request_permission", "a permission was asked for outside a turn; it was cancelled", nil)
		return
	}
	call := params["toolCall"].object()
	title, kind := call["title"].text(), call["kind"].text()
	if t := s.toolUpdated(call); t != nil {
		title, kind = t.title, t.toolKind
	}
	options := readOptions(params["options"])
	choice, ask := s.cfg.Policy.decide(kind, options)
	if ask && len(s.requests) >= maxRequests {
		choice, ask = option{}, false
		s.diagnose("agent_too_many_requests", "", "too many requests wait for an answer; this one was cancelled", nil)
	}
	if !ask {
		s.reply(id, outcomeSelected(choice))
		s.event("interaction.permission_decided", s.turn.id, "", fields.New().Text("policy", s.cfg.Policy.String()).
			Text("decision", decision(choice)).Short("optionId", choice.id).Short("optionKind", choice.kind).
			Short("title", title).Short("toolKind", kind).Short("toolCallId", call["toolCallId"].text()))
		return
	}
	if title == "" {
		title = "The agent asks for a permission."
	}
	s.ask(&request{rpc: clone(id), options: options}, protocol.RequestPermission, title, choices(options))
}

func clone(v value) value { return bytes.Clone(v) }

// decision is a person's word for what was chosen.
func decision(o option) string {
	switch {
	case o.id == "":
		return "cancelled"
	case o.kind == allowOnce || o.kind == "allow_always":
		return "allowed"
	}
	return "denied"
}

func readOptions(v value) []option {
	var options []option
	for _, e := range v.list() {
		o := e.object()
		one := option{id: o["optionId"].text(), name: o["name"].text(), kind: o["kind"].text()}
		if one.id != "" && len(one.id) <= maxKey && len(options) < maxChoices {
			options = append(options, one)
		}
	}
	return options
}

// choices are what a controller can choose from; the key is the option's id.
func choices(options []option) []byte {
	var list [][]byte
	for _, o := range options {
		label, _ := text.Head(o.name, maxKey)
		kind, _ := text.Head(o.kind, maxKey)
		list = append(list, fields.New().Text("key", o.id).Text("label", label).Text("kind", kind).Object())
	}
	return array(fitting(list))
}

// ask passes a question on.
func (s *State) ask(r *request, t protocol.RequestType, prompt string, choices []byte) {
	s.asked++
	r.id = string(t) + "_" + strconv.Itoa(s.asked)
	s.requests = append(s.requests, r)
	f := fields.New().Text("schema", protocol.SchemaRequest).Text("requestKind", protocol.RequestKindRuntime).
		Text("requestId", r.id).Text("type", string(t)).Text("status", protocol.RequestStatusPending).Short("prompt", prompt)
	if choices != nil {
		f.Own("choices", choices)
	}
	s.clearTimer(TimerIdle) // it is not the agent that is silent
	s.say(protocol.MessageRequest, fields.New().Own("request", f.Object()).Object())
}

// inputAsked takes elicitation/create: a form with a text in it becomes a
// request for input, anything else is declined.
func (s *State) inputAsked(id value, params object) {
	field := textField(params["requestedSchema"].object())
	mode := params["mode"].text()
	if s.turn == nil || s.turn.cancelled != cancelNone || s.gone {
		s.reply(id, []byte(`{"action":"cancel"}`))
		return
	}
	if mode != "" && mode != "form" || field == "" || len(s.requests) >= maxRequests {
		s.reply(id, []byte(`{"action":"decline"}`))
		s.diagnose("agent_request_declined", "elicitation/create", "only a form with a text can be asked for", nil)
		return
	}
	prompt := params["message"].text()
	if prompt == "" {
		prompt = "The agent asks for " + field + "."
	}
	s.ask(&request{rpc: clone(id), input: true, field: field}, protocol.RequestInput, prompt, nil)
}

// textField is the text of a form: a required one, else the first by name.
func textField(schema object) string {
	properties := schema["properties"].object()
	isText := func(name string) bool { return properties[name].object()["type"].text() == "string" }
	for _, r := range schema["required"].list() {
		if isText(r.text()) {
			return r.text()
		}
	}
	first := ""
	for name := range properties {
		if isText(name) && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

// resolve passes the controller's answer on. It reaches the agent once.
func (s *State) resolve(c protocol.HarnessCommand) {
	payload, _ := parse(c.Payload)
	id := payload["requestId"].text()
	r := s.takeRequest(func(r *request) bool { return r.id == id })
	if r == nil {
		s.diagnose("answer_too_late", "", "an answer came to a request that is closed", fields.New().Short("requestId", id))
		return
	}
	response := payload["response"]
	f := fields.New().Text("requestId", r.id).Raw("response", response, maxRaw)
	if r.input {
		content := fields.New().Text(r.field, answerText(response, "text", "value", "answer")).Object()
		s.reply(r.rpc, fields.New().Text("action", "accept").Own("content", content).Object())
	} else {
		o := chosen(r.options, answerText(response, "decision", "optionId", "key", "choice", "outcome"))
		s.reply(r.rpc, outcomeSelected(o))
		f.Text("decision", decision(o)).Short("optionId", o.id).Short("optionKind", o.kind)
	}
	s.event(protocol.EventRequestResolved, s.turnID(), "", f)
	if s.turn != nil && s.cfg.TurnIdle > 0 && len(s.requests) == 0 {
		s.setTimer(TimerIdle, s.cfg.TurnIdle)
	}
}

// answerText is the text of an answer: itself, or one of its members.
func answerText(response value, names ...string) string {
	if s := response.text(); s != "" {
		return s
	}
	o := response.object()
	for _, name := range names {
		if s := o[name].text(); s != "" {
			return s
		}
	}
	return ""
}

func (s *State) takeRequest(is func(*request) bool) *request {
	for i, r := range s.requests {
		if is(r) {
			s.requests = append(s.requests[:i:i], s.requests[i+1:]...)
			return r
		}
	}
	return nil
}

// requestWithdrawn: the agent does not want the answer any more.
func (s *State) requestWithdrawn(params object) {
	r := s.takeRequest(func(r *request) bool { return bytes.Equal(r.rpc, params["requestId"]) })
	if r == nil {
		return
	}
	s.refuse(r.rpc, requestCancelled, "request cancelled")
	s.requestGone(r, "the agent withdrew it")
}

func (s *State) requestGone(r *request, reason string) {
	s.event(protocol.EventRequestCancelled, s.turnID(), "", fields.New().Text("requestId", r.id).Text("reason", reason))
}

// cancelRequests closes every request that waits.
func (s *State) cancelRequests(reason string) {
	pending := s.requests
	s.requests = nil
	for _, r := range pending {
		if r.input {
			s.reply(r.rpc, []byte(`{"action":"cancel"}`))
		} else {
			s.reply(r.rpc, outcomeCancelled)
		}
		s.requestGone(r, reason)
	}
}
