package console

import (
	"errors"
	"time"

	"prp/controller"
)

// Limits of the reference's trust model (local runner, "Local transport trust
// model").
const (
	maxActiveRuns = 4
	maxKeptRuns   = 16
	maxStreams    = 8        // of one run at a time
	maxBody       = 16 << 10 // bytes of a request, streamed or not
)

// Limits that hold where a [Config] does not say otherwise.
const (
	// defaultHistory bounds the history of a run, in bytes: 50,000 events of
	// usual length, so that only a flood is merged.
	defaultHistory = 48 << 20
	// defaultWrite is how long one write to a stream client may take: a
	// browser on the same machine that takes longer is not there any more.
	defaultWrite = 10 * time.Second
	// defaultHeartbeat is the longest silence of a stream. The page takes a
	// stream that is silent three times as long for lost.
	defaultHeartbeat = 5 * time.Second
)

// Choice is something that can be started.
type Choice struct {
	// Kind is "script", "harness" or "agent".
	Kind string `json:"kind"`
	// Name is unique among those of its kind.
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Kinds of choices, and of runs; a recorded run was loaded from a file.
const (
	KindScript   = "script"
	KindHarness  = "harness"
	KindAgent    = "agent" // a real agent, through its adapter
	KindRecorded = "recorded"
)

// Config says what a console offers. The zero value of every member but Start
// is a sensible default.
type Config struct {
	// Choices can be started from the page. None is a console that only shows.
	Choices []Choice
	// Start gives the runner for one of Choices. It is called by several
	// goroutines. Tap of the result is not used. Where over is not nil, it is
	// called once: when the run is over and its runner is gone, or could not
	// be started. The run keeps its place until it returns.
	Start func(Choice) (cfg controller.Config, over func(), err error)
	// Text is what the form for a new run proposes as the text of the turn.
	Text string

	// HistoryBytes bounds the history of each run, in bytes of lines.
	// Zero is 48 MiB.
	HistoryBytes int
	// WriteTimeout bounds one write to a stream client. Zero is 10 s.
	WriteTimeout time.Duration
	// Heartbeat is the longest silence of a stream. Zero is 5 s.
	Heartbeat time.Duration
}

func (c Config) filled() (Config, error) {
	if len(c.Choices) > 0 && c.Start == nil {
		return c, errors.New("console: config: expected Start where there are Choices, got none")
	}
	if c.HistoryBytes <= 0 {
		c.HistoryBytes = defaultHistory
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = defaultWrite
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = defaultHeartbeat
	}
	return c, nil
}
