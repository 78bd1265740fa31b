//go:build race

package console

// raced says that the race detector is on.
const raced = true
