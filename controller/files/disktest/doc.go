// Package disktest gives tests file systems of their own: small ones, which get
// full, and read-only ones. It is for Linux, and for an account that may mount;
// elsewhere the test is skipped and says why.
//
// # Duties of the caller
//
// Only tests import it. A test that mounts begins with [Apart] and ends at once
// where that is false. [Mount] is called nowhere else.
//
// # Invariants
//
// No mount is seen by another process than the test's own, and none is left.
package disktest
