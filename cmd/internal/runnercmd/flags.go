package runnercmd

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-shellwords"

	"prp/runner"
)

var errHelp = errors.New("help was asked for")

// Flag is one flag of prp-runner (spec section 7). The names are fixed: other
// programs call them.
type Flag struct {
	Name    string
	Arg     string
	Default string
	Text    string
	set     func(p *parsed, value string) error
}

// parsed is what the flags have said so far.
type parsed struct {
	cfg      runner.Config
	harness  string
	fake     string
	script   string
	delay    string
	clock    bool
	allow    []string
	envFiles []string
}

// Flags lists every flag in the order of the help text.
func Flags() []Flag {
	d := runner.Defaults()
	return []Flag{
		{"run-id", "ID", "", "id of the run, 1 to 140 characters; required", func(p *parsed, v string) error { p.cfg.RunID = v; return nil }},
		{"session-id", "ID", "", "id of the session, 1 to 140 characters; required", func(p *parsed, v string) error { p.cfg.SessionID = v; return nil }},
		{"runner-id", "ID", "", "id of this runner, 1 to 140 characters; required", func(p *parsed, v string) error { p.cfg.RunnerID = v; return nil }},
		{"harness", "'COMMAND LINE'", "", "the harness as shell words; there is no shell, so no | ; & < or > outside quotes", func(p *parsed, v string) error { p.harness = v; return nil }},
		{"fake-harness", "BIN", "", "a fake harness instead, run as BIN --script FILE [--delay-ms N]", func(p *parsed, v string) error { p.fake = v; return nil }},
		{"script", "FILE", "", "the script of the fake harness", func(p *parsed, v string) error { p.script = v; return nil }},
		{"delay-ms", "N", "", "replaces every delay of the script", setDelay},
		{"cwd", "DIR", "", "working directory of the harness", func(p *parsed, v string) error { p.cfg.Dir = v; return nil }},
		{"env-allow", "NAME", "", "passes this variable of the runner's environment on; repeatable. PATH is always passed on", setAllow},
		{"env-file", "FILE", "", "adds NAME=VALUE lines to the harness's environment; only its owner may be able to read it. Values are masked in diagnostics", func(p *parsed, v string) error { p.envFiles = append(p.envFiles, v); return nil }},
		{"harness-max-line-bytes", "N", strconv.Itoa(d.HarnessMaxLineBytes), "bound of a line of the harness, content only", number(func(c *runner.Config) *int { return &c.HarnessMaxLineBytes })},
		{"command-max-line-bytes", "N", strconv.Itoa(d.CommandMaxLineBytes), "bound of a line of the controller, content only", number(func(c *runner.Config) *int { return &c.CommandMaxLineBytes })},
		{"command-history", "N", strconv.Itoa(d.CommandHistory), "command ids that are remembered", number(func(c *runner.Config) *int { return &c.CommandHistory })},
		{"log-max-lines", "N", strconv.Itoa(d.LogMaxLines), "lines of the log tail in harness.exited", number(func(c *runner.Config) *int { return &c.LogMaxLines })},
		{"log-max-bytes", "N", strconv.Itoa(d.LogMaxBytes), "bytes of the log tail in harness.exited", number(func(c *runner.Config) *int { return &c.LogMaxBytes })},
		{"ready-timeout-ms", "N", ms(d.ReadyTimeout), "how long the harness may take to say ready", millis(func(c *runner.Config) *time.Duration { return &c.ReadyTimeout })},
		{"shutdown-grace-ms", "N", ms(d.ShutdownGrace), "from SIGTERM to SIGKILL", millis(func(c *runner.Config) *time.Duration { return &c.ShutdownGrace })},
		{"cancel-grace-ms", "N", ms(d.CancelGrace), "from run.cancel to SIGTERM", millis(func(c *runner.Config) *time.Duration { return &c.CancelGrace })},
		{"interrupt-grace-ms", "N", ms(d.InterruptGrace), "from turn.interrupt to SIGTERM where the turn does not end; 0 is never", millis(func(c *runner.Config) *time.Duration { return &c.InterruptGrace })},
		{"drain-grace-ms", "N", ms(d.DrainGrace), "how long pipes that others hold open are read after the exit", millis(func(c *runner.Config) *time.Duration { return &c.DrainGrace })},
		{"exit-grace-ms", "N", ms(d.ExitGrace), "from the end of the harness's stdout to SIGTERM", millis(func(c *runner.Config) *time.Duration { return &c.ExitGrace })},
		{"run-timeout-ms", "N", ms(d.RunTimeout), "bound of the whole run; 0 is none", millis(func(c *runner.Config) *time.Duration { return &c.RunTimeout })},
		{"max-events", "N", "0", "events that the harness may cause; 0 is no limit", number64(func(c *runner.Config) *int64 { return &c.MaxEvents })},
		{"max-event-bytes", "N", "0", "bytes of the lines that they come from; 0 is no limit", number64(func(c *runner.Config) *int64 { return &c.MaxEventBytes })},
		{"clock", "system|deterministic", "deterministic with --script, else system", "times of the events", func(p *parsed, v string) error { p.clock = true; p.cfg.Clock = runner.Clock(v); return nil }},
		{"on-eof", "cancel|finish", string(d.OnEOF), "what the end of stdin means", func(p *parsed, v string) error { p.cfg.OnEOF = runner.OnEOF(v); return nil }},
		{"journal", "FILE", "", "appends every line of stdout to this file first", func(p *parsed, v string) error { p.cfg.JournalPath = v; return nil }},
		{"terminal", "FILE", "", "writes run.terminal to this file first, without what the harness has proposed", func(p *parsed, v string) error { p.cfg.TerminalPath = v; return nil }},
	}
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// parseNumber reads a whole number from 0 to high.
func parseNumber(v string, high int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > high {
		return 0, fmt.Errorf("expected a whole number from 0 to %d, got %q", high, v)
	}
	return n, nil
}

func number(field func(*runner.Config) *int) func(*parsed, string) error {
	return func(p *parsed, v string) error {
		n, err := parseNumber(v, math.MaxInt32)
		*field(&p.cfg) = int(n)
		return err
	}
}

func number64(field func(*runner.Config) *int64) func(*parsed, string) error {
	return func(p *parsed, v string) (err error) {
		*field(&p.cfg), err = parseNumber(v, math.MaxInt64)
		return err
	}
}

// maxMillis bounds a duration flag, in milliseconds: a year.
const maxMillis = 365 * 24 * 3600 * 1000

func millis(field func(*runner.Config) *time.Duration) func(*parsed, string) error {
	return func(p *parsed, v string) error {
		n, err := parseNumber(v, maxMillis)
		*field(&p.cfg) = time.Duration(n) * time.Millisecond
		return err
	}
}

func setDelay(p *parsed, v string) error {
	_, err := parseNumber(v, maxMillis)
	p.delay = v
	return err
}

func setAllow(p *parsed, v string) error {
	if v == "" || strings.ContainsAny(v, "=\x00") {
		return fmt.Errorf("expected the name of a variable, got %q", v)
	}
	p.allow = append(p.allow, v)
	return nil
}

// Parse turns arguments into a checked configuration. getenv is how the
// runner's own environment is read.
func Parse(args []string, getenv func(string) (string, bool)) (runner.Config, error) {
	p := &parsed{cfg: runner.Defaults()}
	if err := p.flags(args); err != nil {
		return runner.Config{}, err
	}
	if err := p.command(); err != nil {
		return runner.Config{}, err
	}
	if err := p.environment(getenv); err != nil {
		return runner.Config{}, err
	}
	if err := p.cfg.Check(); err != nil {
		return runner.Config{}, fmt.Errorf("--%w", err) // it begins with the name of the flag
	}
	return p.cfg, nil
}

// flags reads --name value, --name=value and the same with one dash.
func (p *parsed) flags(args []string) error {
	byName := make(map[string]Flag)
	for _, f := range Flags() {
		byName[f.Name] = f
	}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, value, given := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		switch {
		case arg == "-h" || arg == "--help" || arg == "-help":
			return errHelp
		case !strings.HasPrefix(arg, "-"):
			return fmt.Errorf("expected a flag, got %q", arg)
		}
		f, ok := byName[name]
		if !ok {
			return fmt.Errorf("flag %q is not known", arg)
		}
		if !given {
			if len(args) == 0 {
				return fmt.Errorf("--%s: expected a value %s", name, f.Arg)
			}
			value, args = args[0], args[1:]
		}
		if err := f.set(p, value); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return nil
}

// command makes Argv of --harness or of --fake-harness.
func (p *parsed) command() error {
	switch {
	case p.harness != "" && p.fake != "":
		return errors.New("--harness and --fake-harness: expected one of them, got both")
	case p.harness == "" && p.fake == "":
		return errors.New("expected --harness 'COMMAND LINE' or --fake-harness BIN --script FILE")
	case p.fake == "" && (p.script != "" || p.delay != ""):
		return errors.New("--script and --delay-ms go with --fake-harness; give them inside --harness")
	case p.fake != "" && p.script == "":
		return errors.New("--fake-harness: expected --script FILE with it")
	}
	if p.fake != "" {
		p.cfg.Argv = []string{p.fake, "--script", p.script}
		if p.delay != "" {
			p.cfg.Argv = append(p.cfg.Argv, "--delay-ms", p.delay)
		}
		p.cfg.DriverKind = runner.DriverFake
		if !p.clock {
			p.cfg.Clock = runner.ClockDeterministic
		}
		return nil
	}
	argv, err := Words(p.harness)
	if err != nil {
		return fmt.Errorf("--harness: %w", err)
	}
	p.cfg.Argv = argv
	return nil
}

// Words splits a command line into words as a shell does, without a shell: an
// operator outside quotes is an error, not the end of the line.
func Words(line string) ([]string, error) {
	parser := shellwords.NewParser()
	words, err := parser.Parse(line)
	switch {
	case err != nil:
		return nil, fmt.Errorf("expected shell words, got %q: %w", line, err)
	case parser.Position != -1:
		return nil, fmt.Errorf("expected plain words, got %q: there is no shell, quote what follows byte %d", line, parser.Position)
	case len(words) == 0 || words[0] == "":
		return nil, fmt.Errorf("expected a command, got %q", line)
	}
	return words, nil
}
