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
	state, runs, err := o.order(true, orderWait, func(state connectState) bool {
		return state.Mode == connector.ModeStopped && state.ActiveRuns == 0 && state.QueuedRuns == 0
	})
	switch {
	case errors.Is(err, errNotObeyed):
		return fail(s, "connect", fmt.Errorf("%d runs have not ended within %s", state.ActiveRuns+state.QueuedRuns, orderWait))
	case err != nil:
		return fail(s, "connect", err)
	case !runs:
		fmt.Fprintln(s.out, "no connector is running; one that is started takes no work until --resume")
	default:
		fmt.Fprintln(s.out, "every run has ended; new work is refused until --resume")
	}
	return exitOK
}

// goOn takes the emergency stop back and waits until new work is taken.
func (o *connectOptions) goOn(s *streams) int {
	state, runs, err := o.order(false, orderWait, func(state connectState) bool { return state.Mode != connector.ModeStopped })
	switch {
	case errors.Is(err, errNotObeyed):
		return fail(s, "connect", fmt.Errorf("the connector has not taken new work again within %s: look at what it says, or start it anew", orderWait))
	case err != nil:
		return fail(s, "connect", err)
	case !runs:
		fmt.Fprintln(s.out, "no connector is running; one that is started takes work")
	case state.Mode == connector.ModeDraining:
		fmt.Fprintln(s.out, "the connector is draining and takes no new work; one that is started takes work")
	default:
		fmt.Fprintln(s.out, "new work is taken again")
	}
	return exitOK
}

// errNotObeyed is a connector that runs and has not done what it was ordered to.
var errNotObeyed = errors.New("the connector has not obeyed in time")

// order writes the emergency stop down, or takes it back, and waits until the
// connector says that it is done. What it said before the order tells nothing.
// runs is false where no connector runs; past the patience the error is
// [errNotObeyed].
func (o *connectOptions) order(stop bool, patience time.Duration, done func(connectState) bool) (state connectState, runs bool, err error) {
	if err := connector.Stop(o.file.Dir, stop); err != nil {
		return state, false, err
	}
	ordered := time.Now()
	for deadline := ordered.Add(patience); ; time.Sleep(connectEvery / 4) {
		state, runs, err = o.readState()
		switch {
		case err != nil || !runs || state.At.After(ordered) && done(state):
			return state, runs, err
		case time.Now().After(deadline):
			return state, runs, errNotObeyed
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
