package main

import (
	"fmt"
	"strconv"
	"strings"

	"prp/controller"
	"prp/protocol"
)

// explained is a word of the protocol and what it means.
type explained[T ~string] struct {
	word T
	text string
}

// streamRows are the four streams; what they carry and how long a line may be.
func streamRows() [][3]string {
	short := func(n int) string { return "at most " + strconv.Itoa(n) + " bytes" }
	return [][3]string{
		{"controller -> runner", protocol.SchemaCommand, short(protocol.DefaultCommandLine)},
		{"runner -> controller", protocol.SchemaStream, ""},
		{"runner -> harness", protocol.FamilyHarness.CommandSchema(), ""},
		{"harness -> runner", protocol.FamilyHarness.MessageSchema(), short(protocol.DefaultHarnessLine)},
	}
}

// commandTexts say what each command is for; a test keeps them complete.
var commandTexts = []explained[protocol.CommandType]{
	{protocol.RunPrepare, "once, first: starts the harness and waits for its ready"},
	{protocol.SessionOpen, "once, when prepared"},
	{protocol.TurnStart, "{turnId, text}: when the session is open and no turn is active"},
	{protocol.TurnSteer, "{turnId?, text}: when a turn is active that can be steered"},
	{protocol.TurnInterrupt, "{turnId?, reason?}: when a turn is active"},
	{protocol.TurnStop, "{turnId?, reason?}: when a turn is active"},
	{protocol.RequestResolve, "{requestId, response}: when the request is pending"},
	{protocol.SessionClose, "when the session is open; ends the harness's stdin"},
	{protocol.RunCancel, "until the harness has exited"},
	{protocol.RunnerDrain, "any time: no further turn starts"},
	{protocol.RunnerShutdown, "any time: the run ends at once"},
}

// receiptCodes are the codes of a rejected receipt, in the order of the checks.
var receiptCodes = []explained[protocol.Code]{
	{protocol.CodeInvalidJSON, "the line is not valid JSON"},
	{protocol.CodeUnsupportedSchema, "the schema is not that of a command"},
	{protocol.CodeInvalidCommand, "a member is missing or has the wrong shape"},
	{protocol.CodeLineTooLong, "the line is longer than it may be"},
	{protocol.CodeCommandIDReused, "the id was used for another command"},
	{protocol.CodeSequenceGap, "controllerSeq is not the next number"},
	{protocol.CodeDeadlinePassed, "deadlineAt has passed"},
	{protocol.CodePreconditionFailed, "the precondition does not hold"},
	{protocol.CodeUnsupportedType, "there is no such command"},
	{protocol.CodeNotPrepared, "the run is not prepared"},
	{protocol.CodeAlreadyPrepared, "the run was prepared before"},
	{protocol.CodeSessionNotOpen, "the session is not open"},
	{protocol.CodeSessionAlreadyOpen, "the session was opened before"},
	{protocol.CodeTurnActive, "a turn is active"},
	{protocol.CodeNoActiveTurn, "no turn is active"},
	{protocol.CodeTurnMismatch, "another turn is active"},
	{protocol.CodeUnknownRequest, "there is no such request"},
	{protocol.CodeRequestAlreadyResolved, "the request was answered before"},
	{protocol.CodeUnsupportedByHarness, "the harness did not say that it can do that"},
	{protocol.CodeDraining, "the runner lets no further turn start"},
	{protocol.CodeRunEnding, "the run is ending"},
	{protocol.CodeHarnessBackpressure, "too much waits for a harness that does not read"},
	{protocol.CodeHarnessInputClosed, "the harness has closed its stdin"},
	{protocol.CodeHarnessStartFailed, "the harness could not be started"},
	{protocol.CodeHarnessNotReady, "the harness was not ready in time, or ended before"},
}

// diagnosticCodes are the codes of harness.diagnostic events about messages
// that were not taken; the run goes on.
var diagnosticCodes = []explained[protocol.Code]{
	{protocol.CodeReservedEventType, "only the runner makes events of this type"},
	{protocol.CodeUnknownEventType, "there is no such event type"},
	{protocol.CodeDuplicateSemanticResult, "a result came before"},
	{protocol.CodeInvalidSemanticResult, "the result has not the shape of one"},
	{protocol.CodeDuplicateTerminalIgnored, "a terminal was proposed before"},
	{protocol.CodeDuplicateRequestIgnored, "a request of this id is pending"},
	{protocol.CodeTooManyRequests, "too many requests are pending"},
	{protocol.CodeTornLine, "the end of the run has torn a line"},
}

// violationCodes are the codes of what ends a run: the harness has broken the
// protocol.
var violationCodes = []explained[protocol.Code]{
	{protocol.CodeHarnessLineTooLong, "a line is longer than it may be"},
	{protocol.CodeHarnessInvalidJSON, "a line is not valid JSON"},
	{protocol.CodeHarnessSchema, "the schema is not that of a message, or not that of ready"},
	{protocol.CodeHarnessMessage, "a member is missing or has the wrong shape"},
	{protocol.CodeHarnessMessageGap, "messageSeq is not the next number"},
	{protocol.CodeHarnessBeforeReady, "a message came before ready"},
	{protocol.CodeHarnessSecondReady, "ready came twice"},
	{protocol.CodeHarnessTornLastLine, "the harness ended in the middle of a line"},
}

// protocolPage is the reference of the words of the wire.
func protocolPage() string {
	var b strings.Builder
	b.WriteString("The protocol\n\nOne JSON object a line, UTF-8, on four streams. A controller writes commands to\n" +
		"the runner, which answers each with a receipt and tells what happens as events;\n" +
		"the runner and the harness talk in the same way.\n\nStreams, their schema, and what bounds a line:\n\n")
	for _, row := range streamRows() {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-22s%-35s%s", row[0], row[1], row[2]), " ") + "\n")
	}
	b.WriteString("\nThe short name " + protocol.SchemaCommandShort + " is taken for a command too. A fake harness says\n" +
		"fake_harness instead of harness; the first message chooses for the whole run.\n")
	b.WriteString("\nCommands: {schema, commandId, controllerSeq, type, issuedAt, payload}\n\n")
	explain(&b, commandTexts)
	b.WriteString("\nEvents, who makes them, and their priority (0 is the most important):\n\n")
	for _, t := range protocol.EventTypes() {
		fmt.Fprintf(&b, "  %-35s%-10s%d\n", t, originText(t.Origin()), t.Priority())
	}
	b.WriteString("\n  Open families: mcp_app.*, interaction.* and attention.* of the harness,\n  runner.* of the runner.\n" +
		"\n  The runner too makes runtime.phase.changed, harness.diagnostic, and the end of\n  a request that nobody answered.\n")
	b.WriteString("\nCodes of a rejected receipt, in the order of the checks. The first six consume\nneither the id nor the number:\n\n")
	explain(&b, receiptCodes)
	b.WriteString("\nCodes of harness.diagnostic, where a message was not taken and the run goes on:\n\n")
	explain(&b, diagnosticCodes)
	b.WriteString("\nCodes of protocol violations, which end the run:\n\n")
	explain(&b, violationCodes)
	b.WriteString("\nReasons of run.terminal. The first cause that happened decides:\n\n")
	for _, r := range controller.Reasons() {
		fmt.Fprintf(&b, "  %-35s%s\n", r, controller.ReasonText(r))
	}
	b.WriteString("\n'prp schema' lists the JSON Schemas of everything.\n")
	return b.String()
}

func explain[T ~string](b *strings.Builder, rows []explained[T]) {
	for _, row := range rows {
		fmt.Fprintf(b, "  %-35s%s\n", row.word, row.text)
	}
}

func originText(o protocol.Origin) string {
	switch o {
	case protocol.OriginRunner:
		return "runner"
	case protocol.OriginHarness:
		return "harness"
	}
	return "unknown"
}
