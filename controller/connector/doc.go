// Package connector is the connector (connector.md): it dials a server, offers
// the agents of its configuration, and executes each create_run as one run under
// a runner of its own. It supervises nothing itself (package controller).
//
// # Parts
//
// wire.go has the frames and decode.go reads those of a server; translate.go and
// completion.go turn the events of a run into run_event. link.go and writer.go are
// one session over either transport, dial.go and poll.go choose between WebSocket
// and HTTPS. connector.go is the loop that owns all state; each request of the
// server or of a run is a file of its own: accept.go, cancel.go, approval.go,
// handoff.go, artifact.go. run.go is one run, spool.go its events on disk,
// transfers.go its artifacts there, and follow.go what becomes of a run whose
// connector has died.
//
// # Duties of the caller
//
// One connector uses a folder [Config.Dir] at a time. [Connector.Run] is called
// once and blocks until its context ends, or until the server has refused the
// connector. The program of [Config.Runner] is a runner. The caller's own secrets
// are not in its environment any more.
//
// # Invariants
//
// An event is on disk before it is sent, numbered per run from 1 without a gap,
// and stays there until the server has acknowledged it: it is never lost, doubled
// or reordered at a server that keeps a cursor, whatever the link, the transport
// or a restart do. What a harness says is on disk there only, masked and bounded,
// but for the names of its artifacts, which are masked as well: where the
// connector itself is killed, the events that it had not put there yet are told as
// lost, by number. artifact_uploaded is told until it is known that the server has
// read it, also by the next start, and so at times once more than needed; an
// artifact of which nobody knows is a warning. A run_id is executed at most once. A
// run whose end nobody has seen is told as "unknown", and is not run again. The
// completion is the last event of a run, and run_cancelled comes after it, when the
// whole process tree is gone. An approval is granted by a server's answer only,
// never by a timeout. The loop alone changes state; a lost link stops nothing.
package connector
