package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mattn/go-shellwords"

	"prp/controller"
	"prp/harness/fake"
	"prp/scripts"
)

// target is what a run is made of: the harness, the runner, and how both are
// started. The commands that start a run share its flags.
type target struct {
	harness, runner string
	cwd             string
	delayMS         int
	envAllow        list
	runnerFlags     string
	extra           []string // runnerFlags as words
	script          string   // what the fake harness gets as --script
	agent           agentTarget
}

// operandScript is a script: a name, or a file.
var operandScript = operand{words: scripts.Names, files: "*.json"}

// flags registers the flags of a target.
func (t *target) flags(fs *flag.FlagSet) {
	fs.Var(&t.envAllow, "env-allow", "let the harness see the environment variable `NAME`; may be repeated")
	fs.StringVar(&t.harness, "harness", "", "run this `COMMAND` as the harness (shell words, no shell)")
	fs.StringVar(&t.runner, "runner", "", "use the runner binary at `PATH` instead of the one inside")
	fs.StringVar(&t.runnerFlags, "runner-flags", "", "give the runner these further `FLAGS` (shell words; see prp runner -h)")
	fs.StringVar(&t.cwd, "cwd", "", "working `DIRECTORY` of the harness")
	t.agent.flags(fs)
	fs.IntVar(&t.delayMS, "delay-ms", -1, "replace every delay of the script by this `NUMBER` of milliseconds")
}

// check takes the positional arguments: a script, or none where --harness is
// given. What can be wrong is found here, before anything is started.
func (t *target) check(args []string) error {
	if t.runnerFlags != "" {
		words, err := splitWords("--runner-flags", "flags", t.runnerFlags)
		if err != nil {
			return err
		}
		t.extra = words
	}
	if err := t.agent.check(); err != nil {
		return err
	}
	switch {
	case t.agent.name != "" && (t.harness != "" || len(args) > 0 || t.delayMS >= 0):
		return misuse("expected --agent alone, without a script, --harness or --delay-ms")
	case t.agent.name != "":
		return nil
	case t.harness != "" && len(args) > 0:
		return misuse("expected a script or --harness, got both")
	case t.harness != "":
		if _, err := splitWords("--harness", "a command line", t.harness); err != nil {
			return err
		}
		if t.delayMS >= 0 {
			return misuse("expected --delay-ms with a script, got it with --harness")
		}
		return nil
	case len(args) == 0:
		return misuse("expected a script name or a file, got none; the scripts are: %s", strings.Join(scripts.Names(), ", "))
	case len(args) > 1:
		return misuse("expected one script, got %q", args)
	}
	return t.findScript(args[0])
}

// splitWords splits a command line, and refuses what the runner would refuse:
// the parser stops without an error at an unquoted | ; & < > and tells it by
// its position only.
func splitWords(name, what, line string) ([]string, error) {
	p := shellwords.NewParser()
	words, err := p.Parse(line)
	switch {
	case err != nil:
		return nil, misuse("%s: expected %s, got %q: %s", name, what, line, err)
	case p.Position != -1:
		return nil, misuse("%s: expected %s without a shell's operators, got one at byte %d of %q; quote it, or use sh -c",
			name, what, p.Position, line)
	case len(words) == 0:
		return nil, misuse("%s: expected %s, got %q", name, what, line)
	}
	return words, nil
}

// findScript finds the script by its name, or reads and checks the file. The
// file is parsed here, so that its mistakes are shown before anything starts.
func (t *target) findScript(name string) error {
	if _, err := scripts.Read(name); err == nil {
		t.script = name
		return nil
	}
	_, err := fake.Load(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, `/\.`) {
		return misuse("expected a script name or a file, got %q%s", name, thereAre(name, "scripts", scripts.Names()))
	}
	if err != nil {
		return misuse("script: %s", err)
	}
	t.script, err = filepath.Abs(name) // the harness has another working directory
	return err
}

// config is how a run of this target is started.
func (t *target) config() (controller.Config, error) {
	if t.agent.name != "" {
		self, err := os.Executable()
		if err != nil {
			return controller.Config{}, fmt.Errorf("find the own executable: %w", err)
		}
		harness, names, err := t.agent.prepare(self)
		if err != nil {
			return controller.Config{}, err
		}
		t.harness, t.envAllow = harness, append(t.envAllow, names...)
	}
	argv, err := t.runnerArgv()
	return controller.Config{Argv: argv, EnvAllow: t.envAllow}, err
}

// runnerArgv is the command line of the runner, without the ids.
func (t *target) runnerArgv() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the own executable: %w", err)
	}
	argv := []string{self, "runner"}
	if t.runner != "" {
		argv = []string{t.runner}
	}
	argv = append(argv, "--clock", "system")
	if t.cwd != "" {
		argv = append(argv, "--cwd", t.cwd)
	}
	for _, name := range t.envAllow {
		argv = append(argv, "--env-allow", name)
	}
	argv = append(argv, t.extra...)
	if t.harness != "" {
		return append(argv, "--harness", t.harness), nil
	}
	argv = append(argv, "--fake-harness", self, "--script", t.script)
	if t.delayMS >= 0 {
		argv = append(argv, "--delay-ms", strconv.Itoa(t.delayMS))
	}
	return argv, nil
}
