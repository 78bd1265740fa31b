package harnesscmd

import (
	"errors"
	"flag"
	"io"
	"os"
	"runtime"

	"prp/harness/child"
	"prp/harness/command"
)

// commandMain runs a plain program as a harness and ends as it did.
func commandMain(args []string) int {
	o := command.Options{Shell: []string{"sh", "-c"}, Stdin: os.Stdin, Stdout: os.Stdout}
	if runtime.GOOS == "windows" {
		o.Shell = []string{"cmd", "/c"}
	}
	flags := flag.NewFlagSet("prp-harness command", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("from-turn", "`LIST`", func(list string) (err error) {
		o.Allow, err = command.ParseAllow(list)
		return err
	})
	switch err := parse(flags, args); {
	case errors.Is(err, flag.ErrHelp):
		return printHelp()
	case err != nil:
		return misuse(err)
	}
	o.Argv = flags.Args()
	if len(o.Argv) == 0 && !o.Allow.Has("argv") && !o.Allow.Has("command") {
		return misuse(errors.New("expected a program after --, or --from-turn argv or command"))
	}
	return child.Mirror(command.Run(o))
}
