// Package artifact moves the bytes of an artifact to and from an object store
// by presigned URLs (connector.md row 14): PUT to send, GET to fetch.
//
// A presigned URL is a credential. It is used with a client of its own, which
// has neither the token nor the client certificate of the door, and no error of
// this package shows more of it than the host.
//
// # Duties of the caller
//
// The caller opens the file that is sent and the folder that is written to, so
// that it decides which files may be reached. It asks the server for a new URL
// where an error is [ErrNewURL]; any other error stays as it is with a new URL.
// A failed transfer never changes the outcome of a run (remote.md rule 8): that,
// too, is for the caller.
//
// # Invariants
//
// A [Sum] tells of the bytes that were really sent or kept. Memory does not
// grow with the size of an artifact. A name in the target folder appears whole
// and checked, or not at all; only a process that is killed leaves a hidden
// file, whose name ends in ".part". Nothing outside of the folder is touched.
package artifact
