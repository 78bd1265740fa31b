package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"prp/cmd/internal/conform"
)

// conformanceOptions are the flags of prp conformance.
type conformanceOptions struct {
	agent    agentTarget
	envAllow list
	only     list
	patience time.Duration
}

var conformanceCommand = &command{
	name: "conformance", args: "-- AGENT [ARG...]",
	short: "try an agent with a table of cases and show what came of each",
	long: `
Plays each case as a whole run, with a real runner and the adapter for the Agent
Client Protocol, and prints a line for it: what was tried, whether it came out
right, and how long it took.

An agent of --agent is pointed to a fake model on loopback, so that nothing is
asked of a real one and no key is needed. Any other agent is started as it is,
and plays the cases that no model has to script.

In every case there is one end, which fits what happened; nothing of the agent
lives after it; the account's own home has no new entries.

exit status: 0 every case came out right, 1 one did not, 2 wrong command line.

  prp conformance --agent claude
  prp conformance --case 'text turn' -- ./my-agent --acp`,
	flags: func(fs *flag.FlagSet) runFunc {
		o := &conformanceOptions{}
		fs.StringVar(&o.agent.name, "agent", "", "try the agent of this `NAME`: "+strings.Join(agentNames(), ", "))
		fs.Var(&o.only, "case", "play only the case of this `NAME`; may be repeated; a wrong name lists them")
		fs.Var(&o.envAllow, "env-allow", "let AGENT see the environment variable `NAME`; may be repeated")
		fs.DurationVar(&o.patience, "patience", conform.DefaultPatience, "how long to wait for anything that the agent does ("+conform.DefaultPatience.String()+")")
		return o.run
	},
}

func (o *conformanceOptions) run(s *streams, args []string) int {
	if err := o.check(args); err != nil {
		return fail(s, "conformance", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fail(s, "conformance", fmt.Errorf("find the own executable: %w", err))
	}
	ctx, stop := untilTold()
	defer stop()
	status, screen := exitOK, newScreen(s.out)
	_, err = conform.Run(ctx, conform.Config{
		Runner: []string{self, "runner"}, Harness: []string{self, "harness"},
		Agent: conform.Agent{Preset: o.agent.name, Argv: args, EnvAllow: o.envAllow},
		Only:  o.only, Patience: o.patience,
		Done: func(r conform.Row) {
			if r.Status == conform.Failed {
				status = exitFailed
			}
			printRow(screen, r)
		},
	})
	if err != nil {
		return fail(s, "conformance", err)
	}
	return status
}

func (o *conformanceOptions) check(args []string) error {
	switch {
	case o.agent.name == "" && len(args) == 0:
		return misuse("expected --agent NAME or -- AGENT; the names are: %s", strings.Join(agentNames(), ", "))
	case o.agent.name != "" && len(args) > 0:
		return misuse("expected --agent or -- AGENT, got both")
	case o.agent.name != "" && len(o.envAllow) > 0:
		return misuse("expected --env-allow with -- AGENT, got it with --agent")
	case o.patience <= 0:
		return misuse("--patience: expected a time above 0, got %s", o.patience)
	}
	for _, name := range o.only {
		if !slices.Contains(conform.Cases(), name) {
			return misuse("--case: expected a case, got %q%s", name, thereAre(name, "cases", conform.Cases()))
		}
	}
	return o.agent.check()
}

// printRow prints one case: its name, what came of it, the time, the detail.
func printRow(screen *screen, r conform.Row) {
	look := map[conform.Status]style{conform.Passed: green, conform.Failed: red, conform.Skipped: yellow}[r.Status]
	screen.print(strings.TrimRight(fmt.Sprintf("%-34s %s %7.1fs  %s", r.Case, screen.paint(look, fmt.Sprintf("%-8s", r.Status)),
		r.Took.Seconds(), r.Detail), " "))
}
