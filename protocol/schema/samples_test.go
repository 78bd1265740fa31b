package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// verdict is what is expected of a sample.
type verdict uint8

const (
	// good is accepted by the schema and by the decoder.
	good verdict = iota
	// bad is refused by both.
	bad
	// schemaOnly is refused by the schema alone: valid in shape, but refused
	// by a later rule, or a value that the runner itself never writes.
	schemaOnly
	// decoderOnly is refused by the decoder alone: a schema sees a parsed
	// value and not the bytes.
	decoderOnly
)

// sample changes one member of a base line.
type sample struct {
	base string
	// path names the member, with dots; "" replaces the whole line.
	path string
	// value is its JSON; "" removes the member.
	value string
	want  verdict
}

// bases are good lines and objects, by name. The schema stands before the
// slash.
var bases = map[string]string{
	"command/prepare": `{"schema":"paperclip.prp.command.v1","commandId":"c1","controllerSeq":1,"type":"run.prepare","issuedAt":"2026-01-02T03:04:05.678Z","payload":{}}`,
	"command/start":   `{"schema":"prp.command.v1","commandId":"c3","controllerSeq":3,"type":"turn.start","issuedAt":"2026-01-02T03:04:05+01:00","payload":{"turnId":"turn_1","text":"go","model":"m"},"note":[1]}`,
	"command/steer":   `{"schema":"prp.command.v1","commandId":"c4","controllerSeq":4,"type":"turn.steer","issuedAt":"2026-01-02T03:04:05Z","payload":{"text":"left"}}`,
	"command/stop":    `{"schema":"prp.command.v1","commandId":"c5","controllerSeq":5,"type":"turn.stop","issuedAt":"2026-01-02T03:04:05Z"}`,
	"command/resolve": `{"schema":"prp.command.v1","commandId":"c6","controllerSeq":6,"type":"request.resolve","issuedAt":"2026-01-02T03:04:05Z","payload":{"requestId":"r","response":null}}`,
	"command/guarded": `{"schema":"prp.command.v1","commandId":"c7","controllerSeq":7,"type":"run.cancel","issuedAt":"2026-01-02T03:04:05Z","deadlineAt":"2026-01-02T03:05:05Z","precondition":{"runnerState":["ready","draining"],"runState":["running"],"sessionState":[],"activeTurnId":null}}`,

	"stream/event":      `{"schema":"paperclip.runner.stream.v1","message":{"kind":"event","event":` + itemEvent + `}}`,
	"stream/accepted":   `{"schema":"paperclip.runner.stream.v1","message":{"kind":"command_receipt","commandId":"c1","controllerSeq":1,"status":"accepted","detail":"taken"}}`,
	"stream/rejected":   `{"schema":"paperclip.runner.stream.v1","message":{"kind":"command_receipt","commandId":"c1","controllerSeq":1,"status":"rejected","detail":"no","code":"sequence_gap"}}`,
	"stream/diagnostic": `{"schema":"paperclip.runner.stream.v1","message":{"kind":"diagnostic","level":"error","message":"m","code":"invalid_json"}}`,

	"event/item":      itemEvent,
	"event/workspace": runnerEvent(2, "workspace.ready", 1, `{"workingDirectory":"."}`),
	"event/starting":  runnerEvent(3, "harness.starting", 1, `{"driverKind":"fake","transport":"stdio_jsonl"}`),
	"event/ready":     runnerEvent(4, "harness.ready", 1, `{"driverKind":"fake","driverVersion":"1","transport":"stdio_jsonl","capabilities":["steer"]}`),
	"event/submitted": strings.Replace(runnerEvent(8, "turn.submitted", 1, `{"text":"go"}`), `"eventType"`, `"turnId":"turn_1","eventType"`, 1),
	"event/created":   runnerEvent(9, "runtime_request.created", 1, `{"request":`+request+`}`),
	"event/proposed":  runnerEvent(10, "run.result.proposed", 0, `{"result":`+result+`}`),
	"event/exited":    runnerEvent(998, "harness.exited", 0, `{"processExit":{"exitCode":null,"success":false,"signal":9},"semanticResultObserved":false,"logs":{"lines":["stdout: a"],"retainedLines":1,"retainedBytes":9,"droppedLines":0},"containment":{"means":["process_group"],"swept":1,"survivors":[{"pid":12,"name":"sh","state":"D"}]}}`),
	"event/terminal":  runnerEvent(1000, "run.terminal", 0, terminal),

	"request/permission": request,
	"result/done":        result,
	"result/blocked":     strings.Replace(result, `"reportedWorkDisposition":"done"`, `"reportedWorkDisposition":"blocked","blocker":{"kind":"x"}`, 1),
	"result/yielded":     strings.Replace(result, `"reportedWorkDisposition":"done"`, `"reportedWorkDisposition":"yielded","continuation":{"kind":"turn","summary":"s","idempotencyKey":"k"}`, 1),
	"proposal/succeeded": proposal,
	"terminal/succeeded": terminal,

	"harness-command/start":   `{"schema":"paperclip.harness.command.v1","commandId":"c","type":"turn.start","payload":{"turnId":"t","text":"x"}}`,
	"harness-message/ready":   `{"schema":"paperclip.harness.message.v1","messageSeq":1,"type":"ready","payload":{"version":"","driverKind":"acp","capabilities":{"steer":true}}}`,
	"harness-message/event":   `{"schema":"paperclip.fake_harness.message.v1","messageSeq":2,"type":"event","payload":{"eventType":"item.delta","turnId":"t","itemId":"i","payload":{"delta":"x"}}}`,
	"harness-message/request": `{"schema":"paperclip.fake_harness.message.v1","messageSeq":3,"type":"request","payload":{"request":` + request + `}}`,
	"harness-message/result":  `{"schema":"paperclip.fake_harness.message.v1","messageSeq":4,"type":"result","payload":{"result":{}}}`,
	"harness-message/end":     `{"schema":"paperclip.fake_harness.message.v1","messageSeq":5,"type":"terminal","payload":{"terminal":` + proposal + `}}`,
	"harness-message/log":     `{"schema":"paperclip.fake_harness.message.v1","messageSeq":6,"type":"log","payload":{"stream":"stderr","text":""}}`,
	"harness-message/diag":    `{"schema":"paperclip.fake_harness.message.v1","messageSeq":7,"type":"diagnostic","payload":{"workerPid":3}}`,

	"script/all": `{"schema":"paperclip.fake_harness.script.v1","name":"s","steps":[` +
		`{"kind":"delay","milliseconds":0},{"kind":"log","stream":"stdout","text":"a"},` +
		`{"kind":"event","event_type":"item.started","item_id":"i","payload":{}},{"kind":"await_interrupt"},` +
		`{"kind":"repeat","times":2,"steps":[{"kind":"raw","text":"x\n"},{"kind":"raw","base64":"AA=="}]},` +
		`{"kind":"spawn_worker","escape":"double_fork","ignore_sigterm":true},{"kind":"crash","signal":9},{"kind":"exit","code":7}]}`,
	"script/step": `{"schema":"paperclip.fake_harness.script.v1","name":"s","steps":[{"kind":"exit","code":0}]}`,
}

const (
	itemEvent = `{"schema":"paperclip.prp.event.v1","sourceEventId":"event_run_1_007","sourceSeq":7,"sourceInstanceId":"runner_1","sourceKind":"runner","runId":"run_1","normalizedSessionId":"session_1","turnId":"turn_1","itemId":"item_1","eventType":"item.delta","schemaVersion":1,"priority":2,"emittedAt":"2026-01-01T00:00:00.007Z","payload":{"delta":"x"}}`
	request   = `{"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":"r","type":"permission","status":"pending","prompt":"may I?","choices":[{"key":"allow"}],"expiresAt":"2026-01-02T03:04:05Z"}`
	result    = `{"schema":"paperclip.run_result.v1","reportedWorkDisposition":"done","summary":"s","completionClaim":{"contractRevision":"1","objectiveSatisfied":true,"criteria":[],"remainingWork":[]},"evidence":[],"verification":[{}],"attentionRequests":[],"artifacts":[]}`
	proposal  = `{"schema":"paperclip.prp.terminal.v1","turnTerminalState":"completed","runTerminalState":"succeeded","reportedWorkDisposition":"done"}`
	terminal  = `{"schema":"paperclip.prp.terminal.v1","turnTerminalState":"completed","runTerminalState":"succeeded","reportedWorkDisposition":"done","harnessTerminalProposal":null,"reconciliation":{"authority":"runner","reason":"successful_process_and_result","proposalValid":false,"proposalContradicted":false,"processExit":{"exitCode":0,"success":true,"signal":null},"semanticResultObserved":true}}`
)

func runnerEvent(seq int, typ string, priority int, payload string) string {
	return fmt.Sprintf(`{"schema":"paperclip.prp.event.v1","sourceEventId":"event_run_1_%03d","sourceSeq":%d,"sourceInstanceId":"runner_1","sourceKind":"runner","runId":"run_1","normalizedSessionId":"session_1","eventType":%q,"schemaVersion":1,"priority":%d,"emittedAt":"2026-01-01T00:00:00.007Z","payload":%s}`,
		seq, seq, typ, priority, payload)
}

// text is the line that the sample stands for.
func (s sample) text(t *testing.T) string {
	t.Helper()
	base, ok := bases[s.base]
	if !ok {
		t.Fatalf("no base %q", s.base)
	}
	if s.path == "" {
		return s.value
	}
	return string(change(t, json.RawMessage(base), strings.Split(s.path, "."), s.value))
}

// change sets or removes one member, and leaves every other byte sequence of a
// value as it is.
func change(t *testing.T, raw json.RawMessage, path []string, value string) json.RawMessage {
	t.Helper()
	if len(path) == 0 {
		return json.RawMessage(value)
	}
	if rest, ok := bytes.CutPrefix(bytes.TrimSpace(raw), []byte("[")); ok && path[0] == "0" {
		var list []json.RawMessage
		if err := json.Unmarshal(append([]byte("["), rest...), &list); err != nil {
			t.Fatal(err)
		}
		list[0] = change(t, list[0], path[1:], value)
		return join(list)
	}
	members := map[string]json.RawMessage{}
	if raw != nil {
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	}
	if len(path) == 1 && value == "" {
		if _, ok := members[path[0]]; !ok {
			t.Fatalf("there is no member %q to remove", path[0])
		}
		delete(members, path[0])
	} else {
		members[path[0]] = change(t, members[path[0]], path[1:], value)
	}
	var pairs []json.RawMessage
	for key, v := range members {
		pairs = append(pairs, json.RawMessage(fmt.Sprintf("%q:%s", key, v)))
	}
	return append(append(json.RawMessage("{"), bytes.Join(asBytes(pairs), []byte(","))...), '}')
}

func join(list []json.RawMessage) json.RawMessage {
	return append(append(json.RawMessage("["), bytes.Join(asBytes(list), []byte(","))...), ']')
}

func asBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// long is a JSON string of n characters of four bytes each.
func long(n int) string { return `"` + strings.Repeat("𝄞", n) + `"` }
