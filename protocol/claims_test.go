package protocol

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

const sampleResult = `{"schema":"paperclip.run_result.v1","reportedWorkDisposition":"done","summary":"s","completionClaim":` +
	`{"contractRevision":"7","objectiveSatisfied":true,"criteria":[{"id":1}],"remainingWork":[]},"evidence":[1,"x"],"verification":[],` +
	`"attentionRequests":[],"artifacts":[]}`

func TestDecodeResult(t *testing.T) {
	r, err := DecodeResult([]byte(sampleResult))
	if err != nil {
		t.Fatal(err)
	}
	if r.ReportedWorkDisposition != DispositionDone || r.Summary != "s" || !r.CompletionClaim.ObjectiveSatisfied ||
		len(r.CompletionClaim.Criteria) != 1 || string(r.CompletionClaim.Criteria[0]) != `{"id":1}` || len(r.Evidence) != 2 ||
		r.Artifacts == nil || string(r.CompletionClaim.ContractRevision) != `"7"` {
		t.Errorf("got %+v", r)
	}
	const continuation = `,"continuation":{"kind":"k","summary":"s","idempotencyKey":"i"}}`
	end := strings.TrimSuffix(sampleResult, "}")
	for name, c := range map[string]struct{ text, path string }{
		"needs review":                {strings.Replace(sampleResult, "done", "needs_review", 1), ""},
		"a numbered contract":         {strings.Replace(sampleResult, `"7"`, "7", 1), ""},
		"blocked":                     {strings.Replace(end, "done", "blocked", 1) + `,"blocker":{}}`, ""},
		"blocked without":             {strings.Replace(sampleResult, "done", "blocked", 1), "blocker"},
		"blocked by text":             {strings.Replace(end, "done", "blocked", 1) + `,"blocker":"x"}`, "blocker"},
		"a blocker that is null":      {end + `,"blocker":null}`, "blocker"},
		"yielded":                     {strings.Replace(end, "done", "yielded", 1) + continuation, ""},
		"yielded without":             {strings.Replace(sampleResult, "done", "yielded", 1), "continuation"},
		"yielded with an empty key":   {strings.Replace(end, "done", "yielded", 1) + strings.Replace(continuation, `"i"`, `""`, 1), "continuation.idempotencyKey"},
		"yielded without a kind":      {strings.Replace(end, "done", "yielded", 1) + strings.Replace(continuation, `"kind"`, `"Kind"`, 1), "continuation.kind"},
		"done, continued":             {end + continuation, ""},
		"unknown members":             {end + `,"Summary":1,"score":{}}`, ""},
		"another schema":              {strings.Replace(sampleResult, "result.v1", "result.v2", 1), "schema"},
		"another disposition":         {strings.Replace(sampleResult, "done", "Done", 1), "reportedWorkDisposition"},
		"no summary":                  {strings.Replace(sampleResult, `"s"`, `""`, 1), "summary"},
		"the longest summary":         {strings.Replace(sampleResult, `"s"`, `"`+strings.Repeat("é", MaxSummaryLen)+`"`, 1), ""},
		"too long a summary":          {strings.Replace(sampleResult, `"s"`, `"`+strings.Repeat("é", MaxSummaryLen+1)+`"`, 1), "summary"},
		"no claim":                    {strings.Replace(sampleResult, "completionClaim", "claim", 1), "completionClaim"},
		"no contract":                 {strings.Replace(sampleResult, "contractRevision", "revision", 1), "completionClaim.contractRevision"},
		"a contract that is null":     {strings.Replace(sampleResult, `"7"`, "null", 1), "completionClaim.contractRevision"},
		"satisfied by text":           {strings.Replace(sampleResult, "true", `"true"`, 1), "completionClaim.objectiveSatisfied"},
		"criteria that are no list":   {strings.Replace(sampleResult, `[{"id":1}]`, `{}`, 1), "completionClaim.criteria"},
		"evidence that is null":       {strings.Replace(sampleResult, `[1,"x"]`, `null`, 1), "evidence"},
		"no verification":             {strings.Replace(sampleResult, "verification", "verified", 1), "verification"},
		"no attention":                {strings.Replace(sampleResult, "attentionRequests", "x", 1), "attentionRequests"},
		"no artifacts":                {strings.Replace(sampleResult, "artifacts", "x", 1), "artifacts"},
		"not an object":               {`[]`, ""},
		"not JSON, a repeated member": {end + `,"summary":"s"}`, ""},
	} {
		got, err := DecodeResult([]byte(c.text))
		wantFault := c.path != "" || strings.HasPrefix(name, "not")
		if (err != nil) != wantFault {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		var shape *FieldError
		if c.path != "" && (!errors.As(err, &shape) || shape.Path != c.path) {
			t.Errorf("%s: got %v, want a fault at %s", name, err, c.path)
		}
		if wantFault && !reflect.DeepEqual(got, Result{}) {
			t.Errorf("%s: a fault and a result as well", name)
		}
	}
}

func TestDecodeTerminalProposal(t *testing.T) {
	const good = `{"schema":"paperclip.prp.terminal.v1","turnTerminalState":"interrupted","runTerminalState":"cancelled","reportedWorkDisposition":"yielded","more":1}`
	want := TerminalProposal{SchemaTerminal, TurnInterrupted, RunCancelled, DispositionYielded}
	if got, err := DecodeTerminalProposal([]byte(good)); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, c := range [][3]string{
		{"terminal.v1", "terminal.v2", "schema"},
		{`"interrupted"`, `"succeeded"`, "turnTerminalState"},
		{`"cancelled"`, `"interrupted"`, "runTerminalState"},
		{`"cancelled"`, `null`, "runTerminalState"},
		{`reportedWork`, `work`, "reportedWorkDisposition"},
	} {
		got, err := DecodeTerminalProposal([]byte(strings.Replace(good, c[0], c[1], 1)))
		var shape *FieldError
		if !errors.As(err, &shape) || shape.Path != c[2] || got != (TerminalProposal{}) {
			t.Errorf("%s instead of %s: got %+v, %v; want a fault at %s", c[1], c[0], got, err, c[2])
		}
	}
}

func TestDecodeRequest(t *testing.T) {
	r, err := DecodeRequest([]byte(sampleRequest))
	if err != nil || r.RequestID != "r1" || string(r.Choices) != `[{"key":"allow"}]` || r.ExpiresAt == nil {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := DecodeRequest([]byte(strings.Replace(sampleRequest, "permission", "wish", 1))); err == nil || !strings.Contains(err.Error(), `"wish"`) {
		t.Errorf("got %v, want a fault that names the word", err)
	}
}

func TestHasCapability(t *testing.T) {
	for raw, want := range map[string]bool{
		``:                           false,
		`null`:                       false,
		`"steer"`:                    false,
		`[]`:                         false,
		`["steer"]`:                  true,
		`["x",["steer"],1]`:          false,
		`["x",{},"st\u0065er"]`:      true,
		`["Steer","steer "]`:         false,
		`{}`:                         false,
		`{"steer":true}`:             true,
		`{"steer":{}}`:               true,
		`{"steer":false}`:            false,
		`{"steer":null}`:             false,
		`{"steer":1}`:                false,
		`{"steer":"yes"}`:            false,
		`{"x":{"steer":true}}`:       false,
		`{"x":[{}],"steer":{"a":1}}`: true,
		`["steer"`:                   false,
		`["steer"] x`:                false,
	} {
		if got := HasCapability([]byte(raw), "steer"); got != want {
			t.Errorf("HasCapability(%s) = %v, want %v", raw, got, want)
		}
	}
}

// The types of spec section 3 and who may make them.
func TestEventTypes(t *testing.T) {
	for types, want := range map[string]Origin{
		"workspace.ready harness.starting harness.ready harness.exited session.starting turn.submitted runtime_request.created run.result.proposed run.terminal runner.diagnostic runner.anything": OriginRunner,
		"runtime.phase.changed session.started session.resumed session.closed session.failed turn.accepted turn.started turn.completed turn.failed turn.interrupted turn.cancelled " +
			"item.started item.delta item.completed item.failed runtime_request.resolved runtime_request.expired runtime_request.cancelled harness.diagnostic sandbox.metric usage.reported " +
			"mcp_app.x interaction.a.b attention.é": OriginHarness,
		"x run.terminals Run.terminal mcp_app mcp_app. runner. interaction attention. item item. harness.exit session turn.steered mcp_apps.x": OriginUnknown,
	} {
		for _, name := range strings.Fields(types) {
			if got := EventType(name).Origin(); got != want {
				t.Errorf("%s is of origin %d, want %d", name, got, want)
			}
		}
	}
	for _, e := range EventTypes() {
		if e.Origin() == OriginUnknown {
			t.Errorf("%s is listed and of unknown origin", e)
		}
	}
	ends := map[EventType]bool{EventTurnCompleted: true, EventTurnFailed: true, EventTurnInterrupted: true, EventTurnCancelled: true}
	first := map[EventType]bool{EventResultProposed: true, EventRunTerminal: true, EventHarnessExited: true}
	bulk := map[EventType]bool{EventItemDelta: true, EventHarnessDiag: true, EventRunnerDiag: true}
	for _, e := range append(EventTypes(), "mcp_app.x", "") {
		want := 1
		if ends[e] || first[e] {
			want = 0
		} else if bulk[e] {
			want = 2
		}
		if got := e.Priority(); got != want {
			t.Errorf("%s has the priority %d, want %d", e, got, want)
		}
		if got := e.EndsTurn(); got != ends[e] {
			t.Errorf("%s ends a turn: %v", e, got)
		}
		if got, want := e.EndsSession(), e == EventSessionClosed || e == EventSessionFailed; got != want {
			t.Errorf("%s ends a session: %v", e, got)
		}
		if got, want := e.EndsRequest(), e == EventRequestResolved || e == EventRequestExpired || e == EventRequestCancelled; got != want {
			t.Errorf("%s ends a request: %v", e, got)
		}
	}
}
