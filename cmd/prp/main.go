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
	"os"

	"prp/runner/process"
)

func main() {
	process.Main()
	os.Exit(prp(os.Args[1:], &streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// streams are the three that every command has.
type streams struct{ in, out, err *os.File }
