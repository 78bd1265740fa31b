// Package sandbox confines a harness to the tiers that a task run declares
// (workerclient.md row 10).
//
// A [Policy] becomes a [Plan] on this host, or an [*Unenforceable]. The plan
// wraps the harness's command line in one of this program's own, which calls
// [Exec]: it confines itself and then becomes the harness. Whatever the harness
// starts is confined in the same way and cannot undo it.
//
// # What is enforced, and how (Linux)
//
// Files: Landlock, ABI 3 at least, since earlier ones let a file outside be
// truncated. The workspace and the private folders may be read and written, the
// programs and parts of the system read and executed. Nothing else can be
// opened, listed, made, renamed or removed, also through symlinks.
//
// Sockets: a seccomp filter, since Landlock knows TCP ports and neither UDP nor
// (before ABI 9) the paths of unix sockets, behind which a daemon may do what
// the harness may not. Pairs of connected sockets are allowed in every tier.
// With the network tier "none" there is no other socket, of any family, not to
// loopback either; Landlock's rules for TCP are a second wall. With "open"
// there are IPv4, IPv6 and the netlink that lists addresses; no unix sockets.
// io_uring is refused, and other system call tables end the process: both would
// go around the filter.
//
// "registries" cannot be enforced: neither Landlock nor seccomp knows the names
// of hosts. It is refused; it is never taken for "open".
//
// Privileges: no_new_privs, and no capabilities, also for root; no user
// namespaces, which would give them back. Where the kernel can (ABI 6), no
// signals to processes outside. By the same filter no limits of other processes,
// no keys that the kernel keeps, no POSIX message queues, nothing typed into an
// inherited terminal.
//
// A network namespace is not used: the filter covers more, and needs no
// privilege, no further process and no setting of the host.
//
// # What is not
//
// Landlock does not cover metadata: a harness can stat what it may not open,
// and change modes, times and attributes of its user's files outside, where it
// knows their names. System V shared memory and message queues are not covered,
// nor the priorities of other processes. /proc shows the command lines
// of other processes, not their environment or memory. CPU, memory and disk are
// not limited. Descriptors 0 to 2 stay as they are. Before ABI 6 a harness can
// signal processes of its user. Where only the network is confined, since files
// cannot be here, a harness gets to the network through files and processes of
// its user.
//
// # Duties of the caller
//
// The folders of a policy come from the operator, never from the server. HOME
// and TMPDIR of the harness lie in a private folder. Without
// [Policy.AllowUnsandboxed] a refused plan fails the run. Exec is called by a
// process that does nothing else.
//
// # Invariants
//
// A tier that is empty or not known is the strictest. Exec asks the host again
// and starts nothing where one part of the rules does not hold.
package sandbox
