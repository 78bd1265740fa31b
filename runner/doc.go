// Package runner is the shell around runner/lifecycle: it turns bytes, exits,
// timers and signals into inputs and performs the effects.
//
// # Duties of the caller
//
// [Run] wants a filled [Config] and the three standard files, and may run once in a
// process, as the last thing that it does: the signals that end a run stay caught.
// Its result is the exit status of the process. The first statement of main must
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
// that only copies. On a virtual machine with 2 cores, in four runs: at 200-byte
// events 1.1 to 1.2 million lines a second, 0.22 to 0.27 of the relay, 0.74 to 0.79
// microseconds of CPU a line, no allocation. By perf the strict check of each line is
// the largest part of it, then the kernel's share of reading and writing. Latency at
// 500 lines a second: p50 1.1 to 1.4 times the relay's, p99 0.5 to 1.5 times, and 13
// times in one run. Idle: about one wake-up a second at most. Peak memory: 4.4 MiB
// idle, at most 8.1 MiB in every flood.
//
// Happy-path without delays takes 2.1 to 2.6 times the harness alone, in the middle
// of ten runs 2.3 (31 ms of 13). By perf's events of exec and exit a third of it is
// the runner's own start until the harness is executed, most of which is the start of
// a Go program: some 220 page faults, 13 to 28 microseconds each on that machine.
package runner
