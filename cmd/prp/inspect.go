package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"prp/controller/sandbox"
	"prp/controller/worker"
	"prp/harness/fake"
	"prp/protocol/schema"
	"prp/runner/process"
	"prp/scripts"
)

var scriptsCommand = &command{
	name: "scripts", args: "[NAME]", operand: operand{words: scripts.Names},
	short: "list the scripts, or print one",
	long: `
Lists the scripts that are built in, or prints one of them, to make your own
from: prp scripts happy-path >mine.json; prp run mine.json`,
	flags: func(*flag.FlagSet) runFunc { return runScripts },
}

func runScripts(s *streams, args []string) int {
	if len(args) > 1 {
		return fail(s, "scripts", misuse("expected at most one script, got %d", len(args)))
	}
	if len(args) == 1 {
		text, err := scripts.Read(args[0])
		if err != nil {
			return fail(s, "scripts", misuse("%s%s", err, didYouMean(args[0], scripts.Names())))
		}
		s.out.Write(text)
		return exitOK
	}
	for _, name := range scripts.Names() {
		text, err := scripts.Read(name)
		if err != nil {
			return fail(s, "scripts", err)
		}
		script, err := fake.Parse(text)
		if err != nil {
			return fail(s, "scripts", fmt.Errorf("%s: %w", name, err))
		}
		fmt.Fprintf(s.out, "%-20s %s\n", name, script.Description)
	}
	return exitOK
}

var schemaCommand = &command{
	name: "schema", args: "[NAME]", operand: operand{words: schemaNames},
	short: "list the JSON Schemas of the protocol, or print one",
	long: `
Lists the JSON Schemas (draft 2020-12) of everything that is said between the
three processes, and of the policy of 'prp worker', or prints one of them.`,
	flags: func(*flag.FlagSet) runFunc { return runSchema },
}

// fileSchemas are those of files that a person writes, beside those of the
// protocol.
var fileSchemas = []struct {
	name string
	text func() []byte
}{
	{"worker-policy", worker.PolicySchema},
}

func schemaNames() []string {
	names := schema.Names()
	for _, f := range fileSchemas {
		names = append(names, f.name)
	}
	return names
}

func schemaText(name string) ([]byte, error) {
	for _, f := range fileSchemas {
		if f.name == name {
			return f.text(), nil
		}
	}
	if !slices.Contains(schemaNames(), name) {
		return nil, misuse("no schema %q; there are: %s%s", name, strings.Join(schemaNames(), ", "), didYouMean(name, schemaNames()))
	}
	return schema.Get(name)
}

func runSchema(s *streams, args []string) int {
	switch len(args) {
	case 0:
		for _, name := range schemaNames() {
			text, err := schemaText(name)
			about := ""
			if err == nil {
				about, err = schema.Describe(text)
			}
			if err != nil {
				return fail(s, "schema", err)
			}
			fmt.Fprintf(s.out, "%-16s %s\n", name, about)
		}
		return exitOK
	case 1:
		text, err := schemaText(args[0])
		if err != nil {
			return fail(s, "schema", err)
		}
		s.out.Write(text)
		return exitOK
	}
	return fail(s, "schema", misuse("expected at most one schema, got %d", len(args)))
}

var doctorCommand = &command{
	name:  "doctor",
	short: "show what this host offers to contain a harness",
	long: `
Shows by which means a runner on this host makes sure that nothing of a harness
is left: those that the host has, and those that are used. Then the same for the
sandbox of a task run, and the tiers that it can hold a run to: one that is
missing fails a run that names it, unless 'prp taskrun --allow-unsandboxed'. Then
the agents that 'prp run --agent' knows: which are installed, and which variables
they lack.`,
	flags: func(*flag.FlagSet) runFunc { return runDoctor },
}

func runDoctor(s *streams, args []string) int {
	if len(args) > 0 {
		return fail(s, "doctor", misuse("expected no arguments, got %q", args))
	}
	screen := newScreen(s.out)
	for _, m := range process.Probe() {
		screen.means(m.Name, m.Available, m.Used, m.Detail)
	}
	host := sandbox.Probe()
	for _, m := range append(host.Means(), host.Tiers()...) {
		screen.means(m.Name, m.Available, m.Used, "sandbox: "+m.Detail)
	}
	printAgents(screen)
	return exitOK
}

// means prints one line about a means of this host.
func (s *screen) means(name string, available, used bool, detail string) {
	state, look := "missing", yellow
	switch {
	case used:
		state, look = "used", green
	case available:
		state, look = "available", plain
	}
	s.print(fmt.Sprintf("%-18s %s  %s", name, s.paint(look, fmt.Sprintf("%-9s", state)), detail))
}
