// Command prp-harness is a harness for prp-runner: a program that the runner
// starts and talks to by JSON lines on stdin and stdout. See prp-harness -h.
package main

import (
	"os"

	"prp/cmd/internal/harnesscmd"
)

func main() {
	os.Exit(harnesscmd.Main(os.Args[1:]))
}
