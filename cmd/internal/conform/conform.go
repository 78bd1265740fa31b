package conform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"prp/cmd/internal/fakemodel"
)

// Config says what is tried.
type Config struct {
	// Runner and Harness are the command lines of prp-runner and prp-harness.
	Runner, Harness []string
	// Agent is what is tried.
	Agent Agent
	// Only are the names of the cases to play; all where it is empty.
	Only []string
	// Patience bounds each wait for something that the agent does; 0 is
	// [DefaultPatience].
	Patience time.Duration
	// Done, where it is not nil, is called with each row as it is known.
	Done func(Row)
}

// DefaultPatience is far above what an agent needs on a loaded machine.
const DefaultPatience = 90 * time.Second

// Status is what came of a case.
type Status string

const (
	Passed  Status = "ok"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Row is one case that was played.
type Row struct {
	Case   string
	Status Status
	// Detail says why a case failed or was skipped, or what the agent did
	// where more than one thing is right.
	Detail string
	Took   time.Duration
}

// errSkip ends a case that says nothing about this agent.
type errSkip struct{ why string }

func (e errSkip) Error() string { return e.why }

// Cases lists the names of the cases in their order.
func Cases() []string {
	var names []string
	for _, c := range cases {
		names = append(names, c.name)
	}
	return names
}

// Run plays the cases one after the other. The error is one of the trial
// itself, not of the agent.
func Run(ctx context.Context, cfg Config) ([]Row, error) {
	if cfg.Patience == 0 {
		cfg.Patience = DefaultPatience
	}
	for _, name := range cfg.Only {
		if !slices.Contains(Cases(), name) {
			return nil, fmt.Errorf("expected cases out of %q, got %q", Cases(), name)
		}
	}
	model, err := fakemodel.Start()
	if err != nil {
		return nil, err
	}
	defer model.Close()
	var rows []Row
	for _, c := range cases {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, c.name) {
			continue
		}
		if ctx.Err() != nil {
			return rows, context.Cause(ctx)
		}
		row := play(ctx, cfg, c, model.URL())
		rows = append(rows, row)
		if cfg.Done != nil {
			cfg.Done(row)
		}
	}
	return rows, nil
}

// play plays one case in a folder of its own.
func play(ctx context.Context, cfg Config, c testCase, model string) (row Row) {
	row = Row{Case: c.name, Status: Passed}
	begin := time.Now()
	defer func() { row.Took = time.Since(begin) }()
	if c.needsModel && !cfg.Agent.UsesModel() {
		row.Status, row.Detail = Skipped, "needs an agent that asks the fake model"
		return row
	}
	var skip errSkip
	detail, err := playIn(ctx, cfg, c, model)
	switch row.Detail = detail; {
	case errors.As(err, &skip):
		row.Status, row.Detail = Skipped, skip.why
	case err != nil:
		row.Status, row.Detail = Failed, err.Error()
	}
	return row
}

func playIn(ctx context.Context, cfg Config, c testCase, model string) (detail string, err error) {
	// The path stands in the environment of every process of the agent: that
	// is how they are found.
	root, err := os.MkdirTemp("", "prp-conform-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	before := homeEntries()
	b, err := newBench(ctx, cfg, c, root, model)
	if err != nil {
		return "", err
	}
	err = c.play(b)
	err = errors.Join(err, b.close())
	if left := processesOf(root); len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("still alive after run.terminal: %v", left))
		killAll(left)
	}
	for _, entry := range homeEntries() {
		if !slices.Contains(before, entry) && entry != ownConfig {
			err = errors.Join(err, fmt.Errorf("a new entry in the account's home: %q", entry))
		}
	}
	if err != nil && len(b.tail) > 0 {
		err = fmt.Errorf("%w; the agent's log ends with %q", err, b.tail)
	}
	return b.detail, err
}

// ownConfig is where prp itself keeps what outlives a run: another one may make
// it meanwhile.
var ownConfig = filepath.Join(".config", "prp")

// homeEntries lists what agents could add to the account's own home.
func homeEntries() []string {
	u, err := user.Current()
	if err != nil || u.HomeDir == "" {
		return nil
	}
	var names []string
	for _, dir := range []string{"", ".config", filepath.Join(".local", "share"), filepath.Join(".local", "state"), ".cache"} {
		entries, err := os.ReadDir(filepath.Join(u.HomeDir, dir))
		if err != nil {
			continue // a folder that is not there has no entries
		}
		for _, e := range entries {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names
}
