// Package orphan makes private folders whose names tell which process made them,
// and removes those whose process is dead (remote.md rule 5). A process that is
// killed cannot remove its folder. It stands below the harness and the
// controller, which both have such folders.
//
//	PREFIX-PID-START-PLACE-RANDOM
//
// The owner is in the name, and not in a file inside, since it is there from the
// first moment, and nothing of a stranger's folder has to be read.
//
// # Duties of the caller
//
// One prefix is for one kind of folder. What is removed is everything in a
// folder: nobody but the process that made it may still need it.
//
// # Invariants
//
// Only a folder of a process that is known to be dead is removed: its number is
// free, waits to be reaped, or was given to a process with another start, as
// this process sees it, in the same boot and the same space of process numbers.
// Where that cannot be told, as without /proc, folders have no owner in their
// names and nothing is removed.
package orphan
