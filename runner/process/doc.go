// Package process starts one child, the harness, and ends it together with
// everything that descends from it (spec section 6). It is the only package
// with build tags beside runner/early, and imports the standard library and
// golang.org/x/sys.
//
// # Duties of the caller
//
//   - The first call in main is [Main].
//   - [Open] comes early: the cgroup is then made beside everything else.
//   - [Child.Stop] or [Child.Kill] comes once in every case, also after a
//     natural exit; the value of [Child.Gone] is the end.
//   - The caller owns the child's three pipe ends and closes them.
//   - [Supervisor.Close] comes last.
//   - No other part of the program waits for any child (wait4 of -1), and a
//     program that has other children keeps them in its own session, or starts
//     them before the harness. Where the process itself is the parent of the
//     harness, a younger child in a session of its own is taken for one that
//     the harness has left behind.
//
// # Invariants
//
//   - The leader is reaped last. Until [Child.Gone] has spoken its number, and
//     so that of its group, is its own.
//   - A signal goes to a child that only this goroutine reaps, to the group of
//     such a child, or to a process that is held by a pidfd and whose start
//     time and parent are read again after that. Never to a bare number.
//   - Adopted children are reaped by number.
//   - The exit that is told is the kernel's. Where it cannot be learned nothing
//     is told. The leader gets SIGKILL before its children do: a shell that saw
//     its child killed could otherwise exit 137 by itself.
//   - Nothing polls while the harness runs or has its grace. A process dies and
//     SIGCHLD tells; only a sweep that waits for SIGKILL to work looks again, at
//     most every 20 ms, and for 5 s at most.
//
// # Linux: the means
//
// The runner starts itself once more as the guardian, a process in a session of
// its own that is the parent of the harness. It is a subreaper: whatever a
// descendant does, once its parent has died it is the guardian's child. So "no
// child is left" (ECHILD) is the exact end of a sweep. It is undumpable and shrugs
// off the signals that a program can withstand. Besides /dev/null it has the
// control stream and the cgroup's two descriptors, and when the stream ends it
// kills everything at once and exits. So the runner may die at any moment: a
// harness without a watcher never exists, because its parent is the watcher.
//
// The start is a fork within a fork, with raw system calls: the runner forks the
// guardian, that forks the harness, which executes its program, and later executes
// the runner's program itself. Until then the children share the runner's memory
// (CLONE_VM and CLONE_VFORK, as syscall.ForkExec does it; on other processors than
// amd64 and arm64 they have a copy of it) and run only what stands in
// fork_child_linux.go.
//
// The guardian puts its exec off for 100 ms (guardianPatience), so that it does not
// compete with the start of the harness, and waits in poll(2) meanwhile: for the
// runner, which wakes it by dying or by an order, and for the harness. A harness
// that exits before and leaves nothing (the guardian's list of children says so)
// needs no second Go program at all: the guardian goes, and the runner becomes the
// parent of the dead harness and reaps it. What can go wrong before the exec:
//
//	the runner is killed              the guardian executes its program, and
//	                                  finds the end of the control stream
//	the guardian is killed            the runner takes over
//	the guardian is stopped           the runner kills it, and takes over
//	it cannot execute the program     it exits, and the runner takes over
//	no pidfd, no close_range          it does not wait
//
// The runner is a subreaper as well. When the guardian dies, or is stopped, the
// runner becomes the parent of all that it had, of the leader too, dead or
// alive, and goes on with the same code (type tree). Without a guardian (main
// does not begin with Main, no /proc, no processes left) it does so from the
// start; the leader then has SIGKILL as its parent-death signal.
//
// Where a cgroup v2 can be made below our own, the harness is born in one
// (CLONE_INTO_CGROUP, Linux 5.7) and each pass of a sweep writes to its
// cgroup.kill (5.14), which no fork outruns. It strengthens the sweep and does
// not replace it: root can leave a cgroup, but no parent.
//
// A leaf whose runner and guardian have both died is removed by the next runner
// that is started in the same cgroup: the leaf's name tells whose it was.
//
// A sweep reads the parent links of all processes, kills the guardian's own
// children at the moment they are read and deeper ones by pidfd, then, when all
// are counted, the groups that children lead; then it looks again. Against a
// chain of processes that each fork one in a new session and exit, a scan is too
// slow: between two scans the numbers around the newest are looked at, some
// microseconds each.
//
// # Linux: what is promised
//
//	the harness ends, is stopped or killed    nothing is left when Gone speaks
//	the runner is killed (SIGKILL, OOM)       the guardian kills all at once
//	the guardian is killed or stopped         the runner takes over, exit and all
//	SIGKILL has no effect (state D)           named after the grace and 5 s
//	no cgroup, no pidfd, not root             all of the above
//	no guardian                               all but the death of the runner:
//	                                          then only the leader dies
//
// What is not promised, or not by every means:
//
//   - Both die: a harness of the same user can kill the guardian and then the
//     runner. What it has left lives on. A user of its own for the harness, or
//     a container, is the remedy.
//   - Out of memory before the guardian has executed its program: the kernel
//     then kills all that share the runner's memory, and what the harness has
//     started lives on. So it is for 100 ms.
//   - Between its exec and the first of its package initialisers, about a
//     millisecond, a guardian is dumpable. A hostile harness of the same user that
//     may trace processes (Yama's ptrace_scope 0) could take it over there and
//     forge what it says. A user of its own for the harness is the remedy.
//   - A process that somebody else starts for the harness (cron, a service
//     manager, a container daemon, sshd) does not descend from it.
//   - A set-user-ID program is no more ours to signal where we are not root: it
//     is named as a survivor.
//   - Who kills the guardian between the harness's fork and its exec can have a
//     start that fails be told as an exit with status 253.
//   - Without /proc, or with hidepid and other users, descendants that left the
//     group are only found once they are our children and dead, or by the
//     cgroup. Notes tells the first, Probe the second.
//   - A runner that is the first process of its namespace also adopts orphans
//     of others. It does not touch or reap them while the guardian lives.
//   - A user or pid namespace would make the sweep exact without a cgroup too.
//     It is not used: the harness would see other numbers than its tools and
//     its controller do. The children lists of the kernel are only a hint, and
//     only used to leave out a scan at the everyday end.
//
// # The start on Linux
//
// A session of its own without a terminal; signals at default and an empty mask,
// whatever the launcher had (Go resets neither the ignored HUP, INT, TSTP, TTIN,
// TTOU, CONT and 32 to 34, nor a mask); descriptors 0, 1 and 2 only (Open marks
// all others close-on-exec); limits, umask, directory and OOM
// score are the runner's. The soft limit of open files is the one that the runner
// was started with, not the one to which Go raises it (package limits).
//
// # What the guardian costs
//
// go test -run '^$' -bench . ./runner/process prints it. Nothing but a blocked
// thread for the first 100 ms. Then 0.8 to 1.1 MiB of private memory (Private_Clean
// and Private_Dirty of smaps_rollup), no wake-ups while the harness runs but for
// dying children and, once a minute, Go's runtime.
//
// # macOS
//
// Built and vetted, untested. The leader's group is signalled while the leader
// is not reaped (a kqueue tells its exit and status); then what was seen to
// descend from it, by parent links and start times. An orphan whose parent died
// between two looks is lost, and so is everything when the runner is killed. A
// signal by number is a race of microseconds there: macOS has no pidfd.
//
// # Other Unix systems
//
// Built and vetted for the BSDs, untested. Only the group; the leader is reaped
// and its group killed at once.
//
// # Windows
//
// Built and vetted for amd64 and arm64, untested. The harness is created
// suspended, put into a job object that ends with its last handle, then resumed:
// the job holds all descendants, also when the runner is killed. There is no
// SIGTERM: the grace begins with a console break and the end of stdin.
//
// # Tests
//
// Real processes. Each descendant holds the write end of a FIFO, so one read
// tells when all are dead. State D is made with the freezer of cgroup v1, and a
// freed number is given to a stranger in a private pid namespace; where a host
// has neither the test says so and is skipped. -soak repeats the races ten
// times as often. -tags forkcopy tests the fork of the other processors.
package process
