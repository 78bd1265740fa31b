// Package bucket keeps checkpoints in a bucket of an S3-compatible object store
// (workerclient.md row 11). [Store] is a checkpoint.PayloadStore.
//
// # The protocol
//
// PUT and GET of one object each, with the bucket in the path, signed by AWS
// Signature Version 4 with an unsigned payload: that the bytes are the right ones
// is checked by their hash where they are restored. An object is written by one
// request, so that a reader sees the old bytes or the new ones.
//
// # Duties of the caller
//
// The address was checked (bridge.CheckURL), the client follows no redirect, and
// the keys are masked wherever text goes out.
//
// # Invariants
//
// Every call ends within 60 s after the last byte that went through. A request
// that got no answer, 429 or 5xx is made again, at most three times, where its
// bytes can be read again. No key stands in an address or in an error.
package bucket
