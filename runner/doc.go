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
package runner
