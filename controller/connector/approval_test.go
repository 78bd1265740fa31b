//go:build unix

package connector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"prp/controller/devserver"
)

// asking is a script that asks so many times for a permission.
func asking(times int) string {
	var steps []string
	for i := range times {
		steps = append(steps, fmt.Sprintf(`{"kind":"request","request":{"schema":"paperclip.runtime_request.v1","requestKind":"runtime",`+
			`"requestId":"q%d","type":"permission","status":"pending","prompt":"rm -rf /tmp/build","Prompt":"ls /tmp/build",`+ // names are compared exactly
			`"choices":[{"key":"always","kind":"allow_always","Kind":"allow_once"},{"key":"yes-once","kind":"allow_once"},{"key":"never","kind":"reject_once"}]}},`+
			`{"kind":"await_resolution","request_id":"q%d"}`, i+1, i+1))
	}
	return "[" + strings.Join(steps, ",") + "," + result + "]"
}

// decision is what the harness was told about a question.
func (w *world) decision(run, question string) string {
	w.t.Helper()
	found := ""
	w.until("the answer to "+question, func() bool {
		events, _, _ := w.server.Delivered(run)
		for _, f := range events {
			p, _ := object(w.t, f.Raw)["payload"].(map[string]any)
			if p["source_event"] == "runtime_request.resolved" && p["requestId"] == question {
				k, _ := p["response"].(map[string]any)
				found = fmt.Sprint(k["decision"])
				return true
			}
		}
		return false
	})
	return found
}

// TestApproval: a permission request of the harness is an approval_request; a
// grant or a denial reaches the harness as the choice for this once (row 12).
func TestApproval(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("asks", asking(3))
	w.start()
	run := w.create("asks")
	ask := w.got("approval_request", run)
	if ask["action"] != "rm -rf /tmp/build" || ask["risk_level"] != "high" || ask["request_id"] != run+":q1" || len(ask["arguments_digest"].(string)) != 64 {
		t.Errorf("approval_request is %v", ask)
	}
	at, err := time.Parse(time.RFC3339, ask["expires_at"].(string))
	if left := time.Until(at); err != nil || left < 4*time.Minute || left > 5*time.Minute {
		t.Errorf("it expires in %s", left)
	}
	// By request_id.
	w.frame(`{"type":"approval_granted","approval_id":"a1","request_id":%q,"approved_by":"p"}`, run+":q1")
	if got := w.decision(run, "q1"); got != "yes-once" {
		t.Errorf("granted was told as %q", got)
	}
	// The same once more, also with the id for another question, grants nothing.
	w.until("the second question", func() bool { return w.count("approval_request", run) == 2 })
	w.frame(`{"type":"approval_granted","approval_id":"a1","request_id":%q,"approved_by":"p"}`, run+":q1")
	w.frame(`{"type":"approval_granted","id":"x","approval_id":"a1","request_id":%q,"approved_by":"p"}`, run+":q2")
	if got := w.got("error", "x"); got["code"] != 4007.0 {
		t.Errorf("an approval that was used is answered with %v", got)
	}
	w.frame(`{"type":"approval_granted","id":"y","approval_id":"a1","approved_by":"p"}`)
	if got := w.got("error", "y"); got["code"] != 4007.0 {
		t.Errorf("an approval that was used is answered with %v", got)
	}
	// For other arguments.
	w.frame(`{"type":"approval_granted","id":"z","approval_id":"a2","request_id":%q,"arguments_digest":"0"}`, run+":q2")
	if got := w.got("error", "z"); got["code"] != 4007.0 {
		t.Errorf("an approval of other arguments is answered with %v", got)
	}
	w.frame(`{"type":"approval_granted","id":"n","approval_id":"a3","request_id":"nothing"}`)
	if got := w.got("error", "n"); got["code"] != 4001.0 {
		t.Errorf("an approval of nothing is answered with %v", got)
	}
	w.frame(`{"type":"approval_denied","request_id":%q,"reason":"too dangerous"}`, run+":q2")
	if got := w.decision(run, "q2"); got != "never" {
		t.Errorf("denied was told as %q", got)
	}
	// The seed's form: the only one that waits.
	w.until("the third question", func() bool { return w.count("approval_request", run) == 3 })
	w.frame(`{"type":"approval_granted","approval_id":"a4","approved_by":"user@example.com"}`)
	if got := w.decision(run, "q3"); got != "yes-once" {
		t.Errorf("granted was told as %q", got)
	}
	events, _ := w.over(run)
	if !warned(events, "approval_denied") {
		t.Errorf("the denial is not among the events: %s", kinds(events))
	}
}

// TestApprovalTwoRuns: of two questions an answer without a request_id means
// none (row 12).
func TestApprovalTwoRuns(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("asks", asking(1))
	w.start()
	first, second := w.create("asks"), w.create("asks")
	w.got("approval_request", first)
	w.got("approval_request", second)
	w.frame(`{"type":"approval_granted","id":"x","approval_id":"a1"}`)
	if got := w.got("error", "x"); got["code"] != 4001.0 {
		t.Errorf("it is answered with %v", got)
	}
	w.frame(`{"type":"approval_granted","approval_id":"a1","run_id":%q}`, second)
	if got := w.decision(second, "q1"); got != "yes-once" {
		t.Errorf("granted was told as %q", got)
	}
	w.frame(`{"type":"approval_denied","run_id":%q}`, first)
	if got := w.decision(first, "q1"); got != "never" {
		t.Errorf("denied was told as %q", got)
	}
}

// TestApprovalOverRestart: an approval that was used grants nothing more after a
// restart of the connector (row 12).
func TestApprovalOverRestart(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("asks", asking(1))
	w.start()
	first := w.create("asks")
	w.got("approval_request", first)
	w.frame(`{"type":"approval_granted","approval_id":"a1","request_id":%q}`, first+":q1")
	w.over(first)
	w.end()
	w.start()
	second := w.create("asks")
	w.got("approval_request", second)
	w.frame(`{"type":"approval_granted","id":"same","approval_id":"a1","request_id":%q}`, first+":q1")
	w.frame(`{"type":"approval_granted","id":"other","approval_id":"a1","request_id":%q}`, second+":q1")
	w.frame(`{"type":"approval_granted","id":"only","approval_id":"a1"}`)
	for _, id := range []string{"other", "only"} {
		if got := w.got("error", id); got["code"] != 4007.0 {
			t.Errorf("%s: an approval that was used is answered with %v", id, got)
		}
	}
	w.frame(`{"type":"approval_denied","request_id":%q}`, second+":q1")
	if got := w.decision(second, "q1"); got != "never" {
		t.Errorf("the second question was answered with %q", got)
	}
	w.over(second)
}

// TestApprovalExpires: no answer is a denial, never a grant (row 12).
func TestApprovalExpires(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("asks", asking(1))
	w.cfg.Times.Approval = 50 * time.Millisecond
	w.start()
	run := w.create("asks")
	w.got("approval_request", run)
	if got := w.decision(run, "q1"); got != "never" {
		t.Errorf("the end of time was told as %q", got)
	}
	w.over(run)
	w.frame(`{"type":"approval_granted","id":"late","approval_id":"a","request_id":%q}`, run+":q1")
	if got := w.got("error", "late"); got["code"] != 4001.0 {
		t.Errorf("a late grant is answered with %v", got)
	}
}

// TestApprovalDeniedByError: error 4008 denies (row 12); it is not asked again
// (row 15).
func TestApprovalDeniedByError(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("approval_request", 0, "error-4008")}})
	w.agent("asks", asking(1))
	w.start()
	run := w.create("asks")
	if got := w.decision(run, "q1"); got != "never" {
		t.Errorf("4008 was told as %q", got)
	}
	w.over(run)
	if n := w.count("approval_request", run); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestApprovalOverReconnect: a question that waits is asked again with the same
// id; a grant that comes then counts, once (row 12).
func TestApprovalOverReconnect(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("asks", asking(1))
	w.start()
	run := w.create("asks")
	first := w.got("approval_request", run)
	w.server.Quit(0)
	w.until("the question once more", func() bool { return w.count("approval_request", run) == 2 })
	for _, f := range w.server.Frames() {
		if f.Type == "approval_request" && (f.ID != first["id"] || object(t, f.Raw)["request_id"] != first["request_id"]) {
			t.Errorf("it was asked again as %s", f.Raw)
		}
	}
	w.frame(`{"type":"approval_granted","approval_id":"a","reply_to":%q}`, first["id"])
	if got := w.decision(run, "q1"); got != "yes-once" {
		t.Errorf("granted was told as %q", got)
	}
	w.over(run)
}

// TestRepeatedErrors: 5001 and 5002 are repeated three times at once, 4005 after
// its time, and 4001 never (row 15).
func TestRepeatedErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		do    string
		asked int
	}{{"error-5001", 4}, {"error-5002", 4}, {"error-4001", 1}, {"error-4007", 1}} {
		w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("approval_request", 0, c.do)}})
		w.agent("asks", asking(1))
		w.start()
		run := w.create("asks")
		if got := w.decision(run, "q1"); got != "never" {
			t.Errorf("%s was told as %q", c.do, got)
		}
		if n := w.count("approval_request", run); n != c.asked {
			t.Errorf("%s: it was asked %d times, want %d", c.do, n, c.asked)
		}
	}
	w := settle(t, devserver.ConnectorConfig{Rules: []devserver.Rule{rule("approval_request", 1, "error-4005")}})
	w.agent("asks", asking(1))
	w.cfg.Times.Busy = 300 * time.Millisecond
	w.start()
	run := w.create("asks")
	w.got("approval_request", run)
	began := time.Now()
	w.until("the question once more", func() bool { return w.count("approval_request", run) == 2 })
	if waited := time.Since(began); waited < 200*time.Millisecond {
		t.Errorf("it was asked again after %s", waited)
	}
	w.frame(`{"type":"approval_granted","approval_id":"a"}`)
	w.over(run)
}

// TestInput: a text that nobody can give is answered, and the run goes on.
func TestInput(t *testing.T) {
	t.Parallel()
	w := settle(t, devserver.ConnectorConfig{})
	w.agent("asks", "permission-input")
	w.start()
	run := w.create("asks")
	w.got("approval_request", run)
	w.frame(`{"type":"approval_granted","approval_id":"a"}`)
	events, end := w.over(run)
	if end["status"] != "succeeded" || !warned(events, "input_not_available") {
		t.Errorf("the completion is %v, the events are %s", end, kinds(events))
	}
	if got := w.decision(run, "request_permission"); got != "allow" {
		t.Errorf("granted was told as %q", got)
	}
}
