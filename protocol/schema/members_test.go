package schema_test

import (
	"github.com/invopop/jsonschema"

	"prp/protocol"
)

// member is what a Go type cannot say about one member: what it means, and
// the values that the spec allows.
type member struct {
	text  string
	shape shape
}

// members lists every member of every reflected type, by type and JSON name.
func members() map[string]map[string]member {
	return map[string]map[string]member{
		// What a controller writes.
		"Command": {
			"schema":        {"Name of the schema of the line.", oneOf(protocol.SchemaCommand, protocol.SchemaCommandShort)},
			"commandId":     {"Id of the command. The same id with equal content has no second effect.", id},
			"controllerSeq": {"Number of the command, contiguous from 1.", atLeast(1)},
			"type":          {"What the controller wants.", nil},
			"issuedAt":      {"When the controller made the command, RFC 3339.", dateTime},
			"deadlineAt":    {"After this time the command is rejected with deadline_passed, RFC 3339.", dateTime},
			"precondition":  {"What has to hold for the command to be taken.", nil},
			"payload":       {"The command's own members. Absent is the same as an empty object.", object},
		},
		"Precondition": {
			"runnerState":  {"The runner's state is one of these.", nil},
			"runState":     {"The run's state is one of these.", nil},
			"sessionState": {"The session's state is one of these.", nil},
			"activeTurnId": {"This turn is active; null: no turn is.", all(id, orNull)},
		},
		"TurnStartPayload": {
			"turnId": {"Id of the new turn.", id},
			"text":   {"What the agent is told.", nil},
		},
		"TurnSteerPayload": {
			"turnId": {"The turn that is meant; absent: the active one.", id},
			"text":   {"What the agent is told meanwhile.", nil},
		},
		"TurnEndPayload": {
			"turnId": {"The turn that is meant; absent: the active one.", id},
			"reason": {"Why the turn is to end, for the record.", nil},
		},
		"RequestResolvePayload": {
			"requestId": {"The pending request that is answered.", id},
			"response":  {"The answer, any JSON value.", nil},
		},

		// What the runner writes.
		"StreamLine": {
			"schema":  {"Name of the schema of the line.", only(protocol.SchemaStream)},
			"message": {"An event, a receipt or a diagnostic, as kind says.", object},
		},
		"Receipt": {
			"commandId":     {"The command that is answered.", id},
			"controllerSeq": {"Its number.", atLeast(1)},
			"status":        {"accepted: taken. duplicate: was taken before. rejected: has no effect.", nil},
			"detail":        {"A sentence for a person.", nil},
			"code":          {"Why the command was rejected.", oneOf(receiptCodes()...)},
		},
		"Diagnostic": {
			"level":   {"How serious it is.", nil},
			"message": {"A sentence for a person.", nil},
			"code":    {"A stable word for programs.", nil},
		},
		"Event": {
			"schema":              {"Name of the schema of the event.", only(protocol.SchemaEvent)},
			"sourceEventId":       {"event_, the run id, _ and sourceSeq with at least three digits.", all(length(1, protocol.MaxIDLen), pattern(`^event_.+_([0-9]{3}|[1-9][0-9]{3,})$`))},
			"sourceSeq":           {"Number of the event, contiguous from 1.", atLeast(1)},
			"sourceInstanceId":    {"Id of the runner.", runID},
			"sourceKind":          {"Who writes the event.", only(protocol.SourceKindRunner)},
			"runId":               {"Id of the run.", runID},
			"normalizedSessionId": {"Id of the session.", runID},
			"turnId":              {"The turn that the event belongs to.", id},
			"itemId":              {"The item that the event belongs to.", id},
			"eventType":           {"What happened.", eventType},
			"schemaVersion":       {"Version of the event's shape.", func(s *jsonschema.Schema) { s.Const = 1 }},
			"priority":            {"0 must not be lost, 1 is ordinary, 2 may be dropped first under pressure.", func(s *jsonschema.Schema) { s.Enum = []any{0, 1, 2} }},
			"emittedAt":           {"When the runner made the event: UTC, exactly three decimals, Z.", all(dateTime, pattern(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$`))},
			"payload":             {"The event's own members.", object},
		},
		"WorkspaceReady":  {"workingDirectory": {"The directory as it was given.", nil}},
		"HarnessStarting": {"driverKind": driverKind, "transport": transport},
		"HarnessReady": {
			"driverKind":    driverKind,
			"driverVersion": {"Version of the driver, as it says.", nil},
			"transport":     transport,
			"capabilities":  {"What the driver can do, as it says.", anyOfTypes("array", "object")},
		},
		"TurnSubmitted":  {"text": {"What the agent is told.", nil}},
		"RequestCreated": {"request": {"The request.", nil}},
		"ResultProposed": {"result": {"The first valid result.", nil}},
		"HarnessExited": {
			"processExit":            {"How the process ended.", nil},
			"semanticResultObserved": {"Whether a valid result came.", nil},
			"logs":                   {"The end of the harness's log.", nil},
			"containment":            {"How it was made sure that nothing is left.", nil},
		},
		"ExitFact": {
			"exitCode": {"Exit status; null after a death by a signal.", all(atLeast(0), orNull)},
			"success":  {"Whether the process exited with status 0.", nil},
			"signal":   {"Number of the signal that ended the process; else null.", all(atLeast(1), orNull)},
		},
		"LogTail": {
			"lines":         {"The last lines, oldest first.", nil},
			"retainedLines": {"How many lines these are.", atLeast(0)},
			"retainedBytes": {"How many bytes these are.", atLeast(0)},
			"droppedLines":  {"How many lines came before them.", atLeast(0)},
		},
		"Containment": {
			"means":     {"The means in force, strongest first.", array},
			"swept":     {"How many descendants had to be ended in the end.", atLeast(0)},
			"survivors": {"What even SIGKILL did not end.", array},
		},
		"Survivor": {
			"pid":   {"Process id.", atLeast(1)},
			"name":  {"Name of the process.", nil},
			"state": {"State letter of the kernel.", nil},
		},

		// The objects inside.
		"Request": {
			"schema":      {"Name of the schema of the request.", only(protocol.SchemaRequest)},
			"requestKind": {"Who asks.", only(protocol.RequestKindRuntime)},
			"requestId":   {"Id of the request, used once in a run.", id},
			"type":        {"What kind of answer is wanted.", nil},
			"status":      {"A request is made pending.", only(protocol.RequestStatusPending)},
			"prompt":      {"The question.", nil},
			"choices":     {"The answers to choose from.", array},
			"expiresAt":   {"When nobody needs to answer any more, RFC 3339.", dateTime},
		},
		"Result": {
			"schema":                  {"Name of the schema of the result.", only(protocol.SchemaResult)},
			"reportedWorkDisposition": disposition,
			"summary":                 {"What was done, for a person.", length(1, protocol.MaxSummaryLen)},
			"completionClaim":         {"How far the harness claims to have come.", nil},
			"evidence":                {"What supports the claim.", array},
			"verification":            {"What was checked.", array},
			"attentionRequests":       {"What a person should look at.", array},
			"artifacts":               {"What was made.", array},
			"blocker":                 {"What stands in the way; required with blocked.", object},
			"continuation":            {"How the work goes on; required with yielded.", nil},
		},
		"CompletionClaim": {
			"contractRevision":   {"The revision of the contract that the claim is about.", anyOfTypes("string", "number")},
			"objectiveSatisfied": {"Whether the objective is reached.", nil},
			"criteria":           {"The claim for each criterion.", array},
			"remainingWork":      {"What is left to do.", array},
		},
		"Continuation": {
			"kind":           {"How the work goes on.", claim},
			"summary":        {"What is left, for a person.", claim},
			"idempotencyKey": {"Key under which the continuation happens once.", claim},
		},
		"TerminalProposal": terminalStates(),
		"Terminal": with(terminalStates(), map[string]member{
			"harnessTerminalProposal": {"The harness's proposal as it was, or null.", anyOfTypes("object", "null")},
			"reconciliation":          {"How the runner decided.", nil},
		}),
		"Reconciliation": {
			"authority":              {"Who decided.", only(protocol.AuthorityRunner)},
			"reason":                 {"Why the run ended as it did.", nil},
			"proposalValid":          {"Whether there was a proposal of valid shape.", nil},
			"proposalContradicted":   {"Whether the proposal said something else.", nil},
			"processExit":            {"How the process ended; null where there was none.", orNull},
			"semanticResultObserved": {"Whether a valid result came.", nil},
		},

		// What a harness reads and writes.
		"HarnessCommand": {
			"schema":    {"Name of the schema of the line; the family is that of the harness's ready.", oneOf(protocol.FamilyFake.CommandSchema(), protocol.FamilyHarness.CommandSchema())},
			"commandId": {"Id of the controller's command.", id},
			"type":      {"What the controller wants; only these reach a harness.", oneOf(words(forwarded)...)},
			"payload":   {"The command's own members.", object},
		},
		"MessageEnvelope": {
			"schema":     {"Name of the schema of the line; the family of ready holds for the run.", oneOf(protocol.FamilyFake.MessageSchema(), protocol.FamilyHarness.MessageSchema())},
			"messageSeq": {"Number of the message, contiguous from 1.", atLeast(1)},
			"type":       {"What the harness says.", nil},
			"payload":    {"The message's own members.", object},
		},
		"Ready": {
			"version":      {"Version of the driver.", nil},
			"driverKind":   driverKind,
			"capabilities": {"What the driver can do: a list of names, or an object with them as keys.", anyOfTypes("array", "object")},
		},
		"HarnessEvent": {
			"eventType": {"What happened. A type of the runner's own and an unknown type are not passed on.", id},
			"turnId":    {"The turn that the event belongs to.", id},
			"itemId":    {"The item that the event belongs to.", id},
			"payload":   {"The event's own members, passed on as they are.", object},
		},
		"Log": {
			"stream": {"The stream that the text stands for.", oneOf("stdout", "stderr")},
			"text":   {"The text.", nil},
		},
		"RequestMessage":  {"request": {"The request.", nil}},
		"ResultMessage":   {"result": {"A result; see urn:prp:schema:result:v1. An invalid one is ignored with a diagnostic.", object}},
		"TerminalMessage": {"terminal": {"A terminal proposal; see urn:prp:schema:proposal:v1.", object}},
	}
}

var (
	driverKind  = member{"Kind of the driver.", id}
	transport   = member{"How the runner talks to the harness.", only("stdio_jsonl")}
	disposition = member{"What the harness says about the work.", nil}
)

// forwarded are the commands that the runner passes on (spec section 2).
var forwarded = []protocol.CommandType{
	protocol.SessionOpen, protocol.TurnStart, protocol.TurnSteer, protocol.TurnInterrupt, protocol.TurnStop,
	protocol.RequestResolve, protocol.SessionClose, protocol.RunCancel,
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func terminalStates() map[string]member {
	return map[string]member{
		"schema":                  {"Name of the schema of the terminal.", only(protocol.SchemaTerminal)},
		"turnTerminalState":       {"How the last turn ended.", nil},
		"runTerminalState":        {"How the run ended.", nil},
		"reportedWorkDisposition": disposition,
	}
}

func with(base, more map[string]member) map[string]member {
	for key, m := range more {
		base[key] = m
	}
	return base
}

// eventType allows the types of package protocol and the open families.
func eventType(s *jsonschema.Schema) {
	known := &jsonschema.Schema{}
	oneOf(constants()["EventType"]...)(known)
	open := &jsonschema.Schema{}
	pattern(`^(mcp_app|interaction|attention|runner)\..+$`)(open)
	s.Type = ""
	s.AnyOf = []*jsonschema.Schema{known, open}
}
