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

// runOptions are the flags of prp run.
type runOptions struct {
	answers         list
	harness, runner string
	text, turnFile  string
	record, cwd     string
	delayMS         int
	json            bool
	envAllow        list
	given           map[string]string // answers by request id
	script          string            // what the fake harness gets as --script
}

var runCommand = &command{
	name: "run", args: "NAME|FILE.json",
	short: "play a script or a harness under the supervisor and show it",
	long: `
Runs three real processes: this controller, the runner, and the harness. The
harness plays the script of that name ('prp scripts' lists them), or a script
file of your own, or it is any program that speaks the harness protocol
(--harness).

Each event is shown as one line, then the log tail, the end with its reason and
a summary. Questions of the harness are asked here, or answered beforehand with
--answer.

Ctrl-C interrupts the turn; a second one cancels the run; a third one kills it.

exit status: 0 the run succeeded, 1 it failed, 2 wrong command line, 130 it was
cancelled.

  prp run happy-path
  prp run permission-input --answer request_permission=allow --answer request_input=hello
  prp run --harness 'prp-harness fake --script error'`,
	flags: func(fs *flag.FlagSet) runFunc {
		o := &runOptions{}
		fs.Var(&o.answers, "answer", "answer `id=value` for the request of that id, once per request:\nthe key of a choice, or a text")
		fs.Var(&o.envAllow, "env-allow", "let the harness see the environment variable `name`; may be repeated")
		fs.StringVar(&o.harness, "harness", "", "run this `command` as the harness (shell words, no shell)")
		fs.StringVar(&o.runner, "runner", "", "use the runner binary at `path` instead of the one inside")
		fs.StringVar(&o.text, "text", "Do what there is to do.", "the `text` of the turn")
		fs.StringVar(&o.turnFile, "turn-file", "", "read the text of the turn from `file`")
		fs.StringVar(&o.record, "record", "", "write the stream to `file`, for prp replay")
		fs.StringVar(&o.cwd, "cwd", "", "working `directory` of the harness")
		fs.IntVar(&o.delayMS, "delay-ms", -1, "replace every delay of the script by this `number` of milliseconds")
		fs.BoolVar(&o.json, "json", false, "print the runner's stream as it is")
		return o.run
	},
}

func (o *runOptions) run(s *streams, args []string) int {
	if err := o.check(args); err != nil {
		return fail(s, "run", err)
	}
	argv, err := o.runnerArgv()
	if err != nil {
		return fail(s, "run", err)
	}
	return newPlayer(s, o).play(controller.Config{Argv: argv, EnvAllow: o.envAllow})
}

// check reads everything that can be wrong before anything is started.
func (o *runOptions) check(args []string) error {
	switch {
	case o.harness != "" && len(args) > 0:
		return misuse("expected a script or --harness, got both")
	case o.harness != "":
		if err := checkCommandLine(o.harness); err != nil {
			return err
		}
		if o.delayMS >= 0 {
			return misuse("expected --delay-ms with a script, got it with --harness")
		}
	case len(args) == 0:
		return misuse("expected a script name or a file, got none; the scripts are: %s", strings.Join(scripts.Names(), ", "))
	case len(args) > 1:
		return misuse("expected one script, got %q", args)
	default:
		if err := o.findScript(args[0]); err != nil {
			return err
		}
	}
	if err := o.readAnswers(); err != nil {
		return err
	}
	return o.readTurn()
}

// checkCommandLine refuses what the runner would refuse: the parser stops
// without an error at an unquoted | ; & < > and tells it by its position only.
func checkCommandLine(line string) error {
	p := shellwords.NewParser()
	words, err := p.Parse(line)
	switch {
	case err != nil:
		return misuse("--harness: expected a command line, got %q: %s", line, err)
	case p.Position != -1:
		return misuse("--harness: expected a command line without a shell's operators, got one at byte %d of %q; quote it, or use sh -c",
			p.Position, line)
	case len(words) == 0:
		return misuse("--harness: expected a command line, got %q", line)
	}
	return nil
}

// findScript finds the script by its name, or reads and checks the file. The
// file is parsed here, so that its mistakes are shown before anything starts.
func (o *runOptions) findScript(name string) error {
	if _, err := scripts.Read(name); err == nil {
		o.script = name
		return nil
	}
	_, err := fake.Load(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, `/\.`) {
		return misuse("expected a script name or a file, got %q%s; the scripts are: %s",
			name, didYouMean(name, scripts.Names()), strings.Join(scripts.Names(), ", "))
	}
	if err != nil {
		return misuse("script: %s", err)
	}
	o.script, err = filepath.Abs(name) // the harness has another working directory
	return err
}

func (o *runOptions) readAnswers() error {
	o.given = map[string]string{}
	for _, a := range o.answers {
		id, value, ok := strings.Cut(a, "=")
		if !ok || id == "" {
			return misuse("--answer: expected ID=VALUE, got %q", a)
		}
		if _, twice := o.given[id]; twice {
			return misuse("--answer: expected one answer for %q, got two", id)
		}
		o.given[id] = value
	}
	return nil
}

// maxTurnText bounds the text of a turn, in bytes: a command line is bounded to
// 1 MiB, and every byte may need an escape of six.
const maxTurnText = 160 << 10

func (o *runOptions) readTurn() error {
	if o.turnFile == "" {
		return nil
	}
	text, err := os.ReadFile(o.turnFile)
	if err != nil {
		return misuse("--turn-file: %s", err)
	}
	if len(text) > maxTurnText {
		return misuse("--turn-file: expected at most %d bytes, got %d", maxTurnText, len(text))
	}
	o.text = strings.TrimSuffix(string(text), "\n")
	return nil
}

// runnerArgv is the command line of the runner, without the ids.
func (o *runOptions) runnerArgv() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the own executable: %w", err)
	}
	argv := []string{self, "runner"}
	if o.runner != "" {
		argv = []string{o.runner}
	}
	argv = append(argv, "--clock", "system")
	if o.cwd != "" {
		argv = append(argv, "--cwd", o.cwd)
	}
	for _, name := range o.envAllow {
		argv = append(argv, "--env-allow", name)
	}
	if o.harness != "" {
		return append(argv, "--harness", o.harness), nil
	}
	argv = append(argv, "--fake-harness", self, "--script", o.script)
	if o.delayMS >= 0 {
		argv = append(argv, "--delay-ms", strconv.Itoa(o.delayMS))
	}
	return argv, nil
}
