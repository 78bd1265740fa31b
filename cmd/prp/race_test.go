//go:build race && unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// raceStatus is the exit status that the race detector gives to a program in
// which it has found something.
const raceStatus = 66

// exit ends a program at once: by os.Exit, the race detector would let it
// sleep for a second first. What it has found decides all the same.
func exit(status int) {
	if n := runtime.RaceErrors(); n > 0 {
		os.Stderr.WriteString("the race detector has found something\n")
		status = raceStatus
	}
	syscall.Exit(status)
}
