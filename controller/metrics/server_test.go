package metrics

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"prp/controller/bridge"
)

var contact = time.Date(2026, 7, 20, 12, 0, 0, 500e6, time.UTC)

// doors are one that is connected and one that never was.
func doors() []Door {
	return []Door{
		{"connector", func() bridge.LinkState {
			return bridge.LinkState{Connected: true, Since: contact, LastContact: contact, Attempts: 3, Connections: 2}
		}},
		{"worker", func() bridge.LinkState {
			return bridge.LinkState{Since: contact, Attempts: 7, Error: `dial "x": refused`}
		}},
	}
}

func serve(t *testing.T, cfg Config) string {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-end:
			if err != nil {
				t.Errorf("Serve returns %v", err)
			}
		case <-time.After(time.Minute): // only a hang takes longer
			t.Error("Serve does not return")
		}
	})
	return "http://" + s.Address()
}

func ask(t *testing.T, method, url string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// TestHealth: remote.md rule 2, "each door's state and last contact".
func TestHealth(t *testing.T) {
	url := serve(t, Config{Doors: doors()})
	answer, text := ask(t, http.MethodGet, url+"/healthz", nil)
	const want = `{"status":"degraded","doors":[` +
		`{"door":"connector","state":"connected","since":"2026-07-20T12:00:00.5Z","last_contact":"2026-07-20T12:00:00.5Z"},` +
		`{"door":"worker","state":"disconnected","since":"2026-07-20T12:00:00.5Z","error":"dial \"x\": refused"}]}` + "\n"
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" || text != want {
		t.Errorf("got %s %q\n%s, want\n%s", answer.Status, answer.Header.Get("Content-Type"), text, want)
	}
	for name, list := range map[string][]Door{"all connected": doors()[:1], "no doors": nil} {
		_, text := ask(t, http.MethodGet, serve(t, Config{Doors: list})+"/healthz", nil)
		var page struct {
			Status string
			Doors  []any
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil || page.Status != "ok" || page.Doors == nil {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

// TestMetrics: issue point 5, metrics on a loopback port in Prometheus format.
// What is not known, here a contact that never was, has no sample.
func TestMetrics(t *testing.T) {
	url := serve(t, Config{Doors: doors(), Families: func() []Family {
		return []Family{{Name: "prp_runs_active", Help: "Runs.", Kind: Gauge, Samples: []Sample{{Value: 0}}}}
	}})
	answer, text := ask(t, http.MethodGet, url+"/metrics", nil)
	if got := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("got %s %q", answer.Status, got)
	}
	for _, want := range []string{
		"# TYPE prp_door_connected gauge\nprp_door_connected{door=\"connector\"} 1\nprp_door_connected{door=\"worker\"} 0\n",
		"\nprp_door_last_contact_timestamp_seconds{door=\"connector\"} 1.7845488005e+09\n#",
		"# TYPE prp_door_dials_total counter\nprp_door_dials_total{door=\"connector\"} 3\nprp_door_dials_total{door=\"worker\"} 7\n",
		"\nprp_door_connections_total{door=\"connector\"} 2\n",
		"# TYPE prp_runs_active gauge\nprp_runs_active 0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	for _, name := range []string{"process_resident_memory_bytes ", "process_cpu_seconds_total "} {
		if strings.Contains(text, "\n"+name) != (runtime.GOOS == "linux") {
			t.Errorf("on %s %s is told wrongly:\n%s", runtime.GOOS, name, text)
		}
	}
}

// TestMetricsWrong: a page that a scraper would mistake is an error.
func TestMetricsWrong(t *testing.T) {
	url := serve(t, Config{Families: func() []Family { return []Family{{Name: "a b", Kind: Gauge}} }})
	if answer, text := ask(t, http.MethodGet, url+"/metrics", nil); answer.StatusCode != http.StatusInternalServerError || strings.Contains(text, "# TYPE") {
		t.Errorf("got %s %q", answer.Status, text)
	}
}

// TestGuard: a row for each refusal.
func TestGuard(t *testing.T) {
	url := serve(t, Config{Doors: doors()})
	host := strings.TrimPrefix(url, "http://")
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	as := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	for _, tt := range []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"plain", nil, 200},
		{"localhost", as("LocalHost:9"), 200},
		{"IPv6", as("[::1]:9"), 200},
		{"IPv6 without a port", as("[::1]"), 200},
		{"own origin", header("Origin", url), 200},
		{"typed by the user", header("Sec-Fetch-Site", "none"), 200},
		{"another name", as("rebind.example:9"), 403},
		{"a name that begins like ours", as("localhost.example"), 403},
		{"another address", as("192.168.0.1:9"), 403},
		{"everything", as("0.0.0.0:9"), 403},
		{"another origin", header("Origin", "http://evil.example"), 403},
		{"another port's origin", header("Origin", "http://127.0.0.1:1"), 403},
		{"no origin", header("Origin", "null"), 403},
		{"another site", header("Sec-Fetch-Site", "cross-site"), 403},
		{"another port's page", header("Sec-Fetch-Site", "same-site"), 403},
	} {
		for _, path := range []string{"/healthz", "/metrics"} {
			answer, text := ask(t, http.MethodGet, "http://"+host+path, tt.change)
			if answer.StatusCode != tt.want || tt.want == 403 && strings.Contains(text, "connector") {
				t.Errorf("%s of %s: got %s %q, want %d", path, tt.name, answer.Status, text, tt.want)
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if answer, _ := ask(t, method, url+"/metrics", nil); answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: got %s", method, answer.Status)
		}
	}
	if answer, _ := ask(t, http.MethodGet, url+"/", nil); answer.StatusCode != http.StatusNotFound {
		t.Errorf("another path: got %s", answer.Status)
	}
}

// TestListenLoopbackOnly: no address that others reach is taken.
func TestListenLoopbackOnly(t *testing.T) {
	for _, addr := range []string{"", ":0", "0.0.0.0:0", "[::]:0", "example.com:0", "10.0.0.1:0", "127.0.0.1"} {
		if s, err := Listen(Config{Addr: addr}); err == nil {
			s.listener.Close()
			t.Errorf("%q is taken as %s", addr, s.Address())
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		s, err := Listen(Config{Addr: addr})
		if err != nil {
			t.Errorf("%q: %v", addr, err)
			continue
		}
		s.listener.Close()
	}
}
