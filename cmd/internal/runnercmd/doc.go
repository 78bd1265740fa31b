// Package runnercmd is the command line of prp-runner: flags to a
// runner.Config, and the run. It stands in two binaries, prp-runner and prp,
// which carries the runner inside.
//
// The caller is a main package whose first statement is process.Main. Flags
// and environment are read here and nowhere below.
package runnercmd
