// Package jsonl turns bytes into lines and lines into bytes: the framing of
// spec section 1. It knows nothing of JSON.
//
// A line ends with \n; a \r before it is dropped, as is one at the very end of
// the input, which is a \r\n cut short. A \r elsewhere is content. A last line
// without \n counts and is marked. Lines that are empty or have nothing but
// blanks are skipped unless [KeepBlank] is given; they are counted.
//
// # Invariants
//
// The limit is on the content: exactly the limit is accepted and one byte more
// is not, whichever way the line ends and in whatever pieces it comes. A line
// that is too long is reported once, as soon as it is known to be, without
// content; the rest of it is read and dropped, and no piece of it is ever
// returned. Memory does not grow with the length of a line: a batch has at
// most limit+2 bytes and one chunk of 64 KiB.
//
// # Duties of the caller
//
// A [Reader] and a [Writer] are each used by one goroutine at a time. A
// [Batch] belongs to whoever holds it: the reader keeps no reference to it
// after ReadBatch, so several can be in flight.
package jsonl
