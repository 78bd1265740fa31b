package connector

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"prp/controller/bridge"
	"prp/protocol"
)

// eventKind is the event of a run_event.
type eventKind string

// The seven kinds of the seed.
const (
	kindThinking   eventKind = "thinking"
	kindToolCall   eventKind = "tool_call"
	kindToolResult eventKind = "tool_result"
	kindProgress   eventKind = "progress"
	kindWarning    eventKind = "warning"
	kindError      eventKind = "error"
	kindCompletion eventKind = "completion"
)

// Bounds of what a translation keeps.
const (
	// maxOutput bounds the output that a tool_result repeats, in bytes.
	maxOutput = 8 << 10
	// maxItems bounds the items that are open at once.
	maxItems = 4096
)

// event is a run_event before it has a number.
type event struct {
	kind    eventKind
	at      string // RFC 3339
	payload members
	// soft may be dropped when the spool is full: a piece of text.
	soft bool
}

// translation turns the events of one run into run_event. It is pure: the same
// events give the same result.
type translation struct {
	mask  *bridge.Masker
	items map[string]*item
	order []string // of the items, as they came
	// spilled are the rests of items that had to be forgotten before their end.
	spilled []event
	// usage is the last report, tokens the count in it, -1 before.
	usage  json.RawMessage
	tokens int64
	// summary is the harness's own, of its result.
	summary string
	// artifacts are those of the result.
	artifacts []json.RawMessage
	// cause is why we have ended the run, where it was us.
	cause *cause
}

// item is a tool call, a message or reasoning that is not over.
type item struct {
	kind, tool string
	command    json.RawMessage
	output     []byte
	cut        bool
	stream     *bridge.Stream
}

// cause is an end of a run that its own terminal does not tell.
type cause struct {
	status  RunStatus
	code    Code
	reason  string
	message string
	// newRunID is where the work went on.
	newRunID string
}

func newTranslation(mask *bridge.Masker) *translation {
	return &translation{mask: mask, items: map[string]*item{}, tokens: -1}
}

// Kinds of items (prp.md section 8 and the adapters).
const (
	itemCommand   = "command"
	itemFile      = "file_change"
	itemTool      = "tool"
	itemReasoning = "reasoning"
)

// toolOf names the tool of an item in the words of the seed; empty where the
// item is no tool.
func toolOf(kind, toolKind string) string {
	switch kind {
	case itemCommand:
		return "terminal"
	case itemFile:
		return "file"
	case itemTool:
		switch toolKind {
		case "":
			return "tool"
		case "fetch":
			return "browser"
		}
		return toolKind
	}
	return ""
}

// apply takes one event of the run and returns what it is for the server: one
// run_event, and before it what was held back of a text that did not end.
func (t *translation) apply(e *protocol.Event) []event {
	p := members{}
	if json.Unmarshal(e.Payload, &p) != nil || p == nil {
		p = members{}
	}
	if e.EventType == protocol.EventRunTerminal {
		return append(t.rest(e.EmittedAt), t.completed(e))
	}
	for name, raw := range p {
		if name != "delta" { // a stream masks it
			p[name] = t.mask.JSON(raw)
		}
	}
	ev := event{kind: kindProgress, at: e.EmittedAt, payload: p}
	switch e.EventType {
	case protocol.EventItemStarted:
		t.started(e, &ev)
	case protocol.EventItemDelta:
		t.delta(e, &ev)
	case protocol.EventItemCompleted:
		t.ended(e, &ev, kindToolResult)
	case protocol.EventItemFailed:
		t.ended(e, &ev, kindError)
		ev.kind = kindError
	case protocol.EventHarnessDiag, protocol.EventRunnerDiag:
		ev.kind = diagnosticKind(string(p["code"]))
	case protocol.EventTurnFailed, protocol.EventSessionFailed:
		ev.kind = kindError
	case protocol.EventUsageReported:
		t.used(p)
	case protocol.EventResultProposed:
		t.proposed(p)
	}
	source(&ev, e)
	out := append(t.spilled, ev)
	t.spilled = nil
	return out
}

// source tells which event it was; these members are ours.
func source(ev *event, e *protocol.Event) {
	ev.payload["source_event"] = quoted(string(e.EventType))
	ev.payload["source_seq"] = marshal(e.SourceSeq)
	if e.ItemID != "" {
		ev.payload["item_id"] = quoted(e.ItemID)
	}
	if e.TurnID != "" {
		ev.payload["turn_id"] = quoted(e.TurnID)
	}
}

// violations are the codes with which the runner tells that the harness has
// broken the protocol; every other diagnostic is a warning.
var violations = []protocol.Code{
	protocol.CodeHarnessLineTooLong, protocol.CodeHarnessInvalidJSON, protocol.CodeHarnessSchema,
	protocol.CodeHarnessMessage, protocol.CodeHarnessMessageGap, protocol.CodeHarnessBeforeReady,
	protocol.CodeHarnessSecondReady, protocol.CodeHarnessTornLastLine,
}

func diagnosticKind(code string) eventKind {
	for _, v := range violations {
		if code == `"`+string(v)+`"` {
			return kindError
		}
	}
	return kindWarning
}

func (t *translation) started(e *protocol.Event, ev *event) {
	it := t.open(e, ev.payload)
	if it.tool != "" {
		ev.kind = kindToolCall
		ev.payload["tool"] = quoted(it.tool)
	}
}

// open remembers an item. The oldest one makes room for it: what a harness never
// ends must not take the memory, nor the text of what comes after it.
func (t *translation) open(e *protocol.Event, p members) *item {
	id := e.ItemID
	it := &item{kind: unquoted(p["kind"]), stream: t.mask.Stream()}
	it.tool = toolOf(it.kind, unquoted(p["toolKind"]))
	it.command = p["command"]
	if t.items[id] == nil {
		if len(t.items) >= maxItems {
			t.spill(t.order[0], e.EmittedAt)
		}
		t.order = append(t.order, id)
	}
	t.items[id] = it
	return it
}

func (t *translation) delta(e *protocol.Event, ev *event) {
	it := t.items[e.ItemID]
	if it == nil {
		it = t.open(e, ev.payload)
	}
	raw, isText := ev.payload["delta"]
	delete(ev.payload, "delta")
	if isText {
		shown := it.stream.Add([]byte(unquoted(raw)))
		it.keep(shown)
		ev.payload["text"] = quoted(string(shown))
		ev.soft = true
	}
	kind := unquoted(ev.payload["kind"])
	if kind == itemReasoning || kind == "" && it.kind == itemReasoning {
		ev.kind = kindThinking
	}
	if it.tool != "" {
		ev.payload["tool"] = quoted(it.tool)
	}
}

// keep keeps the beginning of an output.
func (it *item) keep(b []byte) {
	if it.tool == "" {
		return
	}
	n := min(len(b), maxOutput-len(it.output))
	it.output = append(it.output, b[:n]...)
	it.cut = it.cut || n < len(b)
}

// ended is the end of an item. What was held back of its text is told with it.
func (t *translation) ended(e *protocol.Event, ev *event, asTool eventKind) {
	it := t.items[e.ItemID]
	if it == nil {
		it = t.open(e, ev.payload)
	}
	t.forget(e.ItemID)
	if rest := it.stream.End(); len(rest) > 0 {
		it.keep(rest)
		ev.payload["text_rest"] = quoted(string(rest))
	}
	if it.tool == "" {
		return
	}
	ev.kind = asTool
	ev.payload["tool"] = quoted(it.tool)
	if it.command != nil && ev.payload["command"] == nil {
		ev.payload["command"] = it.command
	}
	if len(it.output) > 0 && ev.payload["output"] == nil {
		ev.payload["output"] = quoted(strings.ToValidUTF8(string(it.output), ""))
		if it.cut {
			ev.payload["output_truncated"] = json.RawMessage("true")
		}
	}
}

func (t *translation) forget(id string) {
	delete(t.items, id)
	for i, other := range t.order {
		if other == id {
			t.order = append(t.order[:i], t.order[i+1:]...)
			return
		}
	}
}

// spill forgets an item that has not ended, and keeps what was held back of its
// text for the next event.
func (t *translation) spill(id, at string) {
	if rest := t.items[id].stream.End(); len(rest) > 0 {
		t.spilled = append(t.spilled, event{kind: kindProgress, at: at, payload: members{
			"item_id": quoted(id), "text_rest": quoted(string(rest)),
		}})
	}
	t.forget(id)
}

// rest is what was held back of texts whose items never ended.
func (t *translation) rest(at string) []event {
	for len(t.order) > 0 {
		t.spill(t.order[0], at)
	}
	out := t.spilled
	t.spilled = nil
	return out
}

// used takes a report of usage. Harnesses tell it in different words.
func (t *translation) used(p members) {
	inner := p
	if raw := p["usage"]; raw != nil {
		var u members
		if json.Unmarshal(raw, &u) == nil && u != nil {
			inner = u
		}
	}
	t.usage = marshal(inner)
	if n := tokensOf(inner); n >= 0 {
		t.tokens = n
	}
}

func tokensOf(u members) int64 {
	for _, names := range [][]string{
		{"totalTokens"}, {"total_tokens"}, {"inputTokens", "outputTokens"}, {"input_tokens", "output_tokens"}, {"used"},
	} {
		sum, known := int64(0), true
		for _, name := range names {
			var n int64
			known = known && u[name] != nil && json.Unmarshal(u[name], &n) == nil && n >= 0
			sum += n
		}
		if known {
			return sum
		}
	}
	return -1
}

func (t *translation) proposed(p members) {
	raw := p["result"]
	if raw == nil {
		raw = marshal(p)
	}
	var r struct {
		Summary   string            `json:"summary"`
		Artifacts []json.RawMessage `json:"artifacts"`
	}
	if bridge.Decode(raw, &r) == nil {
		t.summary, t.artifacts = r.Summary, r.Artifacts
	}
}

func quoted(s string) json.RawMessage {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return protocol.AppendString(nil, s)
}

func unquoted(raw json.RawMessage) string {
	var s string
	if raw != nil {
		_ = json.Unmarshal(raw, &s) // anything else is no text
	}
	return s
}

// marshal encodes what can always be encoded.
func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}
