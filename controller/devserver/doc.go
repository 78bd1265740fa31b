// Package devserver has a small reference server for each remote door, for
// newcomers and for tests (remote.md). It is for loopback and one user: it keeps
// its state in memory and trusts whoever has its token.
//
// A server can be told to misbehave ([Rule]): to drop the link, never to
// answer, to answer twice or late. So the fault tests of a door have a real
// peer.
//
// # Duties of the caller
//
// The handler is served on loopback. [Worker.Close] and [TaskRuns.Close] end
// their connections.
//
// # Invariants
//
// Every frame that came is kept in order ([Worker.Frames]); [Worker.Delivered]
// has each numbered frame once, in the order of the numbers, as a server that
// keeps a cursor sees them. Every call for a task run is kept in order as well
// ([TaskRunState.Calls]), and its first terminal report wins. All methods are safe for use by many goroutines.
package devserver
