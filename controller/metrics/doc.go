// Package metrics tells on loopback how the doors and this process are:
// /healthz as JSON for a person or a script, /metrics in the Prometheus text
// format, version 0.0.4. It also has the process figures that a heartbeat
// carries (connector.md row 5).
//
// # Duties of the caller
//
// The functions of a [Config] are called by many goroutines, for each request,
// and must not block. The caller puts nothing secret into a label or a figure:
// every user of this machine can read them.
//
// # Invariants
//
// Only loopback is served, on both ends of the socket and in Host, and no page
// of another site is answered. A figure is real or absent: what is not known is
// never 0.
package metrics
