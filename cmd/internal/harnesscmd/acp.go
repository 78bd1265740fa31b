package harnesscmd

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"prp/harness/acp"
	"prp/harness/acp/translate"
	"prp/harness/child"
)

// adapterVersion is what the adapter tells an agent about itself.
const adapterVersion = "1"

// acpFlags are the flags of prp-harness acp.
type acpFlags struct {
	options  acp.Options
	preset   string
	envAllow []string
	home     string
	auth     string
}

// acpMain runs an agent as a harness and ends as it did.
func acpMain(args []string) int {
	f := &acpFlags{options: acp.Options{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}}
	argv, err := f.parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return printHelp()
	case err != nil:
		return misuse(err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return misuse(err)
	}
	o := &f.options
	o.Conversation.Cwd, o.Conversation.Version = cwd, adapterVersion
	home, err := f.makeHome()
	if err != nil {
		fmt.Fprintf(os.Stderr, "prp-harness: %v\n", err)
		return 1
	}
	preset, _ := acp.FindPreset(f.preset)
	if o.Argv = argv; len(argv) == 0 {
		o.Argv = preset.Argv
	}
	if o.Conversation.AuthMethod = f.auth; f.auth == "" {
		o.Conversation.AuthMethod = preset.Auth
	}
	o.Env = acp.Environment(os.Environ(), append(preset.Names(), f.envAllow...), home.Env())
	exit := acp.Run(*o)
	if f.home == "" {
		if err := home.Remove(); err != nil {
			fmt.Fprintf(os.Stderr, "prp-harness: %v\n", err)
		}
	}
	return child.Mirror(exit)
}

func (f *acpFlags) makeHome() (*acp.Home, error) {
	if f.home != "" {
		return acp.UseHome(f.home)
	}
	return acp.NewHome("")
}

// parse reads the flags and returns the agent's argument list.
func (f *acpFlags) parse(args []string) ([]string, error) {
	c := &f.options.Conversation
	flags := flag.NewFlagSet("prp-harness acp", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("preset", "`NAME`", func(name string) error {
		if _, ok := acp.FindPreset(name); !ok {
			return fmt.Errorf("expected one of %s%s", strings.Join(presetNames(), ", "), near(name, presetNames()))
		}
		f.preset = name
		return nil
	})
	flags.Func("permissions", "`WHO`", func(name string) (err error) {
		c.Policy, err = translate.ParsePolicy(name)
		return err
	})
	flags.Func("env-allow", "`NAME`", func(name string) error {
		if name == "" || strings.Contains(name, "=") {
			return errors.New("expected the name of a variable, without a value")
		}
		f.envAllow = append(f.envAllow, name)
		return nil
	})
	flags.StringVar(&f.home, "home", "", "`DIR`")
	flags.StringVar(&f.auth, "auth", "", "`METHOD`")
	flags.Func("turn-timeout-ms", "`N`", milliseconds(&c.TurnTimeout))
	flags.Func("turn-idle-ms", "`N`", milliseconds(&c.TurnIdle))
	flags.Func("agent-max-line-bytes", "`N`", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1<<10 || n > acp.HardMaxLine {
			return fmt.Errorf("expected bytes from %d to %d", 1<<10, acp.HardMaxLine)
		}
		f.options.MaxLine = n
		return nil
	})
	if err := parse(flags, args); err != nil {
		return nil, err
	}
	if flags.NArg() == 0 && f.preset == "" {
		return nil, errors.New("expected an agent after --, or --preset NAME")
	}
	return flags.Args(), nil
}

func presetNames() []string {
	var names []string
	for _, p := range acp.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// maxTurn is the longest time that can be given to a turn, in milliseconds: a
// week.
const maxTurn = 7 * 24 * 60 * 60 * 1000

func milliseconds(d *time.Duration) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > maxTurn {
			return fmt.Errorf("expected milliseconds from 0 (never) to %d", maxTurn)
		}
		*d = time.Duration(n) * time.Millisecond
		return nil
	}
}
