// Package child runs one program for an adapter: it starts it in the adapter's
// own session and process group, reads what it writes to the last byte, and
// mirrors its end.
//
// The program stays in the adapter's session on purpose. The runner has made
// that session and ends all of it (spec section 6): a signal to the group
// reaches the program as well as the adapter, and the runner's sweep finds what
// the program leaves behind. This package sweeps nothing.
//
// # Duties of the caller
//
// Read [Child.Stdout] and [Child.Stderr] until [io.EOF], or the program blocks.
// Handle SIGINT with signal.Notify before [Child.Interrupt], which can send it
// to the caller's own process too. Nobody else in the process waits for
// children with a catch-all wait.
//
// # Invariants
//
// No signal is sent to a process that was waited for. Everything that the
// program itself wrote before its exit is read; what others that hold its
// pipes write afterwards is read for a moment only. This is the only package
// under harness, beside harness/fake, with os/exec and build tags.
package child
