package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"prp/cmd/internal/flagtext"
	"prp/cmd/internal/harnesscmd"
	"prp/cmd/internal/runnercmd"
	"prp/harness/fake"
)

// Exit statuses.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitCancelled = 130
)

// command is one word after prp.
type command struct {
	name string
	// args are the positional arguments as the usage line shows them.
	args string
	// short is one line for the list, long the text of its help.
	short, long string
	// operand is what the positional arguments can be, for completion.
	operand operand
	// flags registers the flags on the set and returns what runs the command.
	flags func(fs *flag.FlagSet) runFunc
}

// runFunc runs a command with its positional arguments.
type runFunc func(s *streams, args []string) int

// usageError is a wrong command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func misuse(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// commands lists what a person may type, in the order of the help.
func commands() []*command {
	return []*command{
		runCommand, shellCommand, consoleCommand, replayCommand, validateCommand,
		workerCommand, connectCommand, taskrunCommand, devserverCommand,
		scriptsCommand, schemaCommand, conformanceCommand, doctorCommand, completionCommand, versionCommand, helpCommand,
	}
}

// programs are the programs that prp carries inside.
var programs = map[string]func(args []string) int{
	"runner":  runnercmd.Main,
	"harness": harnesscmd.Main,
	"keeper":  keeperMain,
	// Not a program of its own, but started by a runner like one.
	sandboxedCommand: sandboxed,
}

// prp runs one command line and returns the exit status.
func prp(args []string, s *streams) int {
	if len(args) == 0 {
		fmt.Fprint(s.err, overview())
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch {
	case name == "-h" || name == "--help" || name == "-help":
		fmt.Fprint(s.out, overview())
		return exitOK
	case name == fake.WorkerCommand:
		return harnesscmd.Main(args) // a worker of the harness inside
	case name == "--script":
		// The runner starts a fake harness as BIN --script FILE (spec section 7).
		return harnesscmd.Main(args)
	case programs[name] != nil:
		return programs[name](rest)
	}
	c := find(name)
	if c == nil {
		fmt.Fprintf(s.err, "prp: expected a command, got %q%s\nRun 'prp help' for the commands.\n",
			name, didYouMean(name, commandNames()))
		return exitUsage
	}
	return c.run(s, rest)
}

func find(name string) *command {
	i := slices.IndexFunc(commands(), func(c *command) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return commands()[i]
}

func commandNames() []string {
	names := []string{}
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// run parses the flags, which may stand before, between and after the
// positional arguments, and runs the command.
func (c *command) run(s *streams, args []string) int {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	do := c.flags(fs)
	positional, err := parseFlags(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(s.out, c.help())
		return exitOK
	}
	if err != nil {
		return fail(s, c.name, misuse("%s", flagtext.Describe(fs, err)))
	}
	return do(s, positional)
}

// fail reports an error of a command and returns the status that it has.
func fail(s *streams, name string, err error) int {
	fmt.Fprintf(s.err, "prp %s: %s\n", name, err)
	if errors.As(err, new(usageError)) {
		fmt.Fprintf(s.err, "Run 'prp %s -h' for help.\n", name)
		return exitUsage
	}
	return exitFailed
}

// parseFlags parses flags that stand anywhere before "--".
func parseFlags(fs *flag.FlagSet, args []string) ([]string, error) {
	var positional []string
	for {
		before := len(args)
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if fs.NArg() == 0 {
			return positional, nil
		}
		if used := before - fs.NArg(); used > 0 && args[used-1] == "--" {
			return append(positional, fs.Args()...), nil
		}
		positional = append(positional, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

// didYouMean ends a message about an unknown name.
func didYouMean(name string, known []string) string {
	if near := fake.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// thereAre ends a message about an unknown name with the one that may be meant
// and all that there are.
func thereAre(name, what string, known []string) string {
	all := strings.Join(known, ", ")
	if near := didYouMean(name, known); near != "" {
		return near + " The " + what + " are: " + all
	}
	return "; the " + what + " are: " + all
}

// list is a flag that may be given several times.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, " ") }

// Set implements flag.Value.
func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}
