// Package acp is an Agent Client Protocol agent as a harness: it starts the
// agent, carries lines between it and the mapping of package translate, and
// ends as the agent did.
//
// The JSON-RPC client is small, bounded and our own: one JSON object a line, up
// to a bound that is checked before a line is turned into anything, and the
// bytes of the agent are kept as they came.
//
// # Duties of the caller
//
// [Run] is called once in a process; stdin and stdout of the process belong to
// it. What it returns is mirrored with child.Mirror, after a [Home] was removed.
//
// # Invariants
//
// The agent stays in the adapter's session, where the runner ends it and sweeps
// what its tools leave: agents run them in sessions of their own. The agent's
// stderr is the adapter's. Memory is bounded: while the runner does not read,
// the agent is not read; while the agent does not read, neither. Commands of
// the runner, signals and timers are heeded meanwhile. The agent's environment
// is what [Options] names and nothing else.
//
// A private home goes with the process that made it, or, where that was killed,
// at the next start on the same machine (Linux; elsewhere it stays). Whose it is
// stands in its name.
package acp
