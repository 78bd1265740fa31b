//go:build unix

package connector

import (
	"strings"
	"testing"
	"time"

	"prp/controller/devserver"
)

// TestLostOnce: a lost link is told in plain words, each cause once, with the
// HTTPS fallback as well; the state has the newest.
func TestLostOnce(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.cfg.Times.Socket = 5 * time.Millisecond // a WebSocket is tried all the time
	w.start()
	w.until("the connector", w.server.Registered)
	if err := w.http.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	w.server.Quit(0)
	await := func(what string, ok func() bool) {
		for !ok() {
			if w.ctx.Err() != nil {
				t.Fatalf("waited in vain for %s; it says %q", what, w.reported())
			}
			time.Sleep(time.Millisecond)
		}
	}
	await("the fallback", func() bool { return strings.Contains(w.conn.State().Error, "HTTPS fallback") })
	before := w.conn.link.State().Attempts
	await("more attempts", func() bool { return w.conn.link.State().Attempts > before+10 })
	const nobody = "no server is listening at "
	want := []string{
		"connected by websocket",
		"not connected: the server has ", // closed or cut the connection: what is on its way decides
		"not connected: cannot connect: " + nobody,
		"not connected: cannot reach the HTTPS fallback: " + nobody,
	}
	told := w.reported()
	for i, text := range told {
		if i >= len(want) || !strings.HasPrefix(text, want[i]) {
			t.Fatalf("it says %q, want these beginnings: %q", told, want)
		}
	}
	if s := w.conn.State(); len(told) != len(want) || s.Connected || !strings.Contains(s.Error, "HTTPS fallback: "+nobody) {
		t.Errorf("it says %q, and the state is %+v", told, s)
	}
}
