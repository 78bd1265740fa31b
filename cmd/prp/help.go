package main

import (
	"flag"
	"fmt"
	"strings"
)

// overview is the help of prp itself.
func overview() string {
	var b strings.Builder
	b.WriteString(`Prp plays agent runs under a supervisor and shows them.

usage: prp COMMAND [ARGUMENTS]

`)
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.short)
	}
	b.WriteString(`
It carries two programs inside, each with its own -h:

  runner     the supervisor, as prp-runner
  harness    the scripted harness, as prp-harness

Start with:  prp run happy-path
`)
	return b.String()
}

// help is the help of a command, from the same source as its flags.
func (c *command) help() string {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	c.flags(fs)
	flags := flagHelp(fs)
	var b strings.Builder
	usage := "usage: prp " + c.name
	if flags != "" {
		usage += " [FLAGS]"
	}
	if c.args != "" {
		usage += " " + c.args
	}
	fmt.Fprintf(&b, "%s\n\n%s\n", usage, strings.TrimSpace(c.long))
	if flags != "" {
		fmt.Fprintf(&b, "\nflags:\n%s", flags)
	}
	return b.String()
}

// flagHelp lists the flags: a line for the name and its value, and one for the
// meaning.
func flagHelp(fs *flag.FlagSet) string {
	var b strings.Builder
	fs.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		b.WriteString("  --" + f.Name)
		if value != "" {
			b.WriteString(" " + strings.ToUpper(value))
		}
		fmt.Fprintf(&b, "\n        %s\n", strings.ReplaceAll(usage, "\n", "\n        "))
	})
	return b.String()
}

var helpCommand = &command{
	name: "help", args: "[COMMAND]",
	short: "show this list, or the help of a command",
	long:  "Shows the list of commands, or what 'prp COMMAND -h' shows.",
}

func init() {
	// Set here since the help of help needs the table of commands.
	helpCommand.flags = func(*flag.FlagSet) runFunc { return runHelp }
}

func runHelp(s *streams, args []string) int {
	switch {
	case len(args) == 0:
		fmt.Fprint(s.out, overview())
		return exitOK
	case len(args) > 1:
		return fail(s, "help", misuse("expected at most one command, got %d", len(args)))
	case programs[args[0]] != nil:
		return programs[args[0]]([]string{"-h"})
	}
	c := find(args[0])
	if c == nil {
		return fail(s, "help", misuse("expected a command, got %q%s", args[0], didYouMean(args[0], commandNames())))
	}
	fmt.Fprint(s.out, c.help())
	return exitOK
}
