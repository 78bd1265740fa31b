// Package devserver has a small reference server for each remote door, for
// newcomers and for tests (remote.md). It is for loopback and one user: it keeps
// its state in memory and trusts whoever has its token.
//
// [Worker] is the server of the local worker, [Connector] that of the connector,
// [ConnectorHost] the latter with a certificate authority, tokens and a shell.
//
// A server can be told to misbehave ([Rule]): to drop the link, never to
// answer, to answer twice or late. So the fault tests of a door have a real
// peer.
//
// # Duties of the caller
//
// The handlers are served on loopback. [Worker.Close], [Connector.Close] and
// [TaskRuns.Close] end their connections. What they keep is kept in memory until
// they end.
//
// # Invariants
//
// Every frame that came is kept in order ([Worker.Frames]); [Worker.Delivered]
// has each numbered frame once, in the order of the numbers, as a server that
// keeps a cursor sees them, and [Connector.Delivered] the events of one run. Every
// call for a task run is kept in order as well ([TaskRunState.Calls]), and its
// first terminal report wins. All methods are safe for use by many goroutines.
package devserver
