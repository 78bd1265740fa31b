// Package worker is the local worker (worker.md): it dials out to a server, says
// what it can do, executes commands and answers. It never calls a model and
// never decides the next step.
//
// # Parts
//
// wire.go has the frames, translate.go turns the end of a run into a result,
// link.go is one connection, worker.go the loop that owns all state. Each tool
// is a file of its own; the file tools are package files, a command is a run
// under a runner by package controller.
//
// # Duties of the caller
//
// One worker uses a folder [Config.Dir] at a time. [Worker.Run] is called once
// and blocks until its context ends; then every command and background process
// is ended first. The program of [Config.Runner] is a runner, and
// [Config.Harness] a command harness that takes argv and stdin from the turn.
// The caller's own secrets are not in its environment any more.
//
// # Invariants
//
// A command is executed at most once, whatever the link, a restart or a crash
// do: it is remembered before its effect may begin, and its result is on disk
// before it is sent. A command that had begun when the worker died is answered
// with OUTCOME_UNKNOWN. "cancelled" and "timeout" are sent only after the whole
// process tree is gone. The loop alone changes state; a lost link stops nothing.
package worker
