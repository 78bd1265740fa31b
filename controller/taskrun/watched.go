package taskrun

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"prp/controller"
	"prp/controller/bridge"
	"prp/protocol"
)

const (
	// maxOutput bounds the output of a report, in bytes.
	maxOutput = 1 << 20
	// maxItems bounds the items that are followed at a time.
	maxItems = 4096
	// between stands in the stream between two messages.
	between = "\n\n"
	// commandDriver is the driver whose program's stdout is its message.
	commandDriver = "command"
)

// messageKinds are the kinds of items that are messages of the assistant: those
// of agents, and those of the fake harness's scripts.
var messageKinds = map[string]bool{"assistant_message": true, "message": true}

// watched is what the events of a run tell a report. It is pure: it is fed with
// masked events and says what they mean.
type watched struct {
	driver string
	items  map[string]*item
	// streamed tells that text was given out.
	streamed bool
	// output is the last completed message, nil before there is one.
	output     *string
	summary    string
	structured string
	prompt     *int
	completion *int
	// complaint is the last diagnostic of the harness, else its last words.
	complaint string
}

// item is a piece of work that has not ended.
type item struct {
	kind    string
	message bool
	text    strings.Builder
	more    int64 // bytes of the text that are not kept
}

func newWatched() *watched { return &watched{items: map[string]*item{}} }

// seen has the members of payloads that are looked at.
type seen struct {
	DriverKind string `json:"driverKind"`
	Kind       string `json:"kind"`
	ItemType   string `json:"itemType"`
	Stream     string `json:"stream"`
	Text       string `json:"text"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Replay     bool   `json:"replay"`
	Logs       struct {
		Lines []string `json:"lines"`
	} `json:"logs"`
	Result struct {
		Summary          string          `json:"summary"`
		StructuredOutput json.RawMessage `json:"structuredOutput"`
	} `json:"result"`
}

// apply takes one event. It returns the text that is to be streamed.
func (w *watched) apply(e *protocol.Event) string {
	var p seen
	// A payload of another shape tells as much as was read of it.
	_ = bridge.Decode(e.Payload, &p)
	switch e.EventType {
	case protocol.EventHarnessReady:
		w.driver = p.DriverKind
	case protocol.EventItemStarted:
		w.item(e, &p)
	case protocol.EventItemDelta:
		return w.delta(e, &p)
	case protocol.EventItemCompleted, protocol.EventItemFailed:
		return w.ended(e, &p)
	case protocol.EventHarnessDiag:
		w.complaint = p.Code
		if p.Message != "" {
			w.complaint = strings.TrimPrefix(p.Code+": "+p.Message, ": ")
		}
	case protocol.EventHarnessExited:
		if n := len(p.Logs.Lines); n > 0 && w.complaint == "" {
			w.complaint = p.Logs.Lines[n-1]
		}
	case protocol.EventUsageReported:
		w.usage(e.Payload)
	case protocol.EventResultProposed:
		w.summary = p.Result.Summary
		if s := p.Result.StructuredOutput; len(s) > 0 && string(s) != "null" {
			w.structured = string(s)
		}
	}
	return ""
}

// item finds an item or begins it; nil is one that is not followed.
func (w *watched) item(e *protocol.Event, p *seen) *item {
	key := e.TurnID + "\x00" + e.ItemID
	i := w.items[key]
	if i == nil {
		if len(w.items) >= maxItems || p.Replay {
			return nil
		}
		i = &item{}
		w.items[key] = i
	}
	if i.kind == "" {
		if i.kind = p.Kind; i.kind == "" {
			i.kind = p.ItemType
		}
		i.message = messageKinds[i.kind] || w.driver == commandDriver && i.kind == commandDriver
	}
	return i
}

func (w *watched) delta(e *protocol.Event, p *seen) string {
	i := w.item(e, p)
	if i == nil || !i.message {
		return ""
	}
	if p.Stream == protocol.LogStderr {
		// A program says on stderr why it fails.
		lines := strings.Split(strings.TrimSpace(controller.DeltaText(e)), "\n")
		w.complaint = lines[len(lines)-1]
		return ""
	}
	return w.say(i, controller.DeltaText(e))
}

// say adds text to a message and returns what is to be streamed.
func (w *watched) say(i *item, text string) string {
	if text == "" {
		return ""
	}
	first := i.text.Len() == 0
	if room := maxOutput - i.text.Len(); i.more > 0 || len(text) > room {
		kept := 0
		if i.more == 0 {
			kept = cut(text, room)
		}
		i.more += int64(len(text) - kept)
		i.text.WriteString(text[:kept])
	} else {
		i.text.WriteString(text)
	}
	if first && w.streamed {
		text = between + text
	}
	w.streamed = true
	return text
}

// cut is the last place up to at that is not inside a character.
func cut(s string, at int) int {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return min(at, len(s))
}

func (w *watched) ended(e *protocol.Event, p *seen) string {
	i := w.item(e, p)
	if i == nil {
		return ""
	}
	delete(w.items, e.TurnID+"\x00"+e.ItemID)
	// A command that has failed has written something all the same.
	if !i.message || e.EventType == protocol.EventItemFailed && i.kind != commandDriver {
		return ""
	}
	text := ""
	if i.text.Len() == 0 && i.more == 0 {
		text = w.say(i, p.Text)
	}
	output := i.text.String()
	if i.more > 0 {
		output += fmt.Sprintf("\n[%d more bytes]", i.more)
	}
	if output != "" || w.output == nil {
		w.output = &output
	}
	return text
}

// usageNames are the spellings of the two counts.
var usageNames = [2][]string{
	{"inputTokens", "promptTokens", "input_tokens", "prompt_tokens"},
	{"outputTokens", "completionTokens", "output_tokens", "completion_tokens"},
}

// usage reads the counts of tokens, which may stand in a member usage.
func (w *watched) usage(raw json.RawMessage) {
	var p map[string]json.RawMessage
	if json.Unmarshal(raw, &p) != nil {
		return
	}
	if inner := p["usage"]; inner != nil && json.Unmarshal(inner, &p) != nil {
		return
	}
	for i, at := range []**int{&w.prompt, &w.completion} {
		for _, name := range usageNames[i] {
			var n int
			if raw := p[name]; raw != nil && json.Unmarshal(raw, &n) == nil && n >= 0 {
				*at = &n
				break
			}
		}
	}
}

// answer is the output of a run that succeeded: the last completed message,
// else the summary of the result (workerclient.md, the worker's order).
func (w *watched) answer() string {
	if w.output != nil && *w.output != "" {
		return *w.output
	}
	return w.summary
}
