// Package logtail keeps the end of what a harness logs: the last lines and the
// last bytes of them, as harness.exited shows them (spec section 4).
//
// # Rules
//
// What is added is split at every \n, so that a retained line is one line for
// whoever reads it; a \r before the \n is dropped, and a \n at the end opens no
// further line. Each line gets the prefix. Bytes that are not UTF-8 become
// U+FFFD. Of a line that alone is above the byte limit the head is kept, cut
// at a character boundary: a reader has to know what a line is about, and a
// message puts that first. A line is dropped whole or kept whole otherwise.
//
// # Invariants
//
// Retained lines and bytes are never above the limits. Retained and dropped
// lines add up to all that were added. Memory is bounded by a few times the byte
// limit and one word for each retained line, and a flood costs no allocation.
//
// # Duties of the caller
//
// A [Tail] is used by one goroutine at a time.
package logtail
