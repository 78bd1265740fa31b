package runnercmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"prp/runner"
)

// Heap settings: the runner's live heap is small and its garbage is rare, so a
// soft limit keeps the memory flat where a percentage would let it double.
const (
	gcPercent   = 50
	memoryLimit = 12 << 20 // bytes
)

// processors is how many processors run the runner's goroutines at a time. They
// hand each line on and do little beside; a second one costs more in waking than it
// gives: a quarter of the processor time at 200-byte events.
const processors = 1

// Main runs prp-runner with these arguments (without the program's name) and
// returns its exit status: 0 where the one terminal was delivered, 1 where it
// could not be or something inside failed, 2 for wrong flags.
func Main(args []string) int {
	runtime.GOMAXPROCS(processors)
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	cfg, err := Parse(args, os.LookupEnv)
	switch {
	case errors.Is(err, errHelp):
		Help(os.Stdout)
		return runner.ExitDelivered
	case err != nil:
		fmt.Fprintf(os.Stderr, "prp-runner: %v\nTry 'prp-runner -h'.\n", err)
		return runner.ExitMisused
	}
	return runner.Run(cfg, os.Stdin, os.Stdout, os.Stderr)
}

// Help prints the help text.
func Help(w io.Writer) {
	fmt.Fprint(w, helpHead)
	for _, f := range Flags() {
		name := "--" + f.Name
		if f.Arg != "" {
			name += " " + f.Arg
		}
		text := f.Text
		if f.Default != "" {
			text += " (default " + f.Default + ")"
		}
		fmt.Fprintf(w, "  %s\n        %s\n", name, text)
	}
	fmt.Fprint(w, helpTail)
}

const helpHead = `prp-runner supervises one run: commands as JSON lines on stdin, events on stdout.

Usage: prp-runner --run-id ID --session-id ID --runner-id ID --harness 'COMMAND LINE' [flags]

`

const helpTail = `
Exit status: 0 the one run.terminal was delivered, whatever it says; 1 it could
not be delivered, or something inside failed; 2 wrong flags.
`
