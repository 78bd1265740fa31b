// Package journal is an append-only log of lines in a file, as --journal writes
// it (spec section 7): whoever reads it after a crash finds whole lines and
// nothing else.
//
// # Invariants
//
// The file ends with a whole line whenever no Append is under way. A line that a
// crash or a full disk has torn is cut off, by the Append that failed or else by
// the next Open. What is appended once stays as it is.
//
// # Duties of the caller
//
// One process writes a journal at a time. This is not enforced by a lock: locks
// differ between platforms, and one that a dead process left behind would be
// worse than none. Writers that ignore this do not overwrite each other, since
// the file is open for appending only, but Open of one can cut off what the
// other is writing. A [Journal] is used by one goroutine at a time.
package journal
