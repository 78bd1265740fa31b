// Package worker is the local worker (worker.md): it dials out to a server, says
// what it can do, executes commands and answers. It never calls a model and
// never decides the next step.
//
// # Parts
//
// wire.go has the frames, translate.go turns the end of a run into a result,
// link.go is one connection, worker.go the loop that owns all state, accept.go
// what it does with a command. Each tool is a file of its own; the file tools
// are package files, a command is a run under a runner by package controller
// (launch.go). keeper.go is another process: it watches over a background
// process that was told to outlive the worker, which is kept.go.
//
// # Duties of the caller
//
// One worker uses a folder [Config.Dir] at a time. [Worker.Run] is called once
// and blocks until its context ends; then every command and background process
// is ended first, but for those that are kept. The program of [Config.Runner]
// is a runner, and [Config.Harness] a command harness that takes argv, stdin,
// cwd and env from the turn. That of [Config.Keeper] calls [Keep] and nothing
// else. The caller's own secrets are not in its environment any more, and what
// a child could read of it in /proc is out of reach.
//
// # Invariants
//
// A command is executed at most once, whatever the link, a restart or a crash
// do: it is remembered before its effect may begin, and its result is on disk
// before it is sent. A command that had begun when the worker died is answered
// with OUTCOME_UNKNOWN. "cancelled" and "timeout" are sent only after the whole
// process tree is gone. The loop alone changes state; a lost link stops nothing.
// The environment of a command stands on no disk and in no argument list.
//
// # Kept processes
//
// A background process with keep goes on when the worker ends or is killed. Its
// keeper, a process in a session of its own, is the controller of its run, masks
// and keeps its output, and writes down how it ended. The next worker knows the
// keeper and its runner by pid and start (boot, and ticks since boot): the
// process runs while one of them lives. A cancel is a signal to that very
// process. Where the keeper is killed, its runner ends the process. Where the
// system does not tell the start of a process by /proc, keep is UNSUPPORTED.
//
// # Policy
//
// A path is judged where it leads when its command comes. Whoever may run
// commands on this machine can make it lead elsewhere before the access, though
// never out of the roots.
//
// # What a command costs
//
// Three programs start one after the other before a command's own: the runner
// (and beside it its guardian), the harness, then the command. So two runs are
// kept ready, which the next commands take; they are ended when there was none
// for 5 minutes. Where the last one is taken another starts at once, else when
// the command is over. The first command waits for the whole chain, and so does
// one in a row that is faster than runs become ready.
//
//	go test -run '^$' -bench Command ./controller/worker
//
// prints the medians: a bare start, a run with and without a ready runner, and
// the whole way through server, worker and disk. On a virtual machine with two
// cores the whole way adds 11 ms to a bare start of 3, 24 ms directly after another
// command, and 28 ms in an endless row, where both cores are busy.
package worker
