// Package awaittest waits for what a test expects, with a bound that only a hang
// reaches.
//
// # Duties of the caller
//
// Only tests import it. [Came] is called by the goroutine of the test.
//
// # Invariants
//
// No wait is longer than [Bound]; past it the test ends and names what did not come.
package awaittest
