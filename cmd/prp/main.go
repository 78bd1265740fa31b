// Prp is what a person types: it plays runs, shows them, and checks recorded
// ones. It carries the runner and the fake harness inside, so that it needs no
// other program: it starts itself as prp-runner (prp runner ...), which starts
// it as prp-harness (prp harness ..., or prp --script ...).
//
// # Exit status
//
// 0: the run succeeded, or what was asked for was done. 1: the run failed, or
// something was found wrong. 2: the command line is wrong. 130: the run was
// cancelled.
package main

import (
	"fmt"
	"os"
	"sync"

	"prp/runner/process"
)

func main() {
	process.Main()
	os.Exit(run())
}

// run runs the command line of the process and returns its exit status.
func run() int {
	s := &streams{in: os.Stdin, out: &output{File: os.Stdout}, err: &output{File: os.Stderr}}
	status := prp(os.Args[1:], s)
	if err := s.out.failure(); err != nil && status == exitOK {
		fmt.Fprintf(s.err, "prp: %s\n", err)
		status = exitFailed
	}
	return status
}

// streams are the three that every command has.
type streams struct {
	in       *os.File
	out, err *output
}

// output is a file that remembers that it could not be written, so that what a
// command prints need not be checked line by line. It is safe for use by
// several goroutines.
type output struct {
	*os.File
	mu    sync.Mutex
	first error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.first == nil {
			o.first = err
		}
	}
	return n, err
}

// failure is the first error of a write.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first
}
