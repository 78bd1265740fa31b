package devserver

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// asked is a server with a connector that asks a question. What is sent to the
// connector goes to send.
func asked(t *testing.T, send func(frame []byte) error) (c *Connector, ask func(), approve func() (status int)) {
	t.Helper()
	c = NewConnector(ConnectorConfig{})
	t.Cleanup(c.Close)
	p := &peer{number: 1, write: send}
	c.enter(p)
	ask = func() {
		c.take(p, parseConnectorFrame([]byte(`{"type":"approval_request","id":"q","run_id":"r","request_id":"one"}`)))
	}
	ask()
	return c, ask, func() int {
		answer := httptest.NewRecorder()
		order := `{"frame":{"type":"approval_granted","approval_id":"a","approved_by":"p"},"sent":true}`
		c.shell(answer, httptest.NewRequestWithContext(t.Context(), "POST", ShellPath, strings.NewReader(order)))
		return answer.Code
	}
}

// TestDecisionThatIsNotSent: a question whose answer could not be sent still waits.
func TestDecisionThatIsNotSent(t *testing.T) {
	t.Parallel()
	fault := errors.New("the link is lost")
	_, _, approve := asked(t, func([]byte) error { return fault })
	if status := approve(); status != 502 {
		t.Fatalf("status %d", status)
	}
	if fault = nil; approve() != 200 {
		t.Error("nobody can answer the question any more")
	}
	if status := approve(); status != 503 {
		t.Errorf("it is answered twice: status %d", status)
	}
}

// TestDecisionThatIsLost: connector.md row 12. A question that is asked again with
// the same id after a reconnect has not got its answer, and waits again.
func TestDecisionThatIsLost(t *testing.T) {
	t.Parallel()
	_, ask, approve := asked(t, func([]byte) error { return nil })
	if status := approve(); status != 200 {
		t.Fatalf("status %d", status)
	}
	if ask(); approve() != 200 {
		t.Error("nobody can answer the question that is asked again")
	}
	if status := approve(); status != 503 {
		t.Errorf("it is answered twice: status %d", status)
	}
}
