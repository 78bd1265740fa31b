// Package bridge holds what the remote doors share (remote.md): the link to a
// server, its retry rule, an outbox that survives a crash, a store that makes
// commands idempotent, and the masking of secrets.
//
// # Parts
//
//   - [Link] keeps one WebSocket open: ping, missed pongs, backoff (rule 2).
//   - [Lost] says in plain words how a connection was lost.
//   - [CheckURL], [TLS] and [ReadSecret] are the transport rules (6 and 11).
//   - [Outbox] numbers frames, writes them to disk before they are sent, and
//     gives them again until they are acknowledged (rules 1 and 10).
//   - [Store] remembers commands by id and content digest with their result
//     (rules 3 and 4).
//   - [WithStall] ends a transfer that moves nothing (rule 2).
//   - [OpenFrame] reads a frame strictly, and digests it (rule 3).
//   - [Decode] reads objects by the exact names of their members.
//   - [Masker] hides secret values in text, also in a stream (rule 7).
//
// # Duties of the caller
//
// An outbox and a store each own their files: one process opens them at a time.
// What is put into an outbox or a store is masked before. The function that
// [Link.Run] calls for a connection reads all the time it lives, since pongs
// are seen by the reader only.
//
// # Invariants
//
// Sequence numbers of an outbox are contiguous from 1 over all starts of the
// process. A frame is on disk before [Outbox.Next] gives it. A frame that is
// not soft is dropped only when it was sent once and is past the limits, or is
// acknowledged. A command that has begun is never new again while it is
// remembered. All exported types but [Backoff] and [Stream] are safe for use by
// many goroutines.
package bridge
