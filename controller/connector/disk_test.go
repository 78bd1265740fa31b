//go:build unix

package connector

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller/devserver"
)

// hidden is a secret of the tests, with characters that every spelling escapes.
const hidden = `sesame-"open"/&7+xyz`

// spelledHidden are the bytes that no file may have.
func spelledHidden() [][]byte {
	inJSON := strings.Trim(string(quoted(hidden)), `"`)
	twice := strings.Trim(string(quoted(inJSON)), `"`)
	list := [][]byte{[]byte(hidden), []byte(inJSON), []byte(twice), []byte(url.QueryEscape(hidden))}
	return append(list, []byte(base64.RawStdEncoding.EncodeToString([]byte(hidden))[:20]))
}

// diskWatch reads all files below a folder again and again.
type diskWatch struct {
	dir  string
	stop chan struct{}
	done sync.WaitGroup

	looks int
	most  int64 // bytes in all files at once
	found []string
}

func watchDisk(dir string) *diskWatch {
	d := &diskWatch{dir: dir, stop: make(chan struct{})}
	d.done.Go(func() {
		for {
			d.look()
			select {
			case <-d.stop:
				d.look()
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	return d
}

// look reads every byte that there is now. What goes meanwhile is gone.
func (d *diskWatch) look() {
	total := int64(0)
	_ = filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		total += int64(len(text))
		for _, secret := range spelledHidden() {
			if bytes.Contains(text, secret) && len(d.found) < 5 {
				d.found = append(d.found, fmt.Sprintf("%s has %q", filepath.Base(path), secret))
			}
		}
		return nil
	})
	d.most = max(d.most, total)
	d.looks++
}

// end stops the watch and tells what it found.
func (d *diskWatch) end(t *testing.T) {
	t.Helper()
	close(d.stop)
	d.done.Wait()
	if d.most == 0 || len(d.found) > 0 {
		t.Errorf("after %d looks at up to %d bytes: on disk is %q", d.looks, d.most, d.found)
	}
}

// tells is a script that says the secret in every way that a harness has.
func tells(last string) string {
	text := string(quoted(hidden))
	half := len(hidden) / 2
	coded := string(quoted(url.QueryEscape(hidden) + " " + base64.StdEncoding.EncodeToString([]byte(hidden))))
	delta := func(piece string) string {
		return `{"kind":"event","event_type":"item.delta","item_id":"i","payload":{"kind":"assistant_message","delta":` + piece + `}},`
	}
	return `[{"kind":"event","event_type":"item.started","item_id":"i","payload":{"kind":"command","command":` + text + `}},` +
		delta(text) + delta(string(quoted("a "+hidden[:half]))) + delta(string(quoted(hidden[half:]+" b"))) + delta(coded) +
		`{"kind":"log","stream":"stderr","text":` + text + `},` +
		`{"kind":"event","event_type":"harness.diagnostic","payload":{"code":"c","message":` + text + `}},` +
		`{"kind":"delay","milliseconds":50},` +
		`{"kind":"event","event_type":"item.completed","item_id":"i","payload":{"kind":"command","command":` + text + `}},` + last + `]`
}

// TestNothingOnDisk: no byte of a secret is on disk at any moment, while a run
// goes on, after it, and after the death of the connector (remote.md rule 7).
func TestNothingOnDisk(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("run_event", 0, devserver.Mute)}})
	slow := func(a *Agent) { a.Harness = strings.Replace(a.Harness, "--delay-ms 0 ", "", 1) }
	told := strings.Replace(result, `"summary":"done"`, `"summary":`+string(quoted("done "+hidden)), 1)
	w.agent("tells", tells(told), slow)
	w.agent("stays", tells(`{"kind":"await_interrupt"}`), slow)
	w.place.Secrets = []string{hidden}
	cfg, err := w.place.config()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Agents, w.cfg = w.cfg.Agents, cfg
	disk := watchDisk(w.place.Dir)
	child := w.child()
	w.over(w.create("tells"))
	stays := w.create("stays")
	w.until("the end of the item", func() bool {
		events, _, _ := w.server.Delivered(stays)
		return len(events) > 0 && strings.Contains(string(events[len(events)-1].Raw), "item.completed")
	})
	// Nothing was acknowledged: all of both runs is there.
	if kept, err := filepath.Glob(filepath.Join(w.place.Dir, runsDir, "*", eventsFile)); err != nil || len(kept) != 2 {
		t.Errorf("the spools are %q, %v", kept, err)
	}
	w.kill(child)
	w.start()
	if _, end := w.over(stays); end["status"] != "cancelled" {
		t.Errorf("the completion is %v", end)
	}
	w.end()
	disk.end(t)
	for _, f := range w.server.Frames() {
		for _, secret := range spelledHidden() {
			if bytes.Contains(f.Raw, secret) {
				t.Errorf("a frame has the secret: %s", f.Raw)
			}
		}
	}
}
