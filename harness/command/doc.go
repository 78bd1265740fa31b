// Package command is a plain program as a harness: what it writes becomes one
// command item of the turn, its exit the result.
//
// The adapter says ready, waits for session.open and turn.start, runs the
// program once, reports, and ends as the program did, by the same status or
// signal. The program stays in the adapter's session, where the runner ends it
// with everything that it started.
//
// # Mapping
//
//   - the start: item.started with pid and startedAt; without them where the
//     program could not be started.
//   - stdout and stderr: item.delta with the member stream, in pieces that fit
//     into a line; bytes that are no UTF-8 become U+FFFD and are counted in
//     replacedBytes.
//   - exit status 0: item.completed, result done, turn.completed. Any other end:
//     item.failed, result yielded with a continuation, turn.failed.
//   - turn.interrupt, turn.stop: SIGINT as from a terminal, then turn.interrupted.
//     A program that goes on is ended by the runner after its grace.
//   - run.cancel, session.close, the end of stdin, and SIGTERM, SIGHUP, SIGQUIT or
//     SIGINT to the adapter: SIGTERM, after a grace SIGKILL, then turn.cancelled.
//   - timeoutMs passed: the same, then turn.failed with code timed_out. A program
//     that then exits with 0 counts as one that exits with [StatusTimedOut].
//
// # Duties of the caller
//
// [Run] is called once in a process; stdin and stdout of the process belong to
// it. What Run returns is mirrored with child.Mirror.
//
// # Invariants
//
// Every byte that the program wrote before its exit is reported or the run is
// being ended. A turn.start that asks for what [Options] does not allow starts
// nothing. The program's stdin is empty unless the turn gives it, or its text is
// allowed to be it. A turn's cwd and env become the adapter's own before the
// program is looked up; a null in env takes a variable away.
package command
