package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// overview is the help of prp itself.
func overview() string {
	var b strings.Builder
	b.WriteString(`Prp plays agent runs under a supervisor and shows them.

usage: prp COMMAND [ARGUMENTS]

`)
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-12s %s\n", c.name, c.short)
	}
	b.WriteString(`
It carries two programs inside, each with its own -h:

  runner       the supervisor, as prp-runner
  harness      the harness: scripts, commands and agents, as prp-harness

'prp help TOPIC' tells more about:

`)
	for _, t := range topics() {
		fmt.Fprintf(&b, "  %-12s %s\n", t.name, t.short)
	}
	b.WriteString(`
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
	name: "help", args: "[COMMAND|TOPIC]",
	short: "show this list, or the help of a command or a topic",
	long: `
Shows the list of commands and topics, or what 'prp COMMAND -h' shows, or the
page of a topic.`,
}

func init() {
	// Set here since the help of help needs the table of commands.
	helpCommand.flags = func(*flag.FlagSet) runFunc { return runHelp }
	helpCommand.operand = operand{words: helpNames}
}

// helpNames is everything that there is help for.
func helpNames() []string {
	names := append(commandNames(), slices.Sorted(maps.Keys(programs))...)
	for _, t := range topics() {
		if find(t.name) == nil {
			names = append(names, t.name)
		}
	}
	return names
}

func runHelp(s *streams, args []string) int {
	switch {
	case len(args) == 0:
		fmt.Fprint(s.out, overview())
		return exitOK
	case len(args) > 1:
		return fail(s, "help", misuse("expected at most one command or topic, got %d", len(args)))
	case programs[args[0]] != nil:
		return programs[args[0]]([]string{"-h"})
	}
	var pages []string // a command and a topic may have the same name
	if c := find(args[0]); c != nil {
		pages = append(pages, c.help())
	}
	for _, t := range topics() {
		if t.name == args[0] {
			pages = append(pages, t.page())
		}
	}
	if len(pages) == 0 {
		return fail(s, "help", misuse("expected a command or a topic, got %q%s", args[0], didYouMean(args[0], helpNames())))
	}
	fmt.Fprint(s.out, strings.Join(pages, "\n"))
	return exitOK
}
