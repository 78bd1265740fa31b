package runner

import (
	"fmt"
	"path/filepath"
	"time"
	"unicode/utf8"

	"prp/protocol"
	"prp/runner/lifecycle"
)

// Clock is where the times of events come from.
type Clock string

const (
	// ClockSystem is real time that never goes backwards.
	ClockSystem Clock = "system"
	// ClockDeterministic is a fixed base plus sourceSeq milliseconds.
	ClockDeterministic Clock = "deterministic"
)

// OnEOF is what the end of the runner's stdin means.
type OnEOF string

const (
	// OnEOFCancel stops the run.
	OnEOFCancel OnEOF = "cancel"
	// OnEOFFinish lets it go on without further commands.
	OnEOFFinish OnEOF = "finish"
)

// Driver kinds before the harness has said its own (spec section 3).
const (
	DriverFake    = "fake"
	DriverProcess = "process"
)

// Config is one run. [Defaults] gives the values of the flags; ids and Argv
// have none.
type Config struct {
	RunID, SessionID, RunnerID string // 1..140 characters each
	// Argv is the harness; a bare Argv[0] is looked up in the PATH of Env.
	Argv []string
	// Dir is the working directory of the harness, "" for the runner's own.
	Dir        string
	DriverKind string
	// Env is the whole environment of the harness.
	Env []string
	// Secrets are masked in the log tail and in diagnostics.
	Secrets []string

	HarnessMaxLineBytes int
	CommandMaxLineBytes int
	CommandHistory      int
	LogMaxLines         int
	LogMaxBytes         int

	ReadyTimeout   time.Duration
	ShutdownGrace  time.Duration
	CancelGrace    time.Duration
	InterruptGrace time.Duration // 0 is never
	DrainGrace     time.Duration
	ExitGrace      time.Duration
	RunTimeout     time.Duration // 0 is never

	MaxEvents     int64 // 0 is no limit
	MaxEventBytes int64 // 0 is no limit

	Clock Clock
	OnEOF OnEOF
	// JournalPath is a file that gets every line of stdout as well, "" for none.
	JournalPath string
	// TerminalPath is a file that gets the line of run.terminal first, without
	// the harness's proposal, "" for none. A file that is there is removed. It is
	// not that of JournalPath.
	TerminalPath string
}

// Defaults is the configuration that the flags of spec section 7 start from.
func Defaults() Config {
	return Config{
		DriverKind:          DriverProcess,
		HarnessMaxLineBytes: protocol.DefaultHarnessLine,
		CommandMaxLineBytes: protocol.DefaultCommandLine,
		CommandHistory:      protocol.DefaultCommandHistory,
		LogMaxLines:         32,
		LogMaxBytes:         16 << 10,
		ReadyTimeout:        30 * time.Second,
		ShutdownGrace:       5 * time.Second,
		CancelGrace:         2 * time.Second,
		InterruptGrace:      10 * time.Second,
		DrainGrace:          time.Second,
		ExitGrace:           5 * time.Second,
		Clock:               ClockSystem,
		OnEOF:               OnEOFCancel,
	}
}

// Limits of the bounds themselves, so that a typing error does not turn a
// bound into none.
const (
	minLine    = 256      // a line must hold at least an envelope
	maxLine    = 64 << 20 // bytes
	maxHistory = 1 << 20  // command ids
	maxLog     = 64 << 20 // lines or bytes of the log tail
)

// Check returns the first member that is out of its limits. The error begins
// with the name of its flag (spec section 7), without dashes.
func (c *Config) Check() error {
	for _, id := range []struct{ name, value string }{
		{"run-id", c.RunID}, {"session-id", c.SessionID}, {"runner-id", c.RunnerID},
	} {
		if n := utf8.RuneCountInString(id.value); n < 1 || n > protocol.MaxRunIDLen || !utf8.ValidString(id.value) {
			return fmt.Errorf("%s: expected 1 to %d characters of UTF-8, got %q", id.name, protocol.MaxRunIDLen, id.value)
		}
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return fmt.Errorf("harness: expected a command, got none")
	}
	for _, n := range []struct {
		name             string
		value, low, high int
	}{
		{"harness-max-line-bytes", c.HarnessMaxLineBytes, minLine, maxLine},
		{"command-max-line-bytes", c.CommandMaxLineBytes, minLine, maxLine},
		{"command-history", c.CommandHistory, 1, maxHistory},
		{"log-max-lines", c.LogMaxLines, 0, maxLog},
		{"log-max-bytes", c.LogMaxBytes, 0, maxLog},
	} {
		if n.value < n.low || n.value > n.high {
			return fmt.Errorf("%s: expected %d to %d, got %d", n.name, n.low, n.high, n.value)
		}
	}
	if c.Clock != ClockSystem && c.Clock != ClockDeterministic {
		return fmt.Errorf("clock: expected %q or %q, got %q", ClockSystem, ClockDeterministic, c.Clock)
	}
	if c.OnEOF != OnEOFCancel && c.OnEOF != OnEOFFinish {
		return fmt.Errorf("on-eof: expected %q or %q, got %q", OnEOFCancel, OnEOFFinish, c.OnEOF)
	}
	if c.TerminalPath != "" && c.JournalPath != "" && filepath.Clean(c.TerminalPath) == filepath.Clean(c.JournalPath) {
		return fmt.Errorf("terminal: expected another file than that of the journal, got %q", c.TerminalPath)
	}
	return nil
}

// core is the part of the configuration that lifecycle decides by.
func (c *Config) core() lifecycle.Config {
	dir := c.Dir
	if dir == "" {
		dir = "."
	}
	return lifecycle.Config{
		RunID: c.RunID, SessionID: c.SessionID, RunnerID: c.RunnerID,
		WorkingDirectory: dir,
		DriverKind:       c.DriverKind,
		Deterministic:    c.Clock == ClockDeterministic,
		FinishOnEOF:      c.OnEOF == OnEOFFinish,
		CommandHistory:   c.CommandHistory,
		ReadyTimeout:     c.ReadyTimeout,
		ShutdownGrace:    c.ShutdownGrace,
		CancelGrace:      c.CancelGrace,
		InterruptGrace:   c.InterruptGrace,
		DrainGrace:       c.DrainGrace,
		ExitGrace:        c.ExitGrace,
		RunTimeout:       c.RunTimeout,
		MaxEvents:        c.MaxEvents,
		MaxEventBytes:    c.MaxEventBytes,
	}
}
