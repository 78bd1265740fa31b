package protocol

import "strings"

// Origin tells who may make an event of this type (spec section 3). Three
// families of a harness are open: mcp_app.*, interaction.* and attention.* with
// anything after the dot; so is runner.* for the runner. runtime.phase.changed,
// harness.diagnostic and the ends of a request are made by both; they count as
// the harness's.
func (t EventType) Origin() Origin {
	switch t {
	case EventWorkspaceReady, EventHarnessStarting, EventHarnessReady, EventHarnessExited,
		EventSessionStarting, EventTurnSubmitted, EventRequestCreated,
		EventResultProposed, EventRunTerminal:
		return OriginRunner
	case EventPhaseChanged, EventHarnessDiag,
		EventSessionStarted, EventSessionResumed, EventSessionClosed, EventSessionFailed,
		EventTurnAccepted, EventTurnStarted, EventTurnCompleted, EventTurnFailed,
		EventTurnInterrupted, EventTurnCancelled,
		EventItemStarted, EventItemDelta, EventItemCompleted, EventItemFailed,
		EventRequestResolved, EventRequestExpired, EventRequestCancelled,
		EventSandboxMetric, EventUsageReported:
		return OriginHarness
	}
	family, rest, _ := strings.Cut(string(t), ".")
	if rest == "" {
		return OriginUnknown
	}
	switch family {
	case "runner":
		return OriginRunner
	case "mcp_app", "interaction", "attention":
		return OriginHarness
	}
	return OriginUnknown
}

// Priorities of events (spec section 3), the most important first.
const (
	PriorityEnd    = 0
	PriorityNormal = 1
	PriorityBulk   = 2
)

// Priority is the priority of an event of this type (spec section 3).
func (t EventType) Priority() int {
	switch t {
	case EventResultProposed, EventRunTerminal, EventHarnessExited:
		return PriorityEnd
	case EventItemDelta, EventHarnessDiag, EventRunnerDiag:
		return PriorityBulk
	}
	if t.EndsTurn() {
		return PriorityEnd
	}
	return PriorityNormal
}

// EndsTurn reports whether the event ends the active turn (spec section 2).
func (t EventType) EndsTurn() bool {
	switch t {
	case EventTurnCompleted, EventTurnFailed, EventTurnInterrupted, EventTurnCancelled:
		return true
	}
	return false
}

// EndsSession reports whether the event ends the session (spec section 2).
func (t EventType) EndsSession() bool {
	return t == EventSessionClosed || t == EventSessionFailed
}

// EndsRequest reports whether the event ends a pending request, which its
// payload names in the member requestId.
func (t EventType) EndsRequest() bool {
	switch t {
	case EventRequestResolved, EventRequestExpired, EventRequestCancelled:
		return true
	}
	return false
}

// knownEventTypes maps the text of every fixed event type to itself, so that
// a decoder needs no allocation for it.
var knownEventTypes = func() map[string]EventType {
	known := make(map[string]EventType)
	for _, t := range EventTypes() {
		known[string(t)] = t
	}
	return known
}()

// EventTypes lists every event type that has a fixed name. The open families
// (mcp_app.*, interaction.*, attention.*, runner.*) have more.
func EventTypes() []EventType {
	return []EventType{
		EventPhaseChanged, EventWorkspaceReady,
		EventHarnessStarting, EventHarnessReady, EventHarnessExited, EventHarnessDiag, EventRunnerDiag,
		EventSessionStarting, EventSessionStarted, EventSessionResumed, EventSessionClosed, EventSessionFailed,
		EventTurnSubmitted, EventTurnAccepted, EventTurnStarted, EventTurnCompleted,
		EventTurnFailed, EventTurnInterrupted, EventTurnCancelled,
		EventItemStarted, EventItemDelta, EventItemCompleted, EventItemFailed,
		EventRequestCreated, EventRequestResolved, EventRequestExpired, EventRequestCancelled,
		EventSandboxMetric, EventUsageReported, EventResultProposed, EventRunTerminal,
	}
}
