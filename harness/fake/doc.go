// Package fake is a harness that plays a script (spec section 8): a stand-in
// for an agent, with no model and no network behind it, and a source of every
// fault that a supervisor has to stand.
//
// A script is parsed whole before anything is said, so that a mistake in it is
// an error with a path and never half a run. Then the fake says ready, waits
// for session.open and turn.start, runs the steps in order and exits: with the
// code of an exit step, with 0 after the last step, with 1 where it cannot go
// on (its stdout is gone, or its stdin ended while it waited for a command).
//
// # Commands
//
// A script consumes only the commands that it expects. A step that waits takes
// the first command that fits and leaves the others, in their order, for later
// steps; while no step waits, nothing is read. So run.cancel or session.close
// has no effect on a script that does not await it: ending a harness that does
// not end is the supervisor's work.
//
// # Duties of the caller
//
// The three files of [Options] belong to the fake while [Run] runs; a step may
// close them. Run may end the process by itself: the steps crash and stop_self
// are signals to the own process, so a process plays one script and nothing
// else. A main that offers spawn_worker hands the arguments after
// [WorkerCommand] to [WorkerMain] before it does anything else.
//
// # Invariants
//
// Each message is one write and messages are numbered without a gap, except
// where a raw step asks for something else. A worker is a process of the same
// executable and ends by itself after its lifetime, so that nothing that a
// test lost stays for ever.
//
// This package has files for unix, Linux and Windows: sessions, process groups
// and signals are what it is about. On Windows setsid, setpgid and double_fork
// make a new process group, and stop_self and stopped workers are errors.
package fake
