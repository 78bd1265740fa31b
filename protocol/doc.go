// Package protocol holds the words of the wire: the types of the four JSON
// line streams, their strict decoding, canonical JSON and the command ledger.
//
// It is the ground under the controller, the runner and the harness, which
// never import each other. It does no I/O, reads no clock and starts no
// goroutine.
//
// # Duties of the caller
//
// A line handed to a [Decoder] is bounded by the caller (package
// protocol/jsonl does it) and stays unchanged while a decoded value that is
// part of it is in use. Which members are is said at each decoder; Stream and
// HarnessCommand return copies.
//
// # Invariants
//
// A decoder returns either a whole value or an error, never both, and never a
// value with members that the line did not have. Names are compared exactly.
// A number is never rounded: what is passed on is passed on as bytes.
package protocol
