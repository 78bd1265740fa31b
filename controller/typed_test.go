package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"prp/protocol"
)

// decoys gives every member of the objects in v two others whose names differ
// in case only, one before and one behind it.
func decoys(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			before, behind := strings.ToUpper(name[:1])+name[1:], strings.ToUpper(name)
			parts = append(parts, fmt.Sprintf(`%q:"decoy",%q:%s,%q:"decoy"`, before, name, decoys(v[name]), behind))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, decoys(one))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // only plain values come here
	}
	return string(text)
}

func withDecoys(t *testing.T, text string) json.RawMessage {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	out := json.RawMessage(decoys(v))
	if err := protocol.CheckJSON(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNamesAreComparedExactly: what stands under a name of other case is an
// unknown member (spec section 1), so that a person is asked what the harness
// has asked for, and never anything else.
func TestNamesAreComparedExactly(t *testing.T) {
	const request = `{"request":{"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":"q","type":"permission",` +
		`"status":"pending","prompt":"Delete everything?","choices":[{"key":"allow","label":"Allow it"}]}}`
	e := &protocol.Event{
		SourceSeq: 1, SourceInstanceID: "runner", RunID: "run", NormalizedSessionID: "session",
		EventType: protocol.EventRequestCreated, SourceEventID: protocol.EventID("run", 1), Payload: withDecoys(t, request),
	}
	r, ok := RequestOf(e)
	if !ok || r.RequestID != "q" || r.Prompt != "Delete everything?" || r.Type != protocol.RequestPermission {
		t.Errorf("the request is %+v, %v", r, ok)
	}
	if got := Choices(r); len(got) != 1 || got[0] != (Choice{"allow", "Allow it"}) {
		t.Errorf("the choices are %v", got)
	}
	var s Snapshot
	s.Apply(*e)
	want := RequestState{ID: "q", Type: protocol.RequestPermission, Prompt: "Delete everything?", Status: protocol.RequestStatusPending}
	if diff := cmp.Diff([]RequestState{want}, s.Requests); diff != "" {
		t.Error(diff)
	}
}

// TestEndsAreReadExactly: the same for the two events that end a run.
func TestEndsAreReadExactly(t *testing.T) {
	const exited = `{"processExit":{"exitCode":7,"success":false,"signal":null},"semanticResultObserved":true,` +
		`"logs":{"lines":["a"],"retainedLines":1,"retainedBytes":1,"droppedLines":2},` +
		`"containment":{"means":["cgroup"],"swept":3,"survivors":[{"pid":4,"name":"n","state":"D"}]}}`
	const terminal = `{"schema":"paperclip.prp.terminal.v1","turnTerminalState":"failed","runTerminalState":"failed","reportedWorkDisposition":"blocked",` +
		`"harnessTerminalProposal":null,"reconciliation":{"authority":"runner","reason":"harness_process_failed","proposalValid":true,` +
		`"proposalContradicted":true,"processExit":{"exitCode":null,"success":false,"signal":9},"semanticResultObserved":true}}`
	var wantExit protocol.HarnessExited
	if err := json.Unmarshal([]byte(exited), &wantExit); err != nil {
		t.Fatal(err)
	}
	if got, ok := readExited(withDecoys(t, exited)); !ok || cmp.Diff(&wantExit, got) != "" {
		t.Errorf("%v: %s", ok, cmp.Diff(&wantExit, got))
	}
	var want protocol.Terminal
	if err := json.Unmarshal([]byte(terminal), &want); err != nil {
		t.Fatal(err)
	}
	if got, ok := readTerminal(withDecoys(t, terminal)); !ok || cmp.Diff(&want, got) != "" {
		t.Errorf("%v: %s", ok, cmp.Diff(&want, got))
	}
	for _, wrong := range []string{`{"processExit":[]}`, `{"processExit":{"exitCode":"0"}}`, `{"containment":{"survivors":[1]}}`, `[]`} {
		if _, ok := readExited(json.RawMessage(wrong)); ok {
			t.Errorf("%s counts as read", wrong)
		}
	}
	for _, wrong := range []string{`{"reconciliation":{"processExit":1}}`, `{"schema":1}`, `1`} {
		if _, ok := readTerminal(json.RawMessage(wrong)); ok {
			t.Errorf("%s counts as read", wrong)
		}
	}
}
