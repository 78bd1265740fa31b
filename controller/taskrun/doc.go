// Package taskrun is the worker of one task run (workerclient.md): it fetches
// the run, claims it, runs it under a runner, streams its text and reports its
// end, once.
//
// # Parts
//
// claim.go fetches and claims, work.go is the loop that owns what is known of a
// run, poll.go watches for a cancel, steps.go makes the run ready, swap.go puts a
// restored workspace in its place, run.go starts the runner, report.go delivers
// the report, orphan.go removes the private folder of a worker that was killed
// (where /proc tells that it was). Pure are veil.go, which masks the lines of a
// run, watched.go, which reads them, and translate.go, which makes the report out
// of [facts].
//
// # Duties of the caller
//
// [Run] is called once for a run; the end of its context is SIGTERM. The token is
// among [Config.Secrets] and not in the environment any more. One folder
// [Config.Dir] may be used by many workers, each for another run.
//
// # Invariants
//
// At most one terminal status is reported, after the last text, and only for a
// run that this process has claimed or that was never started. It is on disk
// before it is sent, and stays there until the server has it. Whatever leaves
// the process was masked before: the journal, the text, the report, what is told
// to a person. No value of a secret stands in arguments or on disk. When Run
// returns no process of the run lives.
package taskrun
