package main

import (
	"flag"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// defaultText is the text of a turn where none is given.
const defaultText = "Do what there is to do."

// runOptions are the flags of prp run.
type runOptions struct {
	target
	answers        list
	text, turnFile string
	record         string
	json           bool
	given          map[string]string // answers by request id
}

var runCommand = &command{
	name: "run", args: "NAME|FILE.json", operand: operandScript,
	short: "play a script or a harness under the supervisor and show it",
	long: `
Runs three real processes: this controller, the runner, and the harness. The
harness plays the script of that name ('prp scripts' lists them), or a script
file of your own, or it is any program that speaks the harness protocol
(--harness), or an agent that is installed (--agent; 'prp doctor' lists them).

Each event is shown as one line, then the log tail, the end with its reason and
a summary. Questions of the harness are asked here, or answered beforehand with
--answer.

Ctrl-C interrupts the turn; a second one cancels the run; a third one kills it.

exit status: 0 the run succeeded, 1 it failed, 2 wrong command line, 130 it was
cancelled.

  prp run happy-path
  prp run permission-input --answer request_permission=allow --answer request_input=hello
  prp run --harness 'prp-harness fake --script error'
  prp run --agent claude --permissions allow --text 'Say hello.'`,
	flags: func(fs *flag.FlagSet) runFunc {
		o := &runOptions{}
		o.target.flags(fs)
		fs.Var(&o.answers, "answer", "answer `ID=VALUE` for the request of that id, once per request:\nthe key of a choice, or a text")
		fs.StringVar(&o.text, "text", "", "the `TEXT` of the turn (\""+defaultText+"\")")
		fs.StringVar(&o.turnFile, "turn-file", "", "read the text of the turn from `FILE`")
		fs.StringVar(&o.record, "record", "", "write the stream to `FILE`, for prp replay")
		fs.BoolVar(&o.json, "json", false, "print the runner's stream as it is")
		return o.run
	},
}

func (o *runOptions) run(s *streams, args []string) int {
	if err := o.check(args); err != nil {
		return fail(s, "run", err)
	}
	defer o.agent.close(s)
	cfg, err := o.config()
	if err != nil {
		return fail(s, "run", err)
	}
	o.agent.warn(s, "run")
	return newPlayer(s, o).play(cfg)
}

// check reads everything that can be wrong before anything is started.
func (o *runOptions) check(args []string) error {
	if err := o.target.check(args); err != nil {
		return err
	}
	if err := o.readAnswers(); err != nil {
		return err
	}
	return o.readTurn()
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
	switch {
	case o.turnFile != "" && o.text != "":
		return misuse("expected --text or --turn-file, got both")
	case o.turnFile == "":
		if o.text == "" {
			o.text = defaultText
		}
		return checkText("--text", o.text)
	}
	text, err := readAtMost(o.turnFile, maxTurnText+len("\n")+1)
	if err != nil {
		return misuse("--turn-file: %s", err)
	}
	o.text = strings.TrimSuffix(string(text), "\n")
	return checkText("--turn-file", o.text)
}

// readAtMost reads the first bytes of a file, which may be one without an end.
func readAtMost(name string, limit int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(limit)))
}

// checkText refuses a text that no command can carry.
func checkText(name, text string) error {
	if len(text) > maxTurnText {
		return misuse("%s: expected at most %d bytes, got more", name, maxTurnText)
	}
	if !utf8.ValidString(text) {
		return misuse("%s: expected UTF-8, got other bytes", name)
	}
	return nil
}
