//go:build unix

package connector

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"prp/controller/bridge"
	"prp/controller/devserver"
	"prp/controller/identity/identitytest"
)

// TestIdentity: a certificate and a token are both required; what is wrong is
// told before or at the first connection, and clearly (row 18).
func TestIdentity(t *testing.T) {
	t.Parallel()
	stranger := identitytest.New(t)
	for _, c := range []struct {
		name   string
		change func(w *world) // of the files
		local  string         // what the connector finds itself
		told   string         // what it tells after a connection
		ends   bool
	}{
		{name: "a certificate that has expired", change: func(w *world) { w.place.Cert, w.place.Key = w.kit.Expired("client") }, local: "not valid now"},
		{name: "a certificate that is not yet valid", change: func(w *world) { w.place.Cert, w.place.Key = w.kit.NotYet("client") }, local: "valid"},
		{name: "a certificate of another CA", change: func(w *world) { w.place.Cert, w.place.Key = stranger.Client("other") }, told: "certificate"},
		{name: "no certificate", change: func(w *world) { w.place.Cert = "/nowhere" }, local: "/nowhere"},
		{name: "a token that has expired", change: func(w *world) { w.place.Token = w.kit.TokenFile("old", connectorID, -time.Hour) }, local: "not valid now"},
		{name: "a token of another connector", change: func(w *world) { w.place.Token = w.kit.TokenFile("o", "somebody", time.Hour) }, local: "somebody"},
		{name: "a token of another issuer", change: func(w *world) { w.place.Token = stranger.TokenFile("t", connectorID, time.Hour) }, ends: true},
		{name: "no token", change: func(w *world) { w.place.Token = "/nowhere" }, local: "/nowhere"},
		{name: "a server of another CA", change: func(w *world) { w.place.CA = stranger.CAFile() }, told: "certificate"},
	} {
		w := settle(t, devserver.ConnectorConfig{})
		c.change(w)
		cfg, err := w.place.config()
		switch {
		case c.local != "":
			if err == nil || !strings.Contains(err.Error(), c.local) {
				t.Errorf("%s: %v, want an error with %q", c.name, err, c.local)
			}
			continue
		case err != nil:
			t.Fatalf("%s: %v", c.name, err)
		}
		w.cfg = cfg
		w.start()
		if c.ends {
			if err := w.returned(); !errors.Is(err, ErrRefused) {
				t.Errorf("%s: the connector ended with %v", c.name, err)
			}
			continue
		}
		for !slices.ContainsFunc(w.reported(), func(s string) bool { return strings.Contains(s, c.told) }) {
			if w.ctx.Err() != nil {
				t.Fatalf("%s: the operator was told %q", c.name, w.reported())
			}
			time.Sleep(time.Millisecond)
		}
		if w.server.Registered() {
			t.Errorf("%s: it is registered", c.name)
		}
	}
}

// TestServerWantsBoth: the reference server itself lets nobody in who lacks one
// of the two.
func TestServerWantsBoth(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	for _, c := range []struct {
		name   string
		cert   bool
		token  string
		status int
	}{{"no token", true, "", http.StatusUnauthorized}, {"a wrong token", true, "x.y.z", http.StatusUnauthorized}, {"no certificate", false, "x", 0}} {
		files := bridge.TLS{CAFile: w.place.CA}
		if c.cert {
			files.CertFile, files.KeyFile = w.place.Cert, w.place.Key
		}
		client, err := files.Client()
		if err != nil {
			t.Fatal(err)
		}
		link, err := bridge.NewLink(bridge.LinkConfig{URL: w.place.URL, Client: client, Token: func() (string, error) { return c.token, nil }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = link.Connect(w.ctx)
		if got := statusOfHTTP(err); err == nil || got != c.status {
			t.Errorf("%s: %v, want status %d", c.name, err, c.status)
		}
	}
}

// TestSubject: the id in register has to be that of the token (row 18).
func TestSubject(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.cfg.ID = "somebody-else"
	w.start()
	if err := w.returned(); !errors.Is(err, ErrRefused) {
		t.Errorf("the connector ended with %v", err)
	}
}

// TestRenewal: a token and a certificate are renewed while a run goes on: the
// session is made anew with both, and nothing is lost (row 18).
func TestRenewal(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("waits", waits)
	// So short a life that it is to be renewed at once.
	w.place.Token = w.kit.TokenFile("short", connectorID, 30*time.Second)
	cfg, err := w.place.config()
	if err != nil {
		t.Fatal(err)
	}
	w.cfg = cfg
	w.start()
	run := w.create("waits")
	w.until("the run", func() bool { events, _, _ := w.server.Delivered(run); return len(events) > 8 })
	if n := w.count("register", ""); n != 1 {
		t.Errorf("there were %d sessions before there was a new token", n)
	}
	w.kit.Client("client")
	w.kit.TokenFile("short", connectorID, time.Hour)
	w.until("a session with the new token", func() bool { return w.count("capabilities", "") == 2 })
	w.frame(`{"type":"cancel_run","id":"c","run_id":%q}`, run)
	w.over(run)
	if n := w.count("register", ""); n != 2 {
		t.Errorf("there were %d sessions, want 2", n)
	}
}

// TestTokensMasked: what an agent says of a token is masked, of the one before
// and of the one that replaced it while the connector was going (remote.md rule
// 7, row 18).
func TestTokensMasked(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	text := func(path string) string {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(raw))
	}
	w.place.Token = w.kit.TokenFile("short", connectorID, 30*time.Second)
	first, second := text(w.place.Token), text(w.kit.TokenFile("next", connectorID, time.Hour))
	w.agent("tells", fmt.Sprintf(`[{"kind":"event","event_type":"item.started","item_id":"i","payload":{"kind":"command","command":"echo %s %s"}},%s]`, first, second, result))
	cfg, err := w.place.config()
	if err != nil {
		t.Fatal(err)
	}
	w.cfg = cfg
	w.start()
	w.until("a connector", w.server.Registered)
	w.kit.File("short.jwt", second)
	w.until("a session with the new token", func() bool { return w.count("register", "") == 2 && w.server.Registered() })
	events, _ := w.over(w.create("tells"))
	if all := string(marshal(events)); strings.Contains(all, first) || strings.Contains(all, second) || !strings.Contains(all, "echo [masked] [masked]") {
		t.Errorf("the events are %s", all)
	}
}
