//go:build unix

package connector

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"prp/controller"
	"prp/controller/artifact"
	"prp/controller/awaittest"
	"prp/controller/bridge"
	"prp/controller/devserver"
	"prp/controller/identity"
	"prp/controller/identity/identitytest"
	"prp/controller/programstest"
)

// hang is far longer than anything here takes, also on a loaded machine.
const hang = 60 * time.Second

// programs are the runner and the harness.
var programs = programstest.Of("prp-runner", "prp-harness")

// role makes the test binary a connector: its configuration as JSON.
const role = "PRP_TEST_CONNECTOR"

func TestMain(m *testing.M) {
	if raw, ok := os.LookupEnv(role); ok {
		os.Unsetenv(role)
		os.Exit(connectorMain(raw))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(programs.Main(m))
}

// place is all that a connector needs to know, also in a process of its own.
type place struct {
	URL, Poll, CA, Cert, Key, Token, Dir, Programs string
	Agents                                         []Agent
	Secrets                                        []string
	Socket                                         time.Duration
}

func connectorMain(raw string) int {
	var p place
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		panic(err)
	}
	cfg, err := p.config()
	if err != nil {
		panic(err)
	}
	c, err := New(cfg)
	if err != nil {
		panic(err)
	}
	signals := make(chan os.Signal, 1)
	ossignal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		c.Drain()
	}()
	if err := c.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const connectorID = "connector-of-the-test"

// config is a connector whose times are short where no test says otherwise.
func (p place) config() (Config, error) {
	cert, err := identity.NewCertificate(identity.CertificateConfig{CertFile: p.Cert, KeyFile: p.Key})
	if err != nil {
		return Config{}, err
	}
	token, err := identity.NewToken(identity.TokenConfig{File: p.Token, Subject: connectorID, RenewEvery: 20 * time.Millisecond})
	if err != nil {
		return Config{}, err
	}
	secured, err := bridge.TLS{CAFile: p.CA}.Config()
	if err != nil {
		return Config{}, err
	}
	cert.Use(secured)
	moves, err := artifact.New(artifact.Config{CAFile: p.CA, Backoff: bridge.Backoff{Steps: []time.Duration{5 * time.Millisecond}}})
	if err != nil {
		return Config{}, err
	}
	return Config{
		ID: connectorID, Version: "0.1.0", Host: "TEST-1", Agents: p.Agents, Dir: p.Dir,
		// Scripts do not heed run.cancel, so that the grace is always used up.
		Runner: []string{filepath.Join(p.Programs, "prp-runner"), "--cancel-grace-ms", "50", "--shutdown-grace-ms", "300"}, Env: controller.SmallEnv("GORACE"),
		Artifacts: moves, Renewed: token.Renewed, PollURL: p.Poll, Secrets: p.Secrets,
		Link: bridge.LinkConfig{
			URL: p.URL, Client: bridge.NewClient(secured), Token: token.Get,
			PingEvery: time.Second, PongWait: 20 * time.Second,
			Backoff: bridge.Backoff{Steps: []time.Duration{5 * time.Millisecond}},
		},
		Times: Times{Heartbeat: time.Second, HeartbeatAnswer: 20 * time.Second, Poll: time.Second, Socket: p.Socket},
	}, nil
}

// world is a server over TLS, and a connector that talks to it.
type world struct {
	t      testing.TB
	ctx    context.Context
	kit    *identitytest.Kit
	server *devserver.Connector
	http   *httptest.Server
	place  place
	cfg    Config
	conn   *Connector
	stop   context.CancelFunc
	ended  chan error
	next   int

	mu         sync.Mutex
	reports    []string
	extensions string // that the connector has offered
}

// settle starts a server that wants a certificate and a token.
func settle(t testing.TB, cfg devserver.ConnectorConfig) *world {
	t.Helper()
	return settleFor(t, cfg, hang)
}

// settleFor is settle for a test that may take so long.
func settleFor(t testing.TB, cfg devserver.ConnectorConfig, limit time.Duration) *world {
	t.Helper()
	dir := programs.Dir(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, kit: identitytest.New(t)}
	if cfg.Verify == nil {
		cfg.Verify = func(r *http.Request) (string, error) {
			if len(r.TLS.PeerCertificates) == 0 {
				return "", errors.New("expected a client certificate")
			}
			w.mu.Lock()
			w.extensions = r.Header.Get("Sec-WebSocket-Extensions")
			w.mu.Unlock()
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			return w.kit.Verify(token, time.Now())
		}
	}
	// The store is another host, which knows neither certificate nor token.
	store := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.server.ServeHTTP(rw, r) }))
	store.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes
	store.TLS = w.kit.Server()
	store.TLS.ClientAuth = tls.NoClientCert
	store.StartTLS()
	t.Cleanup(store.Close)
	cfg.Base = store.URL
	w.server = devserver.NewConnector(cfg)
	w.http = httptest.NewUnstartedServer(w.server)
	w.http.Config.ErrorLog = store.Config.ErrorLog
	w.http.TLS = w.kit.Server()
	w.http.StartTLS()
	t.Cleanup(func() {
		w.server.Close()
		w.http.CloseClientConnections()
		w.http.Close()
	})
	w.place = place{
		URL: w.http.URL + devserver.ConnectorPath, Poll: w.http.URL + devserver.MessagesPath, CA: w.kit.CAFile(),
		Token: w.kit.TokenFile("token", connectorID, time.Hour), Dir: t.TempDir(), Programs: dir,
	}
	w.place.Cert, w.place.Key = w.kit.Client("client")
	w.agent("happy", "happy-path")
	var err error
	if w.cfg, err = w.place.config(); err != nil {
		t.Fatal(err)
	}
	return w
}

// agent offers an agent that plays a script: its name, or its steps.
func (w *world) agent(id, script string, change ...func(*Agent)) {
	w.t.Helper()
	if strings.HasPrefix(script, "[") {
		file := filepath.Join(w.t.TempDir(), id+".json")
		text := fmt.Sprintf(`{"schema":"paperclip.fake_harness.script.v1","name":%q,"steps":%s}`, id, script)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
		script = file
	}
	a := Agent{
		AgentID: id, Runtime: "fake", Model: "none", Tools: []string{"terminal", "file"}, Supports: []string{"streaming", "cancellation"},
		Harness: filepath.Join(w.place.Programs, "prp-harness") + " fake --delay-ms 0 --script " + script, MaxConcurrentRuns: 4,
	}
	for _, f := range change {
		f(&a)
	}
	w.place.Agents = append(w.place.Agents, a)
	w.cfg.Agents = w.place.Agents
}

// start starts a connector in this process.
func (w *world) start() *world {
	w.t.Helper()
	w.cfg.Report = func(text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reports = append(w.reports, text)
	}
	c, err := New(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.ctx)
	w.conn, w.stop, w.ended = c, stop, make(chan error, 1)
	ended := w.ended
	go func() { ended <- c.Run(ctx) }()
	w.t.Cleanup(w.end)
	return w
}

// end ends the connector and waits for it.
func (w *world) end() {
	if w.stop == nil {
		return
	}
	w.stop()
	w.stop = nil
	if err := awaittest.Came(w.t, "the end of the connector", w.ended); !errors.Is(err, context.Canceled) && w.ctx.Err() == nil {
		w.t.Errorf("the connector ended with %v", err)
	}
	// A frame to the session that has ended would be lost.
	_ = w.server.Await(w.ctx, func() bool { return !w.server.Registered() })
}

// returned waits for the end of Run by itself.
func (w *world) returned() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		w.stop()
		w.stop = nil
		return err
	case <-w.ctx.Done():
		w.t.Fatalf("the connector has not ended; it reported %q", w.reported())
		return nil
	}
}

func (w *world) reported() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.reports...)
}

// ready is a server and a connector with defaults.
func ready(t testing.TB) *world { return settle(t, devserver.ConnectorConfig{}).start() }

// frame sends a frame of the server once a connector is registered.
func (w *world) frame(format string, args ...any) {
	w.t.Helper()
	w.until("a registered connector", w.server.Registered)
	if err := w.server.Send(fmt.Appendf(nil, format, args...)); err != nil {
		w.t.Fatal(err)
	}
}

// create asks for a run and returns its id.
func (w *world) create(agent string, more ...string) string {
	w.t.Helper()
	w.next++
	id := fmt.Sprintf("run_%d", w.next)
	w.frame(`{"type":"create_run","id":"create_%d","run_id":%q,"agent_id":%q,"goal":"the goal"%s}`, w.next, id, agent, strings.Join(more, ""))
	return id
}

// until waits until the server has seen something.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	if err := w.server.Await(w.ctx, ok); err != nil {
		w.t.Fatalf("waited in vain for %s: %v; the connector reported %q; the server has seen %s", what, err, w.reported(), w.seen())
	}
}

// seen lists the frames that came, shortly.
func (w *world) seen() string {
	var b strings.Builder
	for _, f := range w.server.Frames() {
		if f.Type != "heartbeat" {
			fmt.Fprintf(&b, "\n  %d %.300s", f.Session, f.Raw)
		}
	}
	return b.String()
}

// got waits for a frame of a type about a run, or with a reply_to.
func (w *world) got(kind, about string) map[string]any {
	w.t.Helper()
	var found devserver.ConnectorFrame
	w.until(kind+" for "+about, func() bool {
		for _, f := range w.server.Frames() {
			if f.Type == kind && (f.RunID == about || f.ReplyTo == about || about == "") {
				found = f
				return true
			}
		}
		return false
	})
	return object(w.t, found.Raw)
}

func object(t testing.TB, raw []byte) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// count is how many frames of a type came about a run.
func (w *world) count(kind, about string) (n int) {
	for _, f := range w.server.Frames() {
		if f.Type == kind && (f.RunID == about || f.ReplyTo == about || about == "") {
			n++
		}
	}
	return n
}

// over waits for the completion of a run and returns its events and the payload
// of the completion. It checks what holds for every run: numbers from 1 without a
// gap, event ids, one completion, last.
func (w *world) over(run string) (events []runEvent, end map[string]any) {
	w.t.Helper()
	w.until("the completion of "+run, func() bool { return w.server.Over(run) })
	list, _, faults := w.server.Delivered(run)
	if len(faults) > 0 {
		w.t.Errorf("%s: the server found %q", run, faults)
	}
	source := 0
	for i, f := range list {
		var ev runEvent
		if err := json.Unmarshal(f.Raw, &ev); err != nil {
			w.t.Fatal(err)
		}
		if ev.RunID != run || ev.Seq != int64(i+1) || ev.EventID != fmt.Sprintf("%s_%d", run, i+1) {
			w.t.Errorf("%s: event %d is %.200s", run, i+1, f.Raw)
		}
		if at, err := time.Parse(time.RFC3339, ev.Timestamp); err != nil || at.Location() != time.UTC {
			w.t.Errorf("%s: %q is no time in UTC", run, ev.Timestamp)
		}
		if warnedOf(ev) == "events_lost" {
			if from := string(ev.Payload["from_source_seq"]); from != fmt.Sprint(source+1) {
				w.t.Errorf("%s: events of the run are lost from %s on, want %d", run, from, source+1)
			}
			if err := json.Unmarshal(ev.Payload["to_source_seq"], &source); err != nil {
				w.t.Error(err)
			}
		}
		if raw := ev.Payload["source_seq"]; raw != nil {
			if source++; string(raw) != fmt.Sprint(source) {
				w.t.Errorf("%s: event %d comes from event %s of the run, want %d", run, ev.Seq, raw, source)
			}
		}
		events = append(events, ev)
	}
	return events, object(w.t, marshal(events[len(events)-1].Payload))
}

// kinds are the kinds of events.
func kinds(events []runEvent) string {
	var list []string
	for _, ev := range events {
		list = append(list, string(ev.Event))
	}
	return strings.Join(list, " ")
}

// warned tells whether there is a warning with a code.
func warned(events []runEvent, code string) bool {
	return slices.ContainsFunc(events, func(ev runEvent) bool { return warnedOf(ev) == code })
}

// warnedOf is the code of a warning, empty where an event is none.
func warnedOf(ev runEvent) string {
	if ev.Event != kindWarning {
		return ""
	}
	return unquoted(ev.Payload["code"])
}
