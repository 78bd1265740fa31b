package harnesscmd

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"prp/cmd/internal/flagtext"
	"prp/harness/fake"
	"prp/scripts"
)

// statusMisuse is the exit status of a command line or a script that is wrong.
const statusMisuse = 2

const help = `prp-harness is a harness: a program that a runner starts and talks to by
JSON lines on stdin and stdout.

usage:
  prp-harness fake --script NAME|FILE [--delay-ms N]
  prp-harness fake --list
  prp-harness --script NAME|FILE [--delay-ms N]      the same as with "fake"
  prp-harness command [--from-turn LIST] [--] PROGRAM [ARG...]
  prp-harness acp [FLAGS] [--] AGENT [ARG...]
  prp-harness acp [FLAGS] --preset NAME
  prp-harness -h

commands:
  fake            play a script: a stand-in for an agent
  command         run a program: its output is the turn, its exit the result
  acp             run an agent that speaks the Agent Client Protocol, version 1

flags of fake:
  --script NAME|FILE
                  the script to play: a name of --list, or a JSON file
  --delay-ms N    replace every delay of the script by N milliseconds
  --list          list the scripts that are built in

flags of command:
  --from-turn LIST
                  what a turn may decide, with commas: argv or command (for the
                  shell) instead of PROGRAM, stdin, timeoutMs, cwd, env (added
                  to the adapter's own; null takes one away); nothing otherwise;
                  text gives PROGRAM the text of the turn as stdin

flags of acp:
  --preset NAME   claude, codex, gemini, opencode, qwen: how the agent is started
                  and which variables it may see; AGENT replaces the start
  --permissions ask|allow|deny|allow-reads
                  who decides when the agent asks: the controller (the default),
                  always once, never, or once for what only reads and else the
                  controller; what was decided here is an event
  --env-allow NAME
                  let the agent see the variable NAME; may be repeated
  --home DIR      use DIR as the agent's home and keep it; else there is a
                  private one for this run, which is removed
  --auth METHOD   how to authenticate where the agent asks for it
  --turn-timeout-ms N
                  end a turn after N milliseconds; 0, the default, is never
  --turn-idle-ms N
                  end a turn in which the agent is silent for N milliseconds
  --agent-max-line-bytes N
                  bound of a line of the agent (8388608, at most 33554432)

exit status of fake: that of the script; 1 where the script could not go on
(stdout gone, stdin ended while a step waited). Of command: that of the program,
its signal too; 124 for a program that exits with 0 after its time was up, 125
for a turn that is not allowed, 126 or 127 for a program that cannot be started.
Of acp: that of the agent, its signal too, unless the adapter had to end it; 1
where that were 0 but the last turn failed. 2 for a wrong command line or script.
`

// processors is how many processors run the goroutines of a harness at a time: they
// hand lines on. With a second one, 200 MB of a command's output took 1.6 s instead
// of 0.6 on two cores, and each start one millisecond more.
const processors = 1

// Main runs prp-harness with the arguments after its name and returns the exit
// status. It blocks until the harness has ended.
func Main(args []string) int {
	runtime.GOMAXPROCS(processors)
	if len(args) == 0 {
		return misuse(errors.New("expected a command or --script, got nothing"))
	}
	switch first := args[0]; {
	case first == fake.WorkerCommand:
		return fake.WorkerMain(args[1:])
	case first == "fake":
		return fakeMain(args[1:], leading(args))
	case first == "command":
		return commandMain(args[1:])
	case first == "acp":
		return acpMain(args[1:])
	case first == "help":
		return printHelp()
	case strings.HasPrefix(first, "-"):
		return fakeMain(args, leading(args))
	default:
		return misuse(fmt.Errorf("unknown command %q%s", first, near(first, []string{"fake", "command", "acp", "help"})))
	}
}

// leading are the words of the command line before args.
func leading(args []string) []string {
	return os.Args[:max(len(os.Args)-len(args), 0)]
}

func fakeMain(args, words []string) int {
	var name string
	var list bool
	options := fake.Options{Worker: append(slices.Clone(words), fake.WorkerCommand)}
	flags := flag.NewFlagSet("prp-harness", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&name, "script", "", "`NAME|FILE`")
	flags.BoolVar(&list, "list", false, "")
	flags.Func("delay-ms", "`N`", func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > fake.MaxMilliseconds {
			return fmt.Errorf("expected milliseconds from 0 to %d", fake.MaxMilliseconds)
		}
		options.DelayMS = &n
		return nil
	})
	switch err := parse(flags, args); {
	case errors.Is(err, flag.ErrHelp):
		return printHelp()
	case err != nil:
		return misuse(err)
	case flags.NArg() > 0:
		return misuse(fmt.Errorf("expected flags only, got %q", flags.Arg(0)))
	case list:
		return printList()
	case name == "":
		return misuse(errors.New("expected --script NAME or --script FILE"))
	}
	script, err := load(name)
	if err != nil {
		return misuse(err)
	}
	return fake.Run(script, options)
}

// parse reads flags and says in the words of this program what is wrong.
func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return errors.New(flagtext.Describe(flags, err))
}

// load finds a script: a built-in one by its name, anything else as a file.
func load(name string) (*fake.Script, error) {
	if data, err := scripts.Read(name); err == nil {
		return fake.Parse(data)
	}
	script, err := fake.Load(name)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, `/\`) {
		return nil, fmt.Errorf("expected a script of --list or a file, got %q%s", name, near(name, scripts.Names()))
	}
	return script, err
}

func near(name string, known []string) string {
	if n := fake.Nearest(name, known); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

func printHelp() int {
	return write(help)
}

func printList() int {
	var b strings.Builder
	for _, name := range scripts.Names() {
		script, err := load(name)
		if err != nil {
			return misuse(err)
		}
		fmt.Fprintf(&b, "%-20s%s\n", name, script.Description)
	}
	return write(b.String())
}

func write(text string) int {
	if _, err := io.WriteString(os.Stdout, text); err != nil {
		return 1
	}
	return 0
}

func misuse(err error) int {
	fmt.Fprintf(os.Stderr, "prp-harness: %v\nRun 'prp-harness -h' for help.\n", err)
	return statusMisuse
}
