//go:build race

package process

// raceBuild says that the race detector is on: then this binary, which plays
// runners and guardians too, takes many times as long to start.
const raceBuild = true
