package connectortest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"prp/controller"
	"prp/controller/bridge"
	"prp/controller/connector"
	"prp/controller/devserver"
)

// Door is a connector and its server.
type Door struct {
	Server *devserver.Connector

	t   testing.TB
	ctx context.Context
}

// Open starts a connector and waits until the server has it. Config needs agents
// and a runner; names, a folder, a small environment and the link are filled in.
// Limit is far longer than all of the test takes.
func Open(t testing.TB, limit time.Duration, server *devserver.Connector, cfg connector.Config) *Door {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	listener := httptest.NewServer(server)
	cfg.ID, cfg.Version, cfg.Host, cfg.Dir, cfg.Env = "connector", "0.1.0", "TEST-1", t.TempDir(), controller.SmallEnv()
	cfg.Link = bridge.LinkConfig{URL: "ws" + strings.TrimPrefix(listener.URL, "http") + devserver.ConnectorPath}
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
		server.Close()
		listener.CloseClientConnections()
		listener.Close()
	})
	c, err := connector.New(cfg)
	if err != nil {
		close(ended)
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		_ = c.Run(ctx) // it ends with the context
	}()
	d := &Door{Server: server, t: t, ctx: ctx}
	d.Until("a connector", server.Registered)
	return d
}

// Until waits until the server has seen something.
func (d *Door) Until(what string, ok func() bool) {
	d.t.Helper()
	if err := d.Server.Await(d.ctx, ok); err != nil {
		d.t.Fatalf("waited in vain for %s: %v; the server has seen %s", what, err, d.Frames())
	}
}

// Send sends a frame of the server.
func (d *Door) Send(format string, args ...any) {
	d.t.Helper()
	if err := d.Server.Send(fmt.Appendf(nil, format, args...)); err != nil {
		d.t.Fatal(err)
	}
}

// Frames are all frames that came, the beginning of each on a line.
func (d *Door) Frames() string {
	var b strings.Builder
	for _, f := range d.Server.Frames() {
		fmt.Fprintf(&b, "\n%.400s", f.Raw)
	}
	return b.String()
}
