//go:build race

package process

// A build with the race detector sleeps for a second when it exits, unless it
// is told not to. A guardian has nothing to wait for.
func init() { guardianEnv = append(guardianEnv, "GORACE=atexit_sleep_ms=0") }
