package schema_test

import (
	"github.com/invopop/jsonschema"

	"prp/protocol"
)

// documents describes every schema by its name.
func documents() map[string]document {
	return map[string]document{
		"command": {
			title: "PRP command", text: "One line from the controller to the runner's stdin.",
			root:   protocol.Command{},
			parts:  []any{TurnStartPayload{}, TurnSteerPayload{}, TurnEndPayload{}, RequestResolvePayload{}},
			finish: commandPayloads,
		},
		"stream": {
			title: "PRP runner stream", text: "One line from the runner's stdout to the controller.",
			root:   StreamLine{},
			parts:  append(eventParts(), protocol.Event{}, protocol.Receipt{}, protocol.Diagnostic{}),
			finish: streamMessage,
		},
		"event": {
			title: "PRP event", text: "One canonical event of a run.",
			root: protocol.Event{}, parts: eventParts(),
		},
		"request": {
			title: "PRP runtime request", text: "A question of the harness that a controller answers.",
			root: protocol.Request{},
		},
		"result": {
			title: "PRP run result", text: "The harness's claim about its work.",
			root: protocol.Result{},
		},
		"proposal": {
			title: "PRP terminal proposal", text: "A terminal as a harness proposes it; the runner decides.",
			root: protocol.TerminalProposal{},
		},
		"terminal": {
			title: "PRP terminal", text: "The payload of run.terminal: the one true end of a run.",
			root: protocol.Terminal{},
		},
		"harness-command": {
			title: "PRP harness command", text: "One line from the runner to the harness's stdin.",
			root:   protocol.HarnessCommand{},
			parts:  []any{TurnStartPayload{}, TurnSteerPayload{}, TurnEndPayload{}, RequestResolvePayload{}},
			finish: commandPayloads,
		},
		"harness-message": {
			title: "PRP harness message", text: "One line from the harness's stdout to the runner.",
			root: protocol.MessageEnvelope{},
			parts: []any{
				protocol.Ready{},
				protocol.HarnessEvent{},
				protocol.Log{},
				RequestMessage{},
				ResultMessage{},
				TerminalMessage{},
			},
			finish: messagePayloads,
		},
		"script": scriptDocument(),
	}
}

func eventParts() []any {
	return []any{
		WorkspaceReady{},
		HarnessStarting{},
		HarnessReady{},
		TurnSubmitted{},
		RequestCreated{},
		ResultProposed{},
		protocol.HarnessExited{},
		protocol.Terminal{},
	}
}

// commandPayloads ties the payload to the type of the command.
func commandPayloads(s *jsonschema.Schema) {
	for _, rule := range []struct {
		types    []protocol.CommandType
		def      string
		required bool
	}{
		{[]protocol.CommandType{protocol.TurnStart}, "TurnStartPayload", true},
		{[]protocol.CommandType{protocol.TurnSteer}, "TurnSteerPayload", true},
		{[]protocol.CommandType{protocol.TurnInterrupt, protocol.TurnStop}, "TurnEndPayload", false},
		{[]protocol.CommandType{protocol.RequestResolve}, "RequestResolvePayload", true},
	} {
		then := properties("payload", ref(rule.def))
		if rule.required {
			needs(then, "payload")
		}
		when(s, "type", values(rule.types...), then)
	}
}

// streamMessage ties the content of a message to its kind.
func streamMessage(s *jsonschema.Schema) {
	message, _ := s.Properties.Get("message")
	kind := &jsonschema.Schema{Description: "What the line carries."}
	oneOf(constants()["MessageKind"]...)(kind)
	message.Properties = properties("kind", kind).Properties
	needs(message, "kind")
	when(message, "kind", constant(string(protocol.KindEvent)), needs(properties("event", ref("Event")), "event"))
	when(message, "kind", constant(string(protocol.KindReceipt)), ref("Receipt"))
	when(message, "kind", constant(string(protocol.KindDiagnostic)), ref("Diagnostic"))
}

// messagePayloads ties the payload to the type of the harness's message.
func messagePayloads(s *jsonschema.Schema) {
	for _, rule := range []struct {
		typ protocol.MessageType
		def string
	}{
		{protocol.MessageReady, "Ready"},
		{protocol.MessageEvent, "HarnessEvent"},
		{protocol.MessageRequest, "RequestMessage"},
		{protocol.MessageResult, "ResultMessage"},
		{protocol.MessageTerminal, "TerminalMessage"},
		{protocol.MessageLog, "Log"},
	} {
		when(s, "type", constant(string(rule.typ)), properties("payload", ref(rule.def)))
	}
}

// relations are the rules between the members of one type, wherever it stands.
func relations() map[string]func(*jsonschema.Schema) {
	return map[string]func(*jsonschema.Schema){
		"Event": func(s *jsonschema.Schema) {
			eventPriorities(s)
			eventPayloads(s)
		},
		"Receipt": func(s *jsonschema.Schema) {
			rejected := properties("status", constant(string(protocol.ReceiptRejected)))
			s.AllOf = append(s.AllOf, &jsonschema.Schema{
				If:   needs(rejected, "status"),
				Then: needs(&jsonschema.Schema{}, "code"),
				Else: properties("code", jsonschema.FalseSchema),
			})
		},
		"ExitFact": func(s *jsonschema.Schema) {
			null, number := &jsonschema.Schema{Type: "null"}, &jsonschema.Schema{Type: "integer"}
			s.OneOf = []*jsonschema.Schema{
				properties("exitCode", constant(0), "success", constant(true), "signal", null),
				properties("exitCode", &jsonschema.Schema{Type: "integer", Minimum: "1"}, "success", constant(false), "signal", null),
				properties("exitCode", null, "success", constant(false), "signal", number),
				// The exit is not known where even SIGKILL did not end the process.
				properties("exitCode", null, "success", constant(false), "signal", null),
			}
		},
		"Result": func(s *jsonschema.Schema) {
			when(s, "reportedWorkDisposition", constant(string(protocol.DispositionBlocked)), needs(&jsonschema.Schema{}, "blocker"))
			when(s, "reportedWorkDisposition", constant(string(protocol.DispositionYielded)), needs(&jsonschema.Schema{}, "continuation"))
		},
	}
}

// eventPriorities says which types have priority 0 and 2; the rest has 1
// (spec section 3).
func eventPriorities(s *jsonschema.Schema) {
	urgent := values(
		protocol.EventResultProposed, protocol.EventRunTerminal, protocol.EventTurnCompleted, protocol.EventTurnFailed,
		protocol.EventTurnInterrupted, protocol.EventTurnCancelled, protocol.EventHarnessExited,
	)
	idle := values(protocol.EventItemDelta, protocol.EventHarnessDiag, protocol.EventRunnerDiag)
	ordinary := &jsonschema.Schema{Not: &jsonschema.Schema{Enum: append(append([]any{}, urgent.Enum...), idle.Enum...)}}
	when(s, "eventType", urgent, properties("priority", constant(0)))
	when(s, "eventType", idle, properties("priority", constant(2)))
	when(s, "eventType", ordinary, properties("priority", constant(1)))
}

// eventPayloads ties the payload to the type for the events that the runner
// alone makes.
func eventPayloads(s *jsonschema.Schema) {
	for _, rule := range []struct {
		typ protocol.EventType
		def string
	}{
		{protocol.EventWorkspaceReady, "WorkspaceReady"},
		{protocol.EventHarnessStarting, "HarnessStarting"},
		{protocol.EventHarnessReady, "HarnessReady"},
		{protocol.EventHarnessExited, "HarnessExited"},
		{protocol.EventTurnSubmitted, "TurnSubmitted"},
		{protocol.EventRequestCreated, "RequestCreated"},
		{protocol.EventResultProposed, "ResultProposed"},
		{protocol.EventRunTerminal, "Terminal"},
	} {
		when(s, "eventType", constant(string(rule.typ)), properties("payload", ref(rule.def)))
	}
	when(s, "eventType", constant(string(protocol.EventTurnSubmitted)), needs(&jsonschema.Schema{}, "turnId"))
}
