// Package s3 keeps objects in an S3-compatible store: put, get, stat, and
// presigned URLs. It is what a task run's checkpoints go to (workerclient.md
// row 11), and what signs URLs for the reference server of artifacts.
//
// Requests are signed with AWS Signature Version 4 and use path-style
// addresses, which every compatible store knows. Signing is about 150 lines of
// our own, checked against the published examples and a real server: the
// smallest maintained client brings some twenty modules along.
//
// # Duties of the caller
//
// The caller reads the keys, from a file that only its owner can read (package
// bridge) or from the environment in cmd, and closes what [Store.Get] returns.
//
// # Invariants
//
// Memory does not grow with the size of an object. The store takes an object
// whole or not at all, and only where its bytes have the hash that was signed.
// Redirects are not followed. No error shows a key, a signature or a query.
package s3
