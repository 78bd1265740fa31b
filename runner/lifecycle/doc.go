// Package lifecycle is the pure core of the runner: the state of one run, what
// can happen to it and what is to be done about it.
//
// [State.Step] takes one input (a past-tense fact) and returns effects (orders
// for the shell around it). The same inputs give the same effects, byte for
// byte: there is no I/O here, no clock, no goroutine, no lock and no
// randomness. Time comes in as an argument.
//
// # Duties of the caller
//
// Effects are performed in their order and before the next step. Some are
// answered at once by another input (CheckWorkspace by [WorkspaceChecked],
// StartHarness by [HarnessStarted] or [HarnessStartFailed], CloseHarness by
// [HarnessClosed]); the caller hands these in before anything else that waits.
// [Settled] answers Settle after the commands that had come. The returned slice and what it points to are valid
// until the next step. What an input points to is not kept, except a command,
// which the state owns from then on.
//
// # Invariants
//
//   - Sequence numbers of events are contiguous from 1.
//   - There is exactly one run.terminal, it is the last event, and Finish
//     follows it; after Finish no step has an effect.
//   - Every cause to stop enters one ladder (StopTree) and only once; no cause
//     has a way of its own to end the harness.
//   - What waits is bounded: commands for the harness, pending requests, the
//     memory of resolved requests and of command ids.
//   - Every command that came in is answered exactly once.
package lifecycle
