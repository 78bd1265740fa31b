// Package translate is the mapping between the harness protocol and the Agent
// Client Protocol, version 1: a state that is told what happened and answers
// with effects. It does no I/O, reads no clock and starts nothing, so that a
// conversation is a list of inputs and a list of effects.
//
// # Mapping
//
//	run.prepare             initialize; its answer is ready
//	session.open            session/new, or session/resume or session/load where
//	                        the payload names an agentSessionId; authenticate
//	                        only where the agent asks for it (-32000)
//	turn.start              session/prompt, a member instructions as a block of its
//	                        own before the text; its answer ends the turn
//	request.resolve         the answer to session/request_permission, or to
//	                        elicitation/create for text
//	turn.interrupt, .stop   session/cancel; pending requests are answered with
//	                        cancelled
//	session.close           session/close where offered, then the end of stdin
//	agent_message_chunk     item assistant_message with deltas
//	agent_thought_chunk     item reasoning with deltas
//	tool_call, ..._update   item command, file_change or tool
//	plan                    item plan
//	usage_update            usage.reported
//	other metadata          kept as its last value, told in session.closed
//
// A prompt that ends with end_turn and brought a message or a completed item is
// done; anything else yields, with a continuation. The result is that of the
// last turn and is sent when the session ends, since a run has one result and a
// session has many turns.
//
// # Duties of the caller
//
// The caller calls one method of [State] at a time, and carries out the effects
// of [State.Take] in their order after each. Lines come whole, without their
// end, and in the order in which the agent wrote them. A timer that fires after
// it was set anew or cleared is not told.
//
// # Invariants
//
// Every payload is strict JSON and fits into a line of the harness protocol;
// what is cut says so in a member truncatedBytes, what is repaired in a
// diagnostic. Nothing is sent to the agent before initialize is answered. Every
// request of the agent gets exactly one answer. No permission that outlives the
// moment is given unless the controller chose it by its own id or kind. Memory
// is bounded by the limits in limits.go, but for the line at hand.
package translate
