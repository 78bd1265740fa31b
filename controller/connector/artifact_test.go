//go:build unix

package connector

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/controller/devserver"
)

// withArtifacts is a script whose result names artifacts.
func withArtifacts(list string) string {
	return "[" + strings.Replace(result, `"artifacts":[]`, `"artifacts":[`+list+`]`, 1) + "]"
}

// TestUpload: an artifact of the result is sent to the URL that the server gives,
// and told with its size and hash, before the completion (row 14).
func TestUpload(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	dir := t.TempDir()
	text := strings.Repeat("a,b\n", 50_000)
	for _, name := range []string{"results.csv", "second"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.agent("makes", "["+`{"kind":"event","event_type":"interaction.artifact","payload":{"path":"second"}},`+
		withArtifacts(`{"path":"results.csv","name":"results.csv","content_type":"text/csv"},{"kind":"url"}`)[1:], func(a *Agent) { a.Cwd = dir })
	w.start()
	run := w.create("makes")
	_, end := w.over(run)
	if end["status"] != "succeeded" {
		t.Errorf("the completion is %v", end)
	}
	for _, name := range []string{"results.csv", "second"} {
		if body, ok := w.server.Object(name); !ok || string(body) != text {
			t.Errorf("%s has %d bytes, want %d", name, len(body), len(text))
		}
	}
	ask := w.got("upload_artifact", run)
	if ask["size_bytes"] != float64(len(text)) || ask["run_id"] != run {
		t.Errorf("upload_artifact is %v", ask)
	}
	told := w.got("artifact_uploaded", run)
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); told["sha256"] != sum || told["size_bytes"] != float64(len(text)) || told["artifact_id"] == "" {
		t.Errorf("artifact_uploaded is %v", told)
	}
	if n := w.count("artifact_uploaded", run); n != 2 {
		t.Errorf("%d artifacts were told, want 2", n)
	}
}

// TestUploadedLost: artifact_uploaded is told again where it was lost with the
// link, and not where the server has it (row 14).
func TestUploadedLost(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("artifact_uploaded", 1, devserver.Drop)}})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.agent("makes", withArtifacts(`{"path":"f"}`), func(a *Agent) { a.Cwd = dir })
	w.cfg.Times.Heartbeat = 20 * time.Millisecond
	w.start()
	run := w.create("makes")
	w.got("artifact_uploaded", run)
	w.over(run)
	w.toldOnce("artifact_uploaded", run)
}

// TestUploadFails: a failed upload is a warning, never the run's failure (row 14,
// remote.md rule 8).
func TestUploadFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		rules      []devserver.Rule
	}{
		{"the store fails", "f", []devserver.Rule{rule("put", 0, "http-503")}},
		{"the server gives no URL", "f", []devserver.Rule{rule("upload_artifact", 0, "error-4007")}},
		{"the server is silent", "f", []devserver.Rule{rule("upload_artifact", 0, devserver.Mute)}},
		{"the file is missing", "nothing", nil},
		{"the file is outside", outside, nil},
		{"the file is outside by a link", "link", nil},
	} {
		w := settle(t, devserver.ConnectorConfig{Rules: c.rules})
		w.agent("makes", withArtifacts(fmt.Sprintf(`{"path":%q}`, c.path)), func(a *Agent) { a.Cwd = dir })
		w.cfg.Times.URL = 300 * time.Millisecond
		w.start()
		events, end := w.over(w.create("makes"))
		if end["status"] != "succeeded" || !warned(events, "artifact_not_uploaded") {
			t.Errorf("%s: the completion is %v, the events are %s", c.name, end, kinds(events))
		}
	}
}

// TestUploadSlow: a store that never takes an artifact keeps the completion back
// for so long and no longer, and the run has succeeded (row 14).
func TestUploadSlow(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("put", 0, devserver.Hang)}})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.agent("makes", withArtifacts(`{"path":"f"}`), func(a *Agent) { a.Cwd = dir })
	w.cfg.Times.Upload = 100 * time.Millisecond
	w.start()
	run := w.create("makes")
	events, end := w.over(run)
	if end["status"] != "succeeded" || !warned(events, "artifact_not_uploaded") || !strings.Contains(string(marshal(events)), errSlowUpload.Error()) {
		t.Errorf("the completion is %v, the events are %s", end, marshal(events))
	}
	if n := w.count("artifact_uploaded", run); n != 0 {
		t.Errorf("%d artifacts were told", n)
	}
}

// TestUploadNewURL: a URL that is refused is replaced by a new one (row 14).
func TestUploadNewURL(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("put", 1, "http-403")}})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.agent("makes", withArtifacts(`{"path":"f"}`), func(a *Agent) { a.Cwd = dir })
	w.start()
	run := w.create("makes")
	events, _ := w.over(run)
	if body, ok := w.server.Object("f"); !ok || string(body) != "text" || warned(events, "artifact_not_uploaded") {
		t.Errorf("the artifact is %q, the events are %s", body, kinds(events))
	}
	if n := w.count("upload_artifact", run); n != 2 {
		t.Errorf("%d URLs were asked for, want 2", n)
	}
}

// TestDownload: the artifacts of the context_bundle are files before the turn
// starts; one that cannot be had is told to both sides (row 14).
func TestDownload(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.server.PutObject("artifact-id-1", []byte("the input"))
	copied := filepath.Join(t.TempDir(), "copy")
	script := filepath.Join(t.TempDir(), "harness")
	text := `#!/bin/sh
echo '{"schema":"paperclip.harness.message.v1","messageSeq":1,"type":"ready","payload":{"version":"1"}}'
while read -r line; do case "$line" in *turn.start*)
	printf '%s\n' "$line" > ` + copied + `.turn
	cat "$(printf '%s' "$line" | sed 's/.*"path":"\([^"]*\)".*/\1/')" > ` + copied + `
	exit 0;; esac; done
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	w.agent("takes", "happy-path", func(a *Agent) { a.Harness = script })
	w.start()
	run := w.create("takes", `,"context_bundle":{"artifacts":["artifact-id-1","nothing"]}`)
	events, _ := w.over(run)
	if !warned(events, "artifact_not_downloaded") {
		t.Errorf("the events are %s", kinds(events))
	}
	if raw, err := os.ReadFile(copied); string(raw) != "the input" {
		t.Errorf("the harness has read %q, %v", raw, err)
	}
	turn, err := os.ReadFile(copied + ".turn")
	if err != nil || !strings.Contains(string(turn), `"artifact_id":"nothing","error":"4001: there is no such artifact"`) {
		t.Errorf("the turn is %s, %v", turn, err)
	}
}

// TestDownloadSlow: the time of a run counts from its start: a store that never
// gives an artifact does not keep it from its end (row 8).
func TestDownloadSlow(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("get", 0, devserver.Hang)}})
	w.server.PutObject("a1", []byte("the input"))
	w.start()
	events, end := w.over(w.create("happy", `,"context_bundle":{"artifacts":["a1"]},"constraints":{"timeout_seconds":0.3}`))
	if e, _ := end["error"].(map[string]any); end["status"] != "failed" || e["reason"] != "run_timed_out" || e["code"] != 5002.0 {
		t.Errorf("the completion is %v", end)
	}
	if strings.Contains(kinds(events), "progress") {
		t.Errorf("the run was begun: %s", kinds(events))
	}
}

// onTheWay is a script that names an artifact and waits.
const onTheWay = `[{"kind":"event","event_type":"interaction.artifact","payload":{"path":"f"}},{"kind":"await_interrupt"}]`

// TestUploadKilled: where the connector is killed, the server is told of each
// artifact all the same: of one that it has, and of one of which that is not known
// (row 14, remote.md rules 4 and 8).
func TestUploadKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		rule         devserver.Rule
		ends         bool // the run is over when the connector dies
		told         bool
	}{
		{"on its way", onTheWay, rule("put", 0, devserver.Hang), false, false},
		{"not told", onTheWay, rule("artifact_uploaded", 0, devserver.Drop), false, true},
		{"not told, and the run is over", withArtifacts(`{"path":"f"}`), rule("artifact_uploaded", 0, devserver.Drop), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{c.rule}})
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.agent("makes", c.script, func(a *Agent) { a.Cwd = dir })
			child := w.child()
			run := w.create("makes")
			w.until(c.rule.On, func() bool { return w.server.Called(c.rule.On) > 0 })
			for c.ends && !strings.Contains(w.spoolText(), `"`+endKey) && w.ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond) // nobody tells
			}
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = child.Wait() // it was killed
			w.server.Misbehave()
			w.start()
			events, _ := w.over(run)
			if c.told {
				w.got("artifact_uploaded", run)
			}
			if warned(events, codeNotUploaded) == c.told || w.count("artifact_uploaded", run) > 1 {
				t.Errorf("%d are told, and the events are %s", w.count("artifact_uploaded", run), marshal(events))
			}
		})
	}
}

// spoolText is what the connector keeps of the events of its runs.
func (w *world) spoolText() string {
	files, _ := filepath.Glob(filepath.Join(w.place.Dir, runsDir, "*", eventsFile)) // the pattern is good
	var all strings.Builder
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			w.t.Error(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestUploadMany: of many artifacts a few are on their way at a time, and of too
// many the rest is told once.
func TestUploadMany(t *testing.T) {
	t.Parallel()
	list := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf(`{"path":"f%d"}`, i))
		}
		return withArtifacts(strings.Join(names, ","))
	}
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("upload_artifact", 0, devserver.Mute)}})
	dir := t.TempDir()
	const some = 20
	for i := range some {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.agent("some", list(some), func(a *Agent) { a.Cwd = dir })
	w.agent("many", list(maxUploads+5), func(a *Agent) { a.Cwd = t.TempDir() })
	w.start()
	run := w.create("some")
	w.until("requests for URLs", func() bool { return w.count("upload_artifact", run) >= uploadsAtOnce })
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, run) // else they are waited for
	events, _ := w.over(run)
	warnings := func(events []runEvent) (n int) {
		for _, ev := range events {
			if warnedOf(ev) == codeNotUploaded {
				n++
			}
		}
		return n
	}
	if n := w.count("upload_artifact", run); n != uploadsAtOnce || warnings(events) != some {
		t.Errorf("%d of %d were asked for at once, and %d warned of", n, some, warnings(events))
	}
	if events, _ := w.over(w.create("many")); warnings(events) != maxUploads+1 {
		t.Errorf("%d of %d were warned of", warnings(events), maxUploads+5)
	}
}

// TestUploadedThenDrain: what the server has of a run with an artifact when a drain
// is over is not told again by the next start (issue point 5, row 14).
func TestUploadedThenDrain(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.agent("makes", withArtifacts(`{"path":"f"}`), func(a *Agent) { a.Cwd = dir })
	w.cfg.Times.Heartbeat = time.Hour // only a drain asks before
	w.start()
	run := w.create("makes")
	w.over(run)
	w.conn.Drain()
	if err := w.returned(); err != nil {
		t.Errorf("the connector ended with %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(w.cfg.Dir, runsDir)); err != nil || len(left) > 0 {
		t.Errorf("the folders of runs are %v, %v", left, err)
	}
	w.until("nobody", func() bool { return !w.server.Registered() })
	w.start()
	w.over(w.create("happy"))
	if n := w.count("artifact_uploaded", run); n != 1 {
		t.Errorf("artifact_uploaded came %d times", n)
	}
}
