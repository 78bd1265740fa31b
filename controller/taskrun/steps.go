package taskrun

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"prp/controller/bridge"
	"prp/controller/unpack"
	"prp/controller/workerclient"
)

// prepared is what a run is started with.
type prepared struct {
	b *workerclient.WorkerTaskRun
	// dir is the run's private folder, removed at the end; home, temp and
	// pluginsDir lie in it.
	dir, home, temp, pluginsDir string
	// space is the workspace; kept tells that its checkpoints are.
	space   string
	kept    bool
	harness []string
	env     []string
	plugins []installed
}

// installed is a plugin of the run, as it is told to the harness.
type installed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Path    string `json:"path"`
}

// job does the steps of a run in their order, until one fails or ctx ends. The
// order is that of workerclient.md.
func (w *worker) job(ctx context.Context, b *workerclient.WorkerTaskRun) (f facts) {
	r := &prepared{b: b}
	defer func() {
		if r.dir != "" {
			if err := unpack.Remove(r.dir); err != nil {
				w.say("the folder of the run stays: %s", err)
			}
		}
	}()
	steps := []struct {
		name string
		do   func(context.Context, *prepared) error
	}{
		{"secrets", w.secrets},
		{"folders", w.folders},
		{"sandbox", w.confine},
		{"plugins", w.plugins},
		{"workspace", w.workspace},
	}
	if b.PluginError != "" {
		f.fault = b.PluginError
		return f
	}
	for _, s := range steps {
		err := ctx.Err()
		if err == nil {
			err = s.do(ctx, r)
		}
		if err != nil {
			f.fault = w.mask.Load().String(fmt.Sprintf("%s: %s", s.name, err))
			return f
		}
	}
	f = w.launch(ctx, r)
	if ctx.Err() == nil {
		w.capture(ctx, r, &f)
	}
	w.flush(ctx)
	return f
}

// again does a step that the server answers, and tries again where no answer
// comes. An answer is an answer, whatever it says.
func (w *worker) again(ctx context.Context, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		if err == nil || statusOf(err) != 0 || !workerclient.Temporary(err) || try == len(w.cfg.Times.Retry) || bridge.Pause(ctx, w.cfg.Times.Retry[try]) != nil {
			return err
		}
	}
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secrets fetches the secret variables; from here on their values are masked.
func (w *worker) secrets(ctx context.Context, r *prepared) error {
	var env map[string]string
	err := w.again(ctx, func() (err error) {
		env, err = w.cfg.Updater.GetTaskRunSecrets(ctx, w.cfg.TaskRunID)
		return err
	})
	if err != nil {
		return err
	}
	values := slices.Clone(w.cfg.Secrets)
	for name, value := range env {
		if !envName.MatchString(name) || strings.ContainsRune(value, 0) {
			return fmt.Errorf("expected names of letters, digits and _, and values without a NUL, got the name %q", name)
		}
		values = append(values, value)
		r.env = append(r.env, name+"="+value)
	}
	slices.Sort(r.env)
	w.mask.Store(bridge.NewMasker(values))
	return nil
}

// folders makes the private folders of the run and finds its workspace.
func (w *worker) folders(_ context.Context, r *prepared) (err error) {
	if r.dir, err = newRunDir(filepath.Join(w.cfg.Dir, runsDir)); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(r.dir, name) }
	r.home, r.temp, r.pluginsDir = in("home"), in("tmp"), in("plugins")
	r.space = w.cfg.Workspace
	if r.space == "" {
		r.space = filepath.Join(w.cfg.Dir, workspacesDir, fileName(r.b.Task.ID))
		if err := w.takeUp(r); err != nil {
			return err
		}
	}
	for _, dir := range []string{r.home, r.temp, r.pluginsDir, r.space} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	r.space, err = filepath.Abs(r.space)
	return err
}
