package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/controller/bridge"
	"prp/controller/connector"
	"prp/controller/metrics"
)

// TestConnectMetrics: what the loopback port tells of a connector.
func TestConnectMetrics(t *testing.T) {
	o := &connectOptions{file: connector.File{MetricsAddr: "127.0.0.1:0"}}
	c, err := connector.New(connector.Config{
		ID: "c", Dir: t.TempDir(), Runner: []string{"runner"}, Link: bridge.LinkConfig{URL: "ws://127.0.0.1:1/"},
		Agents: []connector.Agent{{AgentID: "a", Runtime: "r", Harness: "h"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := metrics.Listen(o.metrics(c))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(t.Context()) }()
	get := func(path string) string {
		answer, err := http.Get("http://" + server.Address() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := get("/metrics")
	for _, line := range []string{
		`prp_connector_runs{state="active"} 0`, `prp_connector_runs{state="queued"} 0`, `prp_connector_runs{state="undelivered"} 0`,
		"prp_connector_spool_bytes 0", "prp_connector_serving 1",
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("the metrics have no %q:\n%s", line, page)
		}
	}
	if health := get("/healthz"); !strings.Contains(health, "connector") {
		t.Errorf("the health is %s", health)
	}
}

// TestConnectState: what is written down is believed for a moment only.
func TestConnectState(t *testing.T) {
	o := &connectOptions{file: connector.File{Dir: t.TempDir()}}
	if _, runs, err := o.readState(); runs || err != nil {
		t.Errorf("without a file: %v, %v", runs, err)
	}
	for _, c := range []struct {
		at   time.Time
		runs bool
	}{{time.Now(), true}, {time.Now().Add(-time.Minute), false}, {time.Time{}, false}} {
		o.writeState(connector.State{ConnectorID: "c", ActiveRuns: 3}, c.at)
		state, runs, err := o.readState()
		if err != nil || runs != c.runs || state.ActiveRuns != 3 {
			t.Errorf("written at %s: %+v, %v, %v", c.at, state, runs, err)
		}
	}
}

// TestConnectOrder: an order is waited for until the connector says that it is
// done, and not beyond the bound; what it has said before the order is no answer.
func TestConnectOrder(t *testing.T) {
	const patience = 400 * time.Millisecond
	serving := func(s connectState) bool { return s.Mode == connector.ModeServing }
	for _, c := range []struct {
		name string
		mode connector.Mode
		at   time.Duration // since the order
		want error
	}{
		{"done", connector.ModeServing, time.Minute, nil},
		{"not done", connector.ModeStopped, time.Minute, errNotObeyed},
		{"said before", connector.ModeServing, -time.Second, errNotObeyed},
	} {
		o := &connectOptions{file: connector.File{Dir: t.TempDir()}}
		o.writeState(connector.State{Mode: c.mode}, time.Now().Add(c.at))
		if _, runs, err := o.order(false, patience, serving); !runs || !errors.Is(err, c.want) {
			t.Errorf("%s: runs %v, %v; want %v", c.name, runs, err, c.want)
		}
	}
	o := &connectOptions{file: connector.File{Dir: t.TempDir()}}
	if _, runs, err := o.order(false, patience, serving); runs || err != nil {
		t.Errorf("without a connector: runs %v, %v", runs, err)
	}
}

// TestConnectPaths: paths of a configuration are relative to its folder, and the
// harness "prp harness" is the one inside.
func TestConnectPaths(t *testing.T) {
	dir := t.TempDir()
	text, err := json.Marshal(map[string]any{
		"url": "wss://example.com/x", "ca_file": "ca.pem", "token_file": "/abs/token", "connector_id": "mine",
		"agents": []map[string]any{
			{"agent_id": "a", "runtime": "r", "harness": "prp harness fake --script happy-path", "env_allow": []string{"PRP_TEST_KEY", "PATH"}},
			{"agent_id": "b", "runtime": "r", "harness": "other", "cwd": "work"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "c.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PRP_TEST_KEY", "a secret value")
	o := &connectOptions{config: path}
	if err := o.read(); err != nil {
		t.Fatal(err)
	}
	f := o.file
	if f.CAFile != filepath.Join(dir, "ca.pem") || f.TokenFile != "/abs/token" || f.Dir != filepath.Join(dir, "c.state") ||
		f.Agents[0].Cwd != dir || f.Agents[1].Cwd != filepath.Join(dir, "work") || o.id != "mine" {
		t.Errorf("the configuration is %+v, the id %q", f, o.id)
	}
	var cfg connector.Config
	if err := o.programs(&cfg); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if want := "'" + self + "' harness fake --script happy-path"; cfg.Agents[0].Harness != want || cfg.Agents[1].Harness != "other" {
		t.Errorf("the harnesses are %q and %q", cfg.Agents[0].Harness, cfg.Agents[1].Harness)
	}
	// What is masked is what an agent may see beside the usual.
	if len(cfg.Secrets) != 1 || cfg.Secrets[0] != "a secret value" || !strings.Contains(strings.Join(cfg.Env, "\n"), "PRP_TEST_KEY=a secret value") {
		t.Errorf("the secrets are %q", cfg.Secrets)
	}
}

// TestConnectAlone: a folder is one connector's, whatever state a connector that
// was killed has left in it.
func TestConnectAlone(t *testing.T) {
	o := &connectOptions{file: connector.File{Dir: t.TempDir()}}
	o.writeState(connector.State{ConnectorID: "c"}, time.Now()) // as if one had just died
	release, err := o.alone()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.alone(); err == nil || !strings.Contains(err.Error(), "another connector uses") {
		t.Errorf("a second one: %v", err)
	}
	release()
	release, err = o.alone()
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	release()
}
