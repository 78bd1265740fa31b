// Package text prepares what a foreign program wrote for the strict lines of
// the harness protocol (spec sections 1 and 4): bytes become valid UTF-8, and
// long texts become pieces that fit into a line.
//
// # Duties of the caller
//
// Nothing is lost silently: every function that replaces or leaves out says how
// much, and the caller passes that on.
//
// # Invariants
//
// What is returned is valid UTF-8. A cut never stands inside a character. The
// package does no I/O and keeps nothing between calls but the few bytes of an
// unfinished character in a [Stream].
package text
