package main

import (
	"errors"
	"fmt"
	"os"

	"prp/controller/sandbox"
)

// sandboxedCommand is the word before the rules of a sandbox and the command
// line of a harness. Nobody types it, so that it is not in the help.
const sandboxedCommand = "sandboxed"

// sandboxed confines this process and becomes the harness. It returns only
// where that is not possible.
func sandboxed(args []string) int {
	if len(args) == 0 {
		fmt.Fprintf(os.Stderr, "prp %s: expected the rules of a sandbox and a program, got nothing\n", sandboxedCommand)
		return exitUsage
	}
	err := sandbox.Exec(args[0], args[1:], os.Environ())
	fmt.Fprintf(os.Stderr, "prp %s: %s\n", sandboxedCommand, err)
	if failed := (*sandbox.Error)(nil); errors.As(err, &failed) {
		return failed.Status
	}
	return exitFailed
}
