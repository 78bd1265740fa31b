package taskrun

import (
	"context"
	"errors"
	"slices"
)

// confine holds the harness to the tiers of the run (row 10).
func (w *worker) confine(_ context.Context, r *prepared) error {
	r.harness = slices.Clone(w.cfg.Harness)
	if !w.cfg.AllowUnsandboxed {
		return errors.New("this host cannot enforce the tiers of the run")
	}
	return nil
}

func (w *worker) plugins(context.Context, *prepared) error   { return nil }
func (w *worker) workspace(context.Context, *prepared) error { return nil }
func (w *worker) capture(context.Context, *prepared, *facts) {}
