package taskrun

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"prp/controller/bridge"
	"prp/controller/checkpoint"
	"prp/controller/workerclient"
)

// Config says which run is worked on, and how. Members without a default have to
// be given.
type Config struct {
	// TaskRunID is the run at the server.
	TaskRunID string
	// Updater makes the calls, Sender posts text.
	Updater *workerclient.WorkerHTTPUpdater
	Sender  workerclient.StreamSender
	// Dir has the journals and the reports that are not delivered; it is made.
	Dir string
	// Workspace is the working directory of the run. Empty is a folder in Dir of
	// its own for each task, which is kept.
	Workspace string
	// Runner is the command line of a runner, Harness that of the harness, each
	// as words.
	Runner, Harness []string
	// Env is the environment of the harness, NAME=VALUE each, beside the secrets
	// of the run. HOME and TMPDIR are replaced by private folders.
	Env []string
	// Store keeps the checkpoints of workspaces; nil is no place for them.
	Store checkpoint.PayloadStore
	// Sandboxed is the command line of a program that calls sandbox.Exec with
	// the words that follow.
	Sandboxed []string
	// Programs, SharedRead and ExternalWrite are those of sandbox.Policy; they
	// are absolute and exist.
	Programs, SharedRead, ExternalWrite []string
	// AllowUnsandboxed runs also where this host cannot enforce a tier.
	AllowUnsandboxed bool
	// Secrets are values that are masked, beside those of the run.
	Secrets []string
	// Report is told what a person may want to know, masked; it is called by one
	// goroutine at a time.
	Report func(text string)
	// Times that tests shorten.
	Times Times
}

// Times are how long things take; zero members are those of workerclient.md.
type Times struct {
	// FetchFirst is the first wait between tries to fetch and claim, FetchMost
	// the longest, FetchAll how long it is tried.
	FetchFirst, FetchMost, FetchAll time.Duration
	// Poll is the time between two polls, SlowPoll after a 401 or 403 (row 8).
	Poll, SlowPoll time.Duration
	// LastPoll is how long a signal waits for the poll that tells whether the
	// run was cancelled as well: a cancel wins.
	LastPoll time.Duration
	// Report is how long the terminal report is tried, and ReportSignalled after
	// SIGTERM (row 4). Flush and FlushSignalled are the same for the last text.
	Report, ReportSignalled time.Duration
	Flush, FlushSignalled   time.Duration
	// Retry are the waits before the tries that follow a step that got no
	// answer; Resend is the first wait between tries to report.
	Retry  []time.Duration
	Resend time.Duration
}

var defaultTimes = Times{
	FetchFirst: time.Second, FetchMost: 15 * time.Second, FetchAll: 2 * time.Minute,
	Poll: 5 * time.Second, SlowPoll: time.Minute, LastPoll: 3 * time.Second,
	Report: time.Minute, ReportSignalled: 15 * time.Second,
	// The text is worth a third of what the report is.
	Flush: 20 * time.Second, FlushSignalled: 5 * time.Second,
	Retry:  []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second},
	Resend: time.Second,
}

func (t *Times) fill() {
	bridge.Fill(&t.FetchFirst, defaultTimes.FetchFirst)
	bridge.Fill(&t.FetchMost, defaultTimes.FetchMost)
	bridge.Fill(&t.FetchAll, defaultTimes.FetchAll)
	bridge.Fill(&t.Poll, defaultTimes.Poll)
	bridge.Fill(&t.SlowPoll, defaultTimes.SlowPoll)
	bridge.Fill(&t.LastPoll, defaultTimes.LastPoll)
	bridge.Fill(&t.Report, defaultTimes.Report)
	bridge.Fill(&t.ReportSignalled, defaultTimes.ReportSignalled)
	bridge.Fill(&t.Flush, defaultTimes.Flush)
	bridge.Fill(&t.FlushSignalled, defaultTimes.FlushSignalled)
	bridge.Fill(&t.Resend, defaultTimes.Resend)
	if t.Retry == nil {
		t.Retry = defaultTimes.Retry
	}
}

// Folders in Config.Dir.
const (
	tracesDir     = "traces"
	reportsDir    = "reports"
	runsDir       = "runs"
	workspacesDir = "workspaces"
	// asideDir has workspaces while they are replaced.
	asideDir = "aside"
)

func (c *Config) fill() error {
	switch {
	case c.TaskRunID == "":
		return errors.New("taskrun: expected the id of a task run, got none")
	case c.Dir == "":
		return errors.New("taskrun: expected a folder for the state, got none")
	case len(c.Runner) == 0 || len(c.Harness) == 0 || len(c.Sandboxed) == 0:
		return errors.New("taskrun: expected the command lines of a runner, a harness and a sandbox")
	}
	if c.Report == nil {
		c.Report = func(string) {}
	}
	c.Times.fill()
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	c.Dir = dir
	for _, sub := range []string{tracesDir, reportsDir, runsDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// maxFileName bounds an id in the name of a file, in bytes; a longer one is told
// by its hash.
const maxFileName = 100

// fileName makes one part of a path of an id.
func fileName(id string) string {
	name := url.PathEscape(id)
	if len(name) > maxFileName || name == "." || name == ".." || name == "" {
		sum := sha256.Sum256([]byte(id))
		return "sha256-" + hex.EncodeToString(sum[:])
	}
	return name
}
