package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"prp/cmd/internal/runnercmd"
)

// operand is what the positional arguments of a command can be.
type operand struct {
	words func() []string // nil is none
	files string          // a pattern of file names; empty is no file
}

// anyFile is the pattern of an operand that is any file.
const anyFile = "*"

// completable is a command as a shell completes it.
type completable struct {
	name, short string
	flags       []completableFlag
	words       []string
	files       string
}

// completableFlag is a flag of a command.
type completableFlag struct {
	name, usage string
	value       string // what its value is called; empty is a flag without
}

// Values of flags that name files, by the names that the help gives them.
var (
	fileValues = []string{"file", "path", "bin"}
	dirValues  = []string{"directory", "dir"}
)

func (f *completableFlag) takesFile() bool { return slices.Contains(fileValues, f.value) }
func (f *completableFlag) takesDir() bool  { return slices.Contains(dirValues, f.value) }

// choices are the words that a value can be, where there are only these.
func (f *completableFlag) choices() []string {
	if !strings.Contains(f.value, "|") {
		return nil
	}
	return strings.Split(f.value, "|")
}

// isText tells that nothing is known of a value.
func (f *completableFlag) isText() bool {
	return f.value != "" && !f.takesFile() && !f.takesDir() && f.choices() == nil
}

// completables is everything that can follow "prp", from the tables that the
// help is made of.
func completables() []completable {
	var list []completable
	for _, c := range commands() {
		x := completable{name: c.name, short: c.short, files: c.operand.files}
		if c.operand.words != nil {
			x.words = c.operand.words()
		}
		fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
		c.flags(fs)
		fs.VisitAll(func(f *flag.Flag) {
			value, usage := flag.UnquoteUsage(f)
			x.flags = append(x.flags, completableFlag{name: f.Name, value: strings.ToLower(value), usage: firstLine(usage)})
		})
		list = append(list, x)
	}
	runner := completable{name: "runner", short: "the supervisor, as prp-runner"}
	for _, f := range runnercmd.Flags() {
		runner.flags = append(runner.flags, completableFlag{name: f.Name, value: strings.ToLower(f.Arg), usage: f.Text})
	}
	list = append(list, runner, completable{name: "harness", short: "the scripted harness, as prp-harness", words: []string{"fake", "help"}})
	for i := range list {
		list[i].flags = append(list[i].flags, completableFlag{name: "help", usage: "show the help"})
	}
	return list
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimRight(line, ":")
}

// writers make the completion of each shell.
var writers = map[string]func([]completable) string{
	"bash": bashCompletion, "fish": fishCompletion, "zsh": zshCompletion,
}

func shells() []string { return []string{"bash", "fish", "zsh"} }

var completionCommand = &command{
	name: "completion", args: "bash|fish|zsh", operand: operand{words: shells},
	short: "print what lets a shell complete prp's commands",
	long: `
Prints a script for a shell, made from the same tables as this help. It
completes commands, flags, scripts, schemas, topics and files.

  source <(prp completion bash)                                     in ~/.bashrc
  prp completion zsh >"${fpath[1]}/_prp"                            once
  prp completion fish >~/.config/fish/completions/prp.fish          once`,
}

func init() {
	// Set here since the completion of completion needs the table of commands.
	completionCommand.flags = func(*flag.FlagSet) runFunc { return runCompletion }
}

func runCompletion(s *streams, args []string) int {
	if len(args) != 1 {
		return fail(s, "completion", misuse("expected one shell of %s, got %d", strings.Join(shells(), ", "), len(args)))
	}
	writer := writers[args[0]]
	if writer == nil {
		return fail(s, "completion", misuse("expected one shell of %s, got %q%s",
			strings.Join(shells(), ", "), args[0], didYouMean(args[0], shells())))
	}
	fmt.Fprint(s.out, writer(completables()))
	return exitOK
}

// quoted is a word in single quotes, as every shell here reads it where it has
// no quote or backslash inside.
func quoted(s string) string {
	return "'" + strings.NewReplacer("'", "’", `\`, "/").Replace(s) + "'"
}

// flagsWhere lists the flags that fit, each as "--name".
func (c *completable) flagsWhere(fits func(*completableFlag) bool) []string {
	var list []string
	for i := range c.flags {
		if fits(&c.flags[i]) {
			list = append(list, "--"+c.flags[i].name)
		}
	}
	return list
}
