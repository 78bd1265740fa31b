package connector

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDecodeFrame: what a server may send, and the code of what it may not
// (rows 1, 2, 7, 8, 15).
func TestDecodeFrame(t *testing.T) {
	create := func(more string) string {
		return `{"type":"create_run","id":"1","run_id":"r","agent_id":"a","goal":"g"` + more + `}`
	}
	for _, c := range []struct {
		frame, kind string
		code        Code
		field       string
	}{
		{`{"type":"register_ack","connector_id":"c","server_time":"t","config":{"x":1},"acked":{"r":3}}`, typeRegisterAck, 0, ""},
		{`{"type":"heartbeat_ack"}`, typeHeartbeatAck, 0, ""},
		{create(""), typeCreateRun, 0, ""},
		{create(`,"constraints":{"max_tokens":1,"timeout_seconds":2.5,"tools":["a"]},"context_bundle":{"artifacts":["x"]}`), typeCreateRun, 0, ""},
		{`{"type":"cancel_run","run_id":"r"}`, typeCancelRun, 0, ""},
		{`{"type":"event_ack","run_id":"r","seq":3}`, typeEventAck, 0, ""},
		{`{"type":"approval_granted","approval_id":"a","approved_by":"p"}`, typeApprovalGranted, 0, ""},
		{`{"type":"approval_denied","request_id":"q","reason":"no"}`, typeApprovalDenied, 0, ""},
		{`{"type":"handoff_ack","handoff_id":"h","status":"accepted"}`, typeHandoffAck, 0, ""},
		{`{"upload_url":"https://x/y","artifact_id":"z"}`, typeUploadURL, 0, ""},
		{`{"download_url":"https://x/y"}`, typeDownloadURL, 0, ""},
		{`{"type":"error","code":4006,"message":"m","run_id":"r"}`, typeError, 0, ""},

		{`not json`, "", CodeInvalid, ""},
		{`[]`, "", CodeInvalid, ""},
		{`null`, "", CodeInvalid, ""},
		{`{"type":"a","type":"b"}`, "", CodeInvalid, ""},
		{`{}`, "", CodeInvalid, "type"},
		{`{"type":7}`, "", CodeInvalid, "type"},
		{`{"type":"run_me"}`, "", CodeUnknownType, ""},
		{`{"type":"heartbeat"}`, "", CodeUnknownType, ""},
		{`{"type":"cancel_run"}`, "", CodeInvalid, "run_id"},
		{`{"type":"cancel_run","run_id":null}`, "", CodeInvalid, "run_id"},
		{`{"type":"event_ack","run_id":"r","seq":"3"}`, "", CodeInvalid, "seq"},
		{`{"type":"event_ack","run_id":"r","seq":-3}`, "", CodeInvalid, "seq"},
		{`{"type":"create_run","run_id":"r","agent_id":"a"}`, "", CodeInvalid, "goal"},
		{`{"type":"create_run","run_id":"","agent_id":"a","goal":"g"}`, "", CodeInvalid, "run_id"},
		{`{"type":"create_run","run_id":"` + strings.Repeat("r", maxID+1) + `","agent_id":"a","goal":"g"}`, "", CodeInvalid, "run_id"},
		{create(`,"constraints":[]`), "", CodeInvalid, "constraints"},
		{create(`,"constraints":{"max_tokens":-1}`), "", CodeInvalid, "constraints.max_tokens"},
		{create(`,"constraints":{"timeout_seconds":-1}`), "", CodeInvalid, "constraints.timeout_seconds"},
		{create(`,"constraints":{"timeout_seconds":1e9}`), "", CodeInvalid, "constraints.timeout_seconds"},
		{create(`,"context_bundle":7`), "", CodeInvalid, "context_bundle"},
		{create(`,"context_bundle":{"x":"` + strings.Repeat("x", maxContext) + `"}`), "", CodeInvalid, "context_bundle"},
		{create(`,"context_bundle":{"artifacts":[` + strings.Repeat(`"a",`, 100) + `"a"]}`), "", CodeInvalid, "context_bundle.artifacts"},
	} {
		in := decodeFrame([]byte(c.frame))
		switch {
		case c.code == 0 && (in.bad != nil || in.kind != c.kind):
			t.Errorf("%.120s: %q, %v", c.frame, in.kind, in.bad)
		case c.code != 0 && (in.bad == nil || in.bad.Code != c.code || c.field != "" && in.bad.Details["field"] != c.field):
			t.Errorf("%.120s: %+v, want %d for %q", c.frame, in.bad, c.code, c.field)
		}
	}
}

// TestRetryable: which errors may be tried again, and when (row 15).
func TestRetryable(t *testing.T) {
	for code, want := range map[Code]string{
		CodeInvalid: "false 0", CodeUnknownType: "false 0", CodeAgentNotFound: "false 0", CodeRunNotFound: "false 0",
		CodeBusy: "true 60", CodeQuota: "false 0", CodeUnauthorized: "false 0", CodeDenied: "false 0",
		CodeInternal: "true 0", CodeAdapter: "true 0",
	} {
		e := fault(code, "x")
		if got := fmt.Sprint(e.Retryable, e.RetryAfterS); got != want {
			t.Errorf("%d: %s, want %s", code, got, want)
		}
	}
}

// TestDigest: the id of one try and the order of members do not count; every
// other difference does (row 7).
func TestDigest(t *testing.T) {
	digest := func(frame string) string { return decodeFrame([]byte(frame)).create.digest }
	base := digest(`{"type":"create_run","id":"1","run_id":"r","agent_id":"a","goal":"g"}`)
	if same := digest(`{"goal":"g", "type":"create_run","run_id":"r","id":"2","agent_id":"a"}`); same != base {
		t.Error("the same request has another digest")
	}
	others := []string{
		`{"type":"create_run","id":"1","run_id":"r","agent_id":"a","goal":"h"}`,
		`{"type":"create_run","id":"1","run_id":"r","agent_id":"b","goal":"g"}`,
		`{"type":"create_run","id":"1","run_id":"r","agent_id":"a","goal":"g","constraints":{"max_tokens":1}}`,
	}
	if slices.ContainsFunc(others, func(f string) bool { return digest(f) == base }) {
		t.Error("another request has the same digest")
	}
}

// TestLimit: timeout_seconds as a duration, over its whole range (row 8).
func TestLimit(t *testing.T) {
	for given, want := range map[float64]time.Duration{0: 0, 1e-9: time.Millisecond, 2.5: 2500 * time.Millisecond, 604800: 7 * 24 * time.Hour} {
		if got := (constraints{TimeoutSeconds: given}).limit(); got != want {
			t.Errorf("%g s is %s, want %s", given, got, want)
		}
	}
}

// TestNames: a member in other letters is not the one that is meant, in a frame of
// a server as in a payload of a harness (prp.md section 1).
func TestNames(t *testing.T) {
	frame := func(text string) inbound {
		t.Helper()
		in := decodeFrame([]byte(text))
		if in.bad != nil {
			t.Errorf("%s: %v", text, in.bad)
		}
		return in
	}
	if in := frame(`{"type":"event_ack","run_id":"r","Seq":3}`); in.seq != 0 {
		t.Errorf("Seq is %d", in.seq)
	}
	if in := frame(`{"type":"approval_granted","approval_id":"a","Approval_ID":"b","request_id":"q","REQUEST_ID":"x"}`); in.answer.ApprovalID != "a" || in.answer.RequestID != "q" {
		t.Errorf("the answer is %+v", in.answer)
	}
	if in := frame(`{"type":"error","code":4005,"Code":4006,"message":"m"}`); in.err.Code != CodeBusy {
		t.Errorf("the error is %v", in.err)
	}
	if in := frame(`{"type":"register_ack","Config":{"max_frame_bytes":1},"config":{"Max_Concurrent_Runs":1}}`); in.ack.Config != (serverConfig{}) {
		t.Errorf("the configuration is %+v", in.ack.Config)
	}
	in := frame(`{"type":"create_run","run_id":"r","agent_id":"a","goal":"g","context_bundle":{"Artifacts":["x"]},"constraints":{"Timeout_Seconds":1,"tools":["a"],"TOOLS":[]}}`)
	if c := in.create; c == nil || c.Artifacts != nil || c.Constraints.TimeoutSeconds != 0 || len(c.Constraints.Tools) != 1 {
		t.Errorf("the run is %+v", c)
	}
	tr := newTranslation(nil)
	tr.proposed(members{"result": []byte(`{"summary":"s","Summary":"x","artifacts":[{}],"ARTIFACTS":[]}`)})
	if tr.summary != "s" || len(tr.artifacts) != 1 {
		t.Errorf("the summary is %q, with %d artifacts", tr.summary, len(tr.artifacts))
	}
}
