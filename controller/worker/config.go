package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prp/controller/bridge"
)

// Limits of row 18, and other defaults.
const (
	maxRunning = 4
	maxQueued  = 64
	// helloWait is how long the server's answer to hello is waited for (row 1).
	helloWait = 2 * time.Second
	// keepProcess is how long a background process is known after its end
	// (row 9).
	keepProcess = time.Hour
	// progressEvery is the least time between two reports of one command:
	// two a second (row 13).
	progressEvery = 500 * time.Millisecond
)

// Config says what a worker may do and where its server is.
type Config struct {
	// ID names the worker at the server, 1 to 160 characters; Machine and
	// Version are told as they are.
	ID, Machine, Version string
	// Link is the way to the server.
	Link bridge.LinkConfig
	// Roots are the folders that the tools may touch. None: no file tool and
	// no command.
	Roots []string
	// Dir is the worker's own folder for its state; it is made.
	Dir string
	// Policy is what is allowed.
	Policy Policy
	// Runner is the command line of a runner, Harness that of a command
	// harness as shell words, which lets a turn decide on argv, stdin, cwd and
	// env. Without Runner there is no command.run.
	Runner  []string
	Harness string
	// Keeper is the command line of a program that calls [Keep] with its stdin
	// and stdout; it starts processes that outlive the worker. Without it, or
	// where the system does not tell the start of a process, there are none.
	Keeper []string
	// Env is the environment of the runner and of the keeper, NAME=VALUE each.
	// CommandEnv is what commands see besides, and a NAME alone what they do not
	// see.
	Env, CommandEnv []string
	// Secrets are values that are masked in everything that is sent or kept.
	Secrets []string
	// Report is told what a person at the worker may want to know.
	Report func(text string)

	// Times that tests shorten; zero is the value of worker.md.
	HelloWait, KeepProcess, ProgressEvery time.Duration
}

// Names of what is in Config.Dir.
const (
	outboxFile    = "outbox.jsonl"
	commandsFile  = "commands.jsonl"
	approvalsFile = "approvals.jsonl"
	filesDir      = "files"
	processesDir  = "processes"
)

// processors is the variable that tells a Go program how many processors to use.
const processors = "GOMAXPROCS"

// oneProcessor has the runner and the harness of a command start for one processor,
// which takes them a tenth less: both only hand lines on. The command does not see
// it. Where the environment says how many processors it is to be, that stays.
func (c *Config) oneProcessor() {
	if len(c.Runner) == 0 || slices.ContainsFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, processors+"=") }) {
		return
	}
	c.Env = append(slices.Clone(c.Env), processors+"=1")
	c.Runner = append(slices.Clone(c.Runner), "--env-allow", processors)
	c.CommandEnv = append([]string{processors}, c.CommandEnv...)
}

func (c *Config) fill() error {
	if err := bridge.CheckDoor(c.ID, maxID, c.Dir); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if c.HelloWait <= 0 {
		c.HelloWait = helloWait
	}
	if c.KeepProcess <= 0 {
		c.KeepProcess = keepProcess
	}
	if c.ProgressEvery <= 0 {
		c.ProgressEvery = progressEvery
	}
	if c.Report == nil {
		c.Report = func(string) {}
	}
	c.oneProcessor()
	for _, sub := range []string{filesDir, processesDir} {
		if err := os.MkdirAll(filepath.Join(c.Dir, sub), 0o700); err != nil {
			return err
		}
	}
	return nil
}
