// Package schema holds the JSON Schemas of the wire (draft 2020-12), embedded.
//
// There is one for each kind of line and for the objects inside that have a
// life of their own; [Names] lists them. Each stands alone: what it refers to
// is in its own $defs, so that a validator needs no second file and no network.
// Its $id is urn:prp:schema:NAME:v1 and does not change while the lines that it
// accepts do not change.
//
// # What they say
//
// The files are generated from the Go types of package protocol and of the fake
// harness; the rules that a type cannot say (values, lengths, which payload
// belongs to which type) stand in the generator, which is part of this
// package's tests. They accept what the decoders accept. Unknown members are
// allowed everywhere, as the protocol has it, but not in a script.
//
// A schema sees a parsed value, not bytes. Duplicate keys, invalid UTF-8, lone
// surrogates, depth, the range of a number and the length of a line are beyond
// it, and so is everything that needs memory: sequence numbers, ids seen
// before, states. The spec's sections 1 and 2 rule there.
//
// A result and a terminal proposal inside a harness message are checked as
// objects only, because a bad one is ignored by the runner and is no violation.
// Whoever writes a harness checks them against "result" and "proposal" too.
//
// # Duties of the caller
//
// The bytes that [Get] returns are the caller's own. After a change of a type,
// run
//
//	go test ./protocol/schema -run TestFilesAreCurrent -update
//
// # Invariants
//
// The package imports only the standard library: neither a generator nor a
// validator is linked into a program that prints a schema. A test fails when a
// file differs from what the types and rules give.
package schema
