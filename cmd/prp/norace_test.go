//go:build !race || !unix

package main

import "os"

// exit ends a program: without the race detector nothing is in the way.
func exit(status int) { os.Exit(status) }
