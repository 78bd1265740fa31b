// Package runner is the shell around runner/lifecycle: it turns bytes, exits,
// timers and signals into inputs and performs the effects.
//
// # Duties of the caller
//
// [Run] wants a filled [Config] and the three standard files, takes over the
// process's signals until it returns, and may run once in a process. Its
// result is the exit status of the process. The first statement of main must
// be process.Main, since Run starts the guardian from the same executable.
//
// # Concurrency
//
// One goroutine, the loop, owns the state, the log tail, the timers and the
// out buffer; there is no mutex. Around it: the stdin reader, the stdout
// writer, the harness's stdout reader, stderr reader and stdin writer. They
// meet the loop on channels, and every queue is bounded:
//
//   - commands: one at a time, not taken while more than maxReceipts bytes
//     wait to be written;
//   - harness messages: batches of one read each, batchCount of them in
//     flight, not taken while more than outLimit bytes wait to be written;
//   - stderr: batches as well, never gated, since the log tail is bounded;
//   - harness stdin: at most 256 commands or 1 MiB, kept by lifecycle.
//
// So a controller that does not read slows the harness through its pipe, and
// cancel, end of stdin and signals still work.
//
// # Measured
//
// go test -run '^$' -bench . ./cmd/prp-runner prints all of this beside a relay
// that only copies. On a quiet virtual machine with 2 cores, at 200-byte events:
// 0.9 to 1.2 million lines a second, 0.21 to 0.33 of the relay, 0.9 to 1.2
// microseconds of CPU a line, no allocation. Latency at 500 lines a second: p50
// 1.0 to 1.1 times the relay's (1.9 on a busy machine), p99 1.2, 1.5 and 4 times
// in three runs; why it spreads was not looked into. Idle: no wake-up. Peak memory: 4.3
// MiB idle, at most 8.3 MiB in every flood.
//
// Happy-path without delays takes 40 ms, 3.0 times the harness alone, where 2.5
// was wanted. What stands in the way is that three Go programs start one after
// the other: runner, guardian, harness. An exec of one takes 8 ms there (an
// empty Go program 5.5 ms, /bin/true 3 ms); without the guardian the same run
// takes 2.7 times the harness.
package runner
