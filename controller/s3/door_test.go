package s3_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller/artifact"
	"prp/controller/bridge"
	"prp/controller/connector"
	"prp/controller/connector/connectortest"
	"prp/controller/devserver"
	"prp/controller/programstest"
	"prp/controller/s3"
)

// door is a connector at a server whose artifacts are in the real store.
type door struct {
	*connectortest.Door
	t    *testing.T
	cwd  string
	runs int

	mu sync.Mutex
	// spoil are what the next URLs are made with; after them all are good.
	spoil []func(method, key string) (string, error)
	urls  int
}

// openDoor starts both. The agent "makes" names the file "f" as an artifact of
// its result, "takes" copies its first input to the file "copy".
func openDoor(t *testing.T, programs string, store *s3.Store) *door {
	t.Helper()
	d := &door{t: t, cwd: t.TempDir()}
	server := devserver.NewConnector(devserver.ConnectorConfig{Presign: func(method, key string) (string, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.urls++
		if len(d.spoil) > 0 {
			bad := d.spoil[0]
			d.spoil = d.spoil[1:]
			return bad(method, key)
		}
		return store.Presign(method, key, artifact.DefaultLife)
	}})
	const hang = 2 * time.Minute // far longer than all of it takes
	d.Door = connectortest.Open(t, hang, server, d.config(programs))
	return d
}

// programs builds the runner and the harness.
func programs(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("an agent is a shell script")
	}
	p := programstest.Of("prp-runner", "prp-harness")
	t.Cleanup(p.Remove)
	return p.Dir(t)
}

func (d *door) config(programs string) connector.Config {
	d.t.Helper()
	write := func(name, text string) string {
		path := filepath.Join(programs, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			d.t.Fatal(err)
		}
		return path
	}
	makes := write("makes.json", `{"schema":"paperclip.fake_harness.script.v1","name":"makes","steps":[{"kind":"result","payload":`+
		`{"schema":"paperclip.run_result.v1","reportedWorkDisposition":"done","summary":"done",`+
		`"completionClaim":{"contractRevision":"1","objectiveSatisfied":true,"criteria":[],"remainingWork":[]},`+
		`"evidence":[],"verification":[],"attentionRequests":[],"artifacts":[{"path":"f","content_type":"text/csv"}]}}]}`)
	takes := write("takes", `#!/bin/sh
echo '{"schema":"paperclip.harness.message.v1","messageSeq":1,"type":"ready","payload":{"version":"1"}}'
while read -r line; do case "$line" in *turn.start*)
	cp "$(printf '%s' "$line" | sed 's/.*"path":"\([^"]*\)".*/\1/')" copy
	exit 0;; esac; done
`)
	moves, err := artifact.New(artifact.Config{Tries: 2, Backoff: bridge.Backoff{Steps: []time.Duration{time.Millisecond}}})
	if err != nil {
		d.t.Fatal(err)
	}
	return connector.Config{
		Artifacts: moves, Runner: []string{filepath.Join(programs, "prp-runner")},
		Agents: []connector.Agent{
			{AgentID: "makes", Runtime: "fake", Cwd: d.cwd, Harness: filepath.Join(programs, "prp-harness") + " fake --delay-ms 0 --script " + makes},
			{AgentID: "takes", Runtime: "sh", Cwd: d.cwd, Harness: takes},
		},
	}
}

// play has a run executed to its end, and returns its completion, and all of its
// frames as text.
func (d *door) play(agent string, artifacts ...string) (status, said string) {
	d.t.Helper()
	d.runs++
	run := fmt.Sprintf("run_%d", d.runs)
	list, _ := json.Marshal(append([]string{}, artifacts...)) // only texts
	d.Send(`{"type":"create_run","id":"c_%s","run_id":%q,"agent_id":%q,"goal":"g","context_bundle":{"artifacts":%s}}`, run, run, agent, list)
	d.Until("the completion of "+run, func() bool { return d.Server.Over(run) })
	var b strings.Builder
	for _, f := range d.Server.Frames() {
		if f.RunID == run {
			fmt.Fprintf(&b, "%s\n", f.Raw)
		}
	}
	events, _, _ := d.Server.Delivered(run)
	var end struct{ Payload struct{ Status string } }
	if err := json.Unmarshal(events[len(events)-1].Raw, &end); err != nil {
		d.t.Fatal(err)
	}
	return end.Payload.Status, b.String()
}

// uploaded is the last artifact that was told; empty where there is none.
func (d *door) uploaded() (id string, sum artifact.Sum) {
	d.t.Helper()
	for _, f := range d.Server.Frames() {
		if f.Type != "artifact_uploaded" {
			continue
		}
		var m struct {
			artifact.Sum
			ArtifactID string `json:"artifact_id"`
		}
		if err := json.Unmarshal(f.Raw, &m); err != nil {
			d.t.Fatal(err)
		}
		id, sum = m.ArtifactID, m.Sum
	}
	return id, sum
}

// throughDoor: artifacts go up and down through the whole connector by URLs of
// the real store: connector.md row 14, remote.md rule 8. The door sends a file as
// one PUT, whatever its size.
func throughDoor(t *testing.T, programs, endpoint string, store *s3.Store) {
	d := openDoor(t, programs, store)
	text := noise(large)
	if err := os.WriteFile(filepath.Join(d.cwd, "f"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, said := d.play("makes"); status != "succeeded" || strings.Contains(said, "artifact_not_uploaded") {
		t.Fatalf("the run has %s: %s", status, said)
	}
	id, sum := d.uploaded()
	if sum != sumOf(text) {
		t.Errorf("artifact_uploaded says %+v, want %+v", sum, sumOf(text))
	}
	if got := read(t, store, id); got != text {
		t.Errorf("the store has %d other bytes", len(got))
	}
	_, said := d.play("takes", id)
	if got, err := os.ReadFile(filepath.Join(d.cwd, "copy")); err != nil || string(got) != text {
		t.Errorf("the harness was given %d other bytes, %v: %s", len(got), err, said)
	}

	expired := open(t, endpoint, func(c *s3.Config) { c.Now = func() time.Time { return time.Now().Add(-time.Hour) } })
	stranger := open(t, endpoint, func(c *s3.Config) { c.SecretKey += "x" })
	for name, bad := range map[string]*s3.Store{"expired": expired, "of a wrong key": stranger} {
		spoiled := func(method, key string) (string, error) { return bad.Presign(method, key, artifact.DefaultLife) }
		// One is replaced by a new one; as many as are asked for are a warning.
		for n, tells := range map[int]int{1: 1, 3: 0} {
			d.spoiled(n, spoiled)
			status, said := d.play("makes")
			if status != "succeeded" || strings.Count(said, `"type":"artifact_uploaded"`) != tells || strings.Contains(said, "artifact_not_uploaded") != (tells == 0) {
				t.Errorf("%d URLs %s: the run has %s: %s", n, name, status, said)
			}
			if asked := strings.Count(said, `"type":"upload_artifact"`); asked != min(n+1, 3) {
				t.Errorf("%d URLs %s: %d were asked for", n, name, asked)
			}
			if strings.Contains(said, "X-Amz") {
				t.Errorf("%d URLs %s: a URL is told: %s", n, name, said)
			}
		}
		d.spoiled(3, spoiled)
		if _, said := d.play("takes", id); !strings.Contains(said, "artifact_not_downloaded") {
			t.Errorf("a download %s: %s", name, said)
		}
	}
}

func (d *door) spoiled(n int, with func(method, key string) (string, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spoil, d.urls = nil, 0
	for range n {
		d.spoil = append(d.spoil, with)
	}
}

// storeGone: a store that is not there any more changes no outcome.
func storeGone(t *testing.T, programs string, store *s3.Store) {
	d := openDoor(t, programs, store)
	if err := os.WriteFile(filepath.Join(d.cwd, "f"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, said := d.play("makes"); status != "succeeded" || !strings.Contains(said, "artifact_not_uploaded") {
		t.Errorf("the run has %s: %s", status, said)
	}
	if id, _ := d.uploaded(); id != "" {
		t.Errorf("%q is told as uploaded", id)
	}
}
