// Prp-runner is the supervisor that an orchestrator spawns: it starts an agent
// process (the harness), passes commands in and events out, and ends with
// exactly one run.terminal and nothing of the harness left.
package main

import (
	"os"

	"prp/cmd/internal/runnercmd"
	"prp/runner/process"
)

func main() {
	process.Main()
	os.Exit(runnercmd.Main(os.Args[1:]))
}
