// Package flagtext says what is wrong with a flag in the words of the programs
// here. Package flag tells it in a text of its own only, with one dash.
//
// # Duties of the caller
//
// The flag set parses with flag.ContinueOnError and an output that is discarded.
// The usage of a flag that takes a value names it in back quotes, as package
// flag wants it. The error of a value says what was expected.
//
// # Invariants
//
// The text is one line, and quotes what came from outside.
package flagtext
