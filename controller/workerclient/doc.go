// Package workerclient is the client of the worker API for task runs
// (workerclient.md). Its types, fields and JSON names are those of the product
// whose workers it serves; a test compares them with testdata/api.txt.
//
// # Parts
//
//   - [WorkerHTTPUpdater] makes the calls: fetch, claim, report, secrets,
//     plugins, workspace.
//   - [WorkerHTTPStreamSender] posts text, [DebouncedStreamSender] collects it
//     before (rows 1 to 3).
//   - [NewTLSClient] is the transport rule (row 12), [StatusError] what a server
//     answers instead.
//
// # Duties of the caller
//
// The address was checked (bridge.CheckURL): plain http is for loopback. Text
// that goes out was masked before. A [DebouncedStreamSender] is stopped when
// its run is over. A call is not retried here, but for the posts of a
// [DebouncedStreamSender].
//
// # Invariants
//
// Every call ends within 30 s, a download within 60 s after its last byte. No
// token goes to another host than that of the address, nor into an error. An
// answer is bounded before it is decoded, an error text at 4096 bytes.
package workerclient
