// Package process starts one child, the harness, and ends it together with
// everything that descends from it (spec section 6).
//
// # Duties of the caller
//
// main begins with [Main]. [Open] comes early, [Supervisor.Start] when the
// harness is wanted; [Child.Stop] or [Child.Kill] comes in every case, also
// after a natural exit; [Supervisor.Close] comes last. The caller owns the
// child's pipe ends. No other part of the program waits for any child
// (wait4(-1)).
package process
