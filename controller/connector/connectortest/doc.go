// Package connectortest gives tests of other packages a connector at a server of
// package devserver on loopback, by a WebSocket without TLS. Every method fails the
// test instead of returning an error.
//
// # Duties of the caller
//
// Only tests import it.
//
// # Invariants
//
// Every wait is bounded by the time that [Open] is given. When the test is over the
// connector and all of its runs have ended.
package connectortest
