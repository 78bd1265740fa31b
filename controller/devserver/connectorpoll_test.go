package devserver

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// polled is a connector's server in a bubble of time, and one that has registered
// there by HTTPS. Post makes a call of it.
func polled(t *testing.T) (c *Connector, post func(cursor, messages string) int) {
	t.Helper()
	c = NewConnector(ConnectorConfig{})
	post = func(cursor, messages string) int {
		body := `{"session_id":"s","cursor":` + cursor + `,"messages":[` + messages + `]}`
		answer := httptest.NewRecorder()
		c.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "POST", MessagesPath, strings.NewReader(body)))
		return answer.Code
	}
	if status := post("0", `{"type":"register","id":"1","connector_id":"c"}`); status != 200 || !c.Registered() {
		t.Fatalf("status %d, registered %v", status, c.Registered())
	}
	return c, post
}

// TestNoPoll: a connector that has registered by HTTPS and ended before its first
// poll is not taken for one that is there.
func TestNoPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, post := polled(t)
		defer c.Close()
		time.Sleep(lease - time.Nanosecond)
		if !c.Registered() {
			t.Error("it is taken for gone too early")
		}
		time.Sleep(2 * time.Nanosecond)
		if c.Registered() {
			t.Error("it is there for ever")
		}
		// One that was only slow is back with its next call.
		if status := post("1", `{"type":"heartbeat","id":"2"}`); status != 200 || !c.Registered() {
			t.Errorf("status %d, registered %v", status, c.Registered())
		}
	})
}

// TestLateLease: a lease whose end waits for the lock while a call begins does not
// take the session away under that call.
func TestLateLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, post := polled(t)
		defer c.Close()
		s := c.polls["s"]
		before := s.calls
		if status := post("1", ""); status != 200 {
			t.Fatalf("status %d", status)
		}
		if c.left(s, before); !c.Registered() {
			t.Error("the end of the lease before ends the session")
		}
		if c.left(s, s.calls); c.Registered() {
			t.Error("the end of its own lease does not end it")
		}
	})
}

// TestCursorBelowZero: a cursor that cannot be is refused.
func TestCursorBelowZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, post := polled(t)
		defer c.Close()
		for _, cursor := range []string{"-1", "-9223372036854775808"} {
			if status := post(cursor, `{"type":"heartbeat","id":"2"}`); status != 400 {
				t.Errorf("cursor %s: status %d", cursor, status)
			}
		}
	})
}
