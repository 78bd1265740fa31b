package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"prp/controller/bridge"
	"prp/controller/workerclient"
)

// resendMost is the longest wait between two tries to report.
const resendMost = 15 * time.Second

// maxKeptAge is how long the report of another run is kept.
const maxKeptAge = 30 * 24 * time.Hour

// kept is a report on disk.
type kept struct {
	TaskRunID string                           `json:"task_run_id"`
	Report    workerclient.PatchTaskRunRequest `json:"report"`
}

func (w *worker) keptPath(id string) string {
	return filepath.Join(w.cfg.Dir, reportsDir, fileName(id)+".json")
}

// keep writes a report to disk, as a whole or not at all.
func (w *worker) keep(k kept) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	path := w.keptPath(k.TaskRunID)
	f, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// deliver reports a terminal status. It is on disk until the server has it, so
// that the next start sends what this one could not (row 5).
func (w *worker) deliver(ctx context.Context, id string, r workerclient.PatchTaskRunRequest) error {
	// A disk that is full does not keep the report from the server.
	keepErr := w.keep(kept{id, r})
	if keepErr != nil {
		w.say("the report is not on disk: %s", keepErr)
	}
	err := w.send(ctx, id, r)
	if err == nil {
		os.Remove(w.keptPath(id))
		return nil
	}
	if keepErr == nil {
		return fmt.Errorf("unreported, and kept in %s: %w", w.keptPath(id), err)
	}
	return fmt.Errorf("unreported: %w", err)
}

// send tries to report within the report's time, which a signal shortens (rows
// 4 and 5).
func (w *worker) send(ctx context.Context, id string, r workerclient.PatchTaskRunRequest) error {
	within, cancel := bounded(ctx, w.cfg.Times.Report, w.cfg.Times.ReportSignalled)
	defer cancel()
	for wait := w.cfg.Times.Resend; ; wait = min(2*wait, resendMost) {
		err := w.cfg.Updater.PatchTaskRun(within, id, r)
		if err == nil || !workerclient.Temporary(err) {
			return err
		}
		if within.Err() != nil || bridge.Pause(within, max(wait, retryAfter(err))) != nil {
			return err
		}
		w.say("%s; trying again", err)
	}
}

// bounded is a context that ends after a time, or a shorter one after the end of
// ctx.
func bounded(ctx context.Context, d, short time.Duration) (context.Context, context.CancelFunc) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	unhook := context.AfterFunc(ctx, func() {
		if bridge.Pause(within, short) == nil {
			cancel()
		}
	})
	return within, func() {
		unhook()
		cancel()
	}
}

// sendKept sends reports that earlier processes left. found tells that there
// was one for this run, which is not worked on again.
func (w *worker) sendKept(ctx context.Context) (outcome Outcome, found bool, err error) {
	dir := filepath.Join(w.cfg.Dir, reportsDir)
	list, err := os.ReadDir(dir)
	if err != nil {
		return Unreported, false, err
	}
	away := false
	for _, entry := range list {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		k, err := readKept(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // another process has delivered it
		case err != nil:
			w.say("%s: %s", entry.Name(), err)
		case k.TaskRunID != w.cfg.TaskRunID:
			// A server that is away is not asked for each of them: the run of
			// this process waits.
			away = away || !w.sendOther(ctx, path, k)
		default:
			found = true
			if outcome, err = w.sendOwn(ctx, path, k); err != nil {
				return outcome, true, err
			}
		}
	}
	return outcome, found, nil
}

// sendOwn sends the kept report of this run, and forgets it where the server has
// it or will never have it.
func (w *worker) sendOwn(ctx context.Context, path string, k kept) (Outcome, error) {
	err := w.send(ctx, k.TaskRunID, k.Report)
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		err = fmt.Errorf("the kept report is dropped: %w", err)
		os.Remove(path)
	}
	if err != nil {
		return Unreported, err
	}
	os.Remove(path)
	return Reported, nil
}

// sendOther tries once to send the report of another run; false is a server that
// does not answer. Its token may be another one, so that a refusal says nothing;
// only an old report that is refused is dropped.
func (w *worker) sendOther(ctx context.Context, path string, k kept) (answered bool) {
	err := w.cfg.Updater.PatchTaskRun(ctx, k.TaskRunID, k.Report)
	if err == nil {
		os.Remove(path)
		return true
	}
	if workerclient.Temporary(err) {
		w.say("a report of another run stays: %s", err)
		return statusOf(err) != 0
	}
	if info, statErr := os.Stat(path); statErr == nil && time.Since(info.ModTime()) > maxKeptAge {
		w.say("a report is dropped after %s: %s", maxKeptAge, err)
		os.Remove(path)
		return true
	}
	w.say("a report of another run stays: %s", err)
	return true
}

func readKept(path string) (kept, error) {
	var k kept
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	return k, err
}
