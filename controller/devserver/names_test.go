package devserver

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestNamesAreComparedExactly: a member in other letters is not known, so that a
// door that mistypes one is found out here.
func TestNamesAreComparedExactly(t *testing.T) {
	worker := parseFrame([]byte(`{"status":"success","STATUS":"error","command_id":"c","Command_Id":"d","seq":1,"SEQ":2}`))
	if worker.Kind != OnResult || worker.Status != "success" || worker.ID != "c" || worker.Seq != 1 {
		t.Errorf("the frame of a worker is %+v", worker)
	}
	f := parseConnectorFrame([]byte(`{"type":"run_event","Type":"register","seq":1,"Seq":2,"payload":{"from_seq":3,"From_Seq":4}}`))
	if f.Type != "run_event" || f.Seq != 1 || f.fromSeq != 3 {
		t.Errorf("the frame of a connector is %+v", f)
	}
	for _, frame := range []string{`{"TYPE":"register"}`, `{"Id":"x","TYPE":"register"}`} {
		if f := parseConnectorFrame([]byte(frame)); f.Type != "" || f.ID != "" {
			t.Errorf("%s: %+v", frame, f)
		}
	}
	const claim = `{"Status":"RUNNING","STATUS":"RUNNING"}`
	if kind := kindOf("PATCH", "", []byte(claim)); kind != OnEnd {
		t.Errorf("%s is %q", claim, kind)
	}
	r := &run{}
	if r.stream([]byte(`{"Delta":"x"}`)); r.text.Len() > 0 {
		t.Error("a delta in other letters is taken")
	}
	runs, connector := NewTaskRuns(TaskRunsConfig{}), NewConnector(ConnectorConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // an order that is taken is followed
	defer cancel()
	defer runs.Close()
	defer connector.Close()
	for _, path := range []string{SubmitPath, MessagesPath, ShellPath} {
		body := map[string]string{
			SubmitPath: `{"Input":"x"}`, MessagesPath: `{"Session_Id":"s"}`, ShellPath: `{"frame":null,"Frame":{"type":"stop"},"sent":true}`,
		}[path]
		handler, want := connector.ServeHTTP, 400
		switch path {
		case SubmitPath:
			handler = runs.ServeHTTP
		case ShellPath:
			handler, want = connector.shell, 200 // without the frame, so that nobody is needed who gets it
		}
		answer := httptest.NewRecorder()
		handler(answer, httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(body)))
		if answer.Code != want {
			t.Errorf("%s %s: status %d, want %d: %s", path, body, answer.Code, want, answer.Body)
		}
	}
}
