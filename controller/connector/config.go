package connector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"prp/controller/artifact"
	"prp/controller/bridge"
)

// Limits that hold where a [Config] does not say otherwise.
const (
	defaultRuns  = 16
	defaultQueue = 64
	// maxSpools bounds the runs whose events the server has not acknowledged:
	// each holds two files open.
	maxSpools = 512
	// maxAnswers bounds the answers that wait for a connection; the server asks
	// again for one that was dropped.
	maxAnswers = 1024
	// minSpool is the least share of the spool that a run gets, in bytes.
	minSpool = 1 << 20
)

// Bounds of what a server may set (row 4).
const (
	maxFrame     = bridge.DefaultMaxFrame
	minFrame     = 16 << 10
	maxBatchWait = time.Second
	maxBeat      = 5 * time.Minute
)

// Times are the timeouts of the seed and of connector.md; zero is their value
// there. Tests shorten them.
type Times struct {
	Register        time.Duration // 10 s, row 3
	Heartbeat       time.Duration // 30 s, row 5
	MinHeartbeat    time.Duration // 5 s: what a server may set at least
	HeartbeatAnswer time.Duration // 5 s, row 5
	EventAck        time.Duration // 60 s, row 9
	Approval        time.Duration // 5 min, row 12
	Handoff         time.Duration // 30 s, row 13
	Force           time.Duration // 14 s, row 11
	Busy            time.Duration // 60 s, row 15
	URL             time.Duration // 300 s: to get an artifact's URL and use it, row 14
	Upload          time.Duration // 300 s: for uploads that go on at the end of a run; a completion waits no longer
	Poll            time.Duration // 25 s, row 17
	Socket          time.Duration // 60 s: when WebSocket is tried again, row 17
	// Ending is how long the runner of a connector that died is given to end
	// its run: its stop ladder and its hard bound (prp.md section 6).
	Ending time.Duration // 30 s
	// Deliver is how long a drain waits for the last acknowledgement.
	Deliver time.Duration // 60 s
}

func (t *Times) fill() {
	bridge.Fill(&t.Register, 10*time.Second)
	bridge.Fill(&t.Heartbeat, 30*time.Second)
	bridge.Fill(&t.MinHeartbeat, 5*time.Second)
	bridge.Fill(&t.HeartbeatAnswer, 5*time.Second)
	bridge.Fill(&t.EventAck, 60*time.Second)
	bridge.Fill(&t.Approval, 5*time.Minute)
	bridge.Fill(&t.Handoff, 30*time.Second)
	bridge.Fill(&t.Force, 14*time.Second)
	bridge.Fill(&t.Busy, busyRetry)
	bridge.Fill(&t.URL, 300*time.Second)
	bridge.Fill(&t.Upload, 300*time.Second)
	bridge.Fill(&t.Poll, 25*time.Second)
	bridge.Fill(&t.Socket, 60*time.Second)
	bridge.Fill(&t.Ending, 30*time.Second)
	bridge.Fill(&t.Deliver, 60*time.Second)
}

// Config says what a connector offers and where its server is.
type Config struct {
	// ID names the connector, 1 to 140 characters; see [ID].
	ID            string
	Version, Host string
	Agents        []Agent
	// MaxConcurrentRuns bounds the runs of all agents, MaxQueue those that
	// wait; -1 is none. Zero is 16 and 64.
	MaxConcurrentRuns, MaxQueue int
	// Dir is the connector's own folder for its state; it is made.
	Dir string
	// Link is the way to the server. Its client and its token serve the HTTPS
	// fallback as well, at PollURL; empty is none.
	Link    bridge.LinkConfig
	PollURL string
	// Renewed blocks until there is another token than the one in use, and the
	// session has to be made anew (row 18); nil is a token that stays.
	Renewed func(context.Context) error
	// Runner is the command line of a runner, Env its environment.
	Runner []string
	Env    []string
	// Artifacts moves the bytes of artifacts; nil: there are none.
	Artifacts *artifact.Client
	// Secrets are values that are masked in everything that is sent or kept.
	Secrets []string
	// Figures tells what the process uses: per cent of one CPU and megabytes.
	// What is not known is nil. Nil is nothing.
	Figures func() (cpuPct, memoryMB *float64)
	// Report is told what a person at the connector may want to know.
	Report func(text string)
	Times  Times
}

// Names of what is in Config.Dir.
const (
	idFile      = "connector_id"
	runsFile    = "runs.jsonl"
	grantsFile  = "approvals.jsonl"
	runsDir     = "runs"
	stoppedFile = "stopped"
)

// Names of what is in the folder of a run.
const (
	requestFile  = "request.json"
	startedFile  = "started"
	eventsFile   = "events.jsonl"
	terminalFile = "terminal.json"
	uploadsFile  = "uploads.jsonl"
	inputsDir    = "artifacts"
)

func (c *Config) fill() error {
	if err := bridge.CheckDoor(c.ID, maxID, c.Dir); err != nil {
		return fmt.Errorf("connector: %w", err)
	}
	if len(c.Runner) == 0 {
		return errors.New("connector: expected the command line of a runner, got none")
	}
	if err := checkAgents(c.Agents); err != nil {
		return fmt.Errorf("connector: %w", err)
	}
	bridge.Fill(&c.MaxConcurrentRuns, defaultRuns)
	switch {
	case c.MaxQueue == 0:
		c.MaxQueue = defaultQueue
	case c.MaxQueue < 0:
		c.MaxQueue = 0
	}
	if c.Report == nil {
		c.Report = func(string) {}
	}
	if c.Figures == nil {
		c.Figures = func() (*float64, *float64) { return nil, nil }
	}
	c.Times.fill()
	return os.MkdirAll(filepath.Join(c.Dir, runsDir), 0o700)
}

// ID is the connector's id: the one in its folder, which is made once and stays
// (row 3). Given, where it is not empty, becomes the one in the folder. It is safe
// for use by many processes: each 'prp connect' asks for it, also to show a state.
func ID(dir, given string) (string, error) {
	path := filepath.Join(dir, idFile)
	kept, err := bridge.ReadSecret(path)
	if given == "" && !errors.Is(err, os.ErrNotExist) || err == nil && given == kept {
		return kept, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if given != "" {
		return given, writeWhole(path, []byte(given+"\n"))
	}
	made := newID()
	err = placeWhole(path, []byte(made+"\n"), os.Link)
	switch {
	case errors.Is(err, os.ErrExist):
		return bridge.ReadSecret(path) // another was faster
	case err != nil: // a file system without links
		err = writeWhole(path, []byte(made+"\n"))
	}
	return made, err
}

// writeWhole replaces a file; a crash leaves the old or the new one.
func writeWhole(path string, text []byte) error { return placeWhole(path, text, os.Rename) }

// placeWhole writes a file under a name of its own, so that several processes can
// do it at once, and puts it into its place.
func placeWhole(path string, text []byte, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // where it was not renamed
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}
