package devserver

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestNoPoll: a connector that has registered by HTTPS and ended before its first
// poll is not taken for one that is there.
func TestNoPoll(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	c := NewConnector(ConnectorConfig{})
	defer c.Close()
	post := func(cursor, messages string) int {
		body := `{"session_id":"s","cursor":` + cursor + `,"messages":[` + messages + `]}`
		answer := httptest.NewRecorder()
		c.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, "POST", MessagesPath, strings.NewReader(body)))
		return answer.Code
	}
	if status := post("0", `{"type":"register","id":"1","connector_id":"c"}`); status != 200 || !c.Registered() {
		t.Fatalf("status %d, registered %v", status, c.Registered())
	}
	if err := c.Await(ctx, func() bool { return !c.Registered() }); err != nil {
		t.Fatal("it is there for ever")
	}
	// One that was only slow is back with its next call.
	if status := post("1", `{"type":"heartbeat","id":"2"}`); status != 200 || !c.Registered() {
		t.Errorf("status %d, registered %v", status, c.Registered())
	}
}
