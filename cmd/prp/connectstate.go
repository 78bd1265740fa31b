package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"prp/controller"
	"prp/controller/bridge"
	"prp/controller/connector"
	"prp/controller/metrics"
)

// connectState is what a connector writes down for others of its user.
type connectState struct {
	connector.State
	// At is when it was written; zero where the connector has ended.
	At time.Time `json:"at,omitzero"`
}

// keepState writes the state down until ctx ends.
func (o *connectOptions) keepState(ctx context.Context, c *connector.Connector) {
	tick := time.NewTicker(connectEvery)
	defer tick.Stop()
	for {
		o.writeState(c.State(), time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// writeState replaces the file; a reader never sees half of it.
func (o *connectOptions) writeState(state connector.State, at time.Time) {
	text, err := json.Marshal(connectState{State: state, At: at})
	if err != nil {
		return
	}
	path := filepath.Join(o.file.Dir, connectStateFile)
	if os.WriteFile(path+".new", text, 0o600) == nil {
		_ = os.Rename(path+".new", path) // the next one tries again
	}
}

// readState reads what the connector has written last; runs tells whether it
// lives.
func (o *connectOptions) readState() (state connectState, runs bool, err error) {
	text, err := os.ReadFile(filepath.Join(o.file.Dir, connectStateFile))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return state, false, nil
	}
	return state, err == nil && time.Since(state.At) < staleAfter, err
}

// alone takes the folder for this connector.
func (o *connectOptions) alone() (release func(), err error) {
	return alone(o.file.Dir, lockName, "connector", `"dir"`)
}

func (o *connectOptions) showState(s *streams) int {
	state, runs, err := o.readState()
	if err != nil {
		return fail(s, "connect", err)
	}
	if state.ConnectorID == "" {
		return fail(s, "connect", fmt.Errorf("no connector has used %s", o.file.Dir))
	}
	link := "not connected"
	if state.Connected && runs {
		link = "connected by " + state.Transport
	}
	if !runs {
		fmt.Fprintln(s.out, "no connector is running")
	}
	fmt.Fprintf(s.out, "%s since %s; last contact %s\n", link, stamp(state.Since), stamp(state.LastContact))
	fmt.Fprintf(s.out, "%s; %d runs active, %d queued, %d with events to deliver\n",
		state.Mode, state.ActiveRuns, state.QueuedRuns, state.WaitingRuns)
	if state.Error != "" {
		fmt.Fprintln(s.out, controller.OneLine(state.Error))
	}
	return exitOK
}

// stop orders the emergency stop and waits for it (connector.md row 19).
func (o *connectOptions) stop(s *streams) int {
	if err := connector.Stop(o.file.Dir, true); err != nil {
		return fail(s, "connect", err)
	}
	for deadline := time.Now().Add(stopWait); ; time.Sleep(connectEvery / 4) {
		state, runs, err := o.readState()
		switch {
		case err != nil:
			return fail(s, "connect", err)
		case !runs:
			fmt.Fprintln(s.out, "no connector is running; one that is started takes no work until --resume")
			return exitOK
		case state.Mode == connector.ModeStopped && state.ActiveRuns == 0 && state.QueuedRuns == 0:
			fmt.Fprintln(s.out, "every run has ended; new work is refused until --resume")
			return exitOK
		case time.Now().After(deadline):
			return fail(s, "connect", fmt.Errorf("%d runs have not ended within %s", state.ActiveRuns, stopWait))
		}
	}
}

// metrics is what is told on loopback.
func (o *connectOptions) metrics(c *connector.Connector) metrics.Config {
	return metrics.Config{
		Addr: o.file.MetricsAddr,
		Doors: []metrics.Door{{Name: "connector", State: func() bridge.LinkState {
			s := c.State()
			return bridge.LinkState{
				Connected: s.Connected, Since: s.Since, LastContact: s.LastContact, Connections: s.Sessions, Error: s.Error,
			}
		}}},
		Families: func() []metrics.Family {
			s := c.State()
			one := func(name, help string, value float64) metrics.Family {
				return metrics.Family{Name: name, Help: help, Kind: metrics.Gauge, Samples: []metrics.Sample{{Value: value}}}
			}
			runs := metrics.Family{Name: "prp_connector_runs", Help: "Runs of the connector.", Kind: metrics.Gauge}
			for _, of := range []struct {
				state string
				n     int
			}{{"active", s.ActiveRuns}, {"queued", s.QueuedRuns}, {"undelivered", s.WaitingRuns}} {
				runs.Samples = append(runs.Samples, metrics.Sample{
					Labels: []metrics.Label{{Name: "state", Value: of.state}}, Value: float64(of.n),
				})
			}
			serving := 0.0
			if s.Mode == connector.ModeServing {
				serving = 1
			}
			return []metrics.Family{
				runs,
				one("prp_connector_spool_bytes", "Bytes of events that the server has not acknowledged.", float64(s.SpoolBytes)),
				one("prp_connector_serving", "1 where new work is taken.", serving),
			}
		},
	}
}
