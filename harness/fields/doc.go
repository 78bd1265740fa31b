// Package fields writes the JSON objects in the messages of a harness (prp.md
// section 4), member by member. What a foreign program wrote goes in with a
// bound, and what is left out is said beside it.
//
// # Duties of the caller
//
// A name stands once in an object. A value that [Fields.Own] takes is one valid
// JSON value. A [Fields] is used by one goroutine at a time.
//
// # Invariants
//
// The object is one line of valid JSON, strict as the protocol is, with the
// members in the order in which they were added. The package does no I/O.
package fields
