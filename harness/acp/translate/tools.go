package translate

import (
	"hash/fnv"
	"strings"

	"prp/harness/fields"
	"prp/harness/text"
	"prp/protocol"
)

// tool is one tool call.
type tool struct {
	item, kind, title, toolKind string
	running, ended              bool
	changes                     [][]byte
	// What was shown of the output, by length and sum, so that an update that
	// repeats it adds only what is new.
	shown int
	sum   uint64
	cut   int64 // bytes of output that were not shown
}

// toolUpdated takes tool_call, tool_call_update, or the tool call of a
// permission request, whichever comes first: it opens the item. What an update
// does not have stays as it was.
func (s *State) toolUpdated(u object) *tool {
	s.closeText()
	id := u["toolCallId"].text()
	t := s.book.tools[id]
	if t == nil {
		if len(s.book.tools) >= maxTools {
			s.diagnose("agent_too_many_tools", "", "a tool call was not told, since too many are open", nil)
			return nil
		}
		t = s.openTool(id, u)
	}
	if t.ended {
		s.diagnose("agent_late_update", "tool_call_update", "an update of a tool call that has ended", nil)
		return t
	}
	if title := u["title"].text(); title != "" {
		t.title = title
	}
	text, changes := contentOf(u["content"])
	if len(changes) > 0 {
		t.changes = changes
	}
	t.classify(u["kind"].text())
	status := u["status"].text()
	t.running = t.running || status == "in_progress"
	final := status == "completed" || status == "failed"
	if out := outputOf(t, u, text); out != "" && (final || t.running) {
		s.showOutput(t, out, final)
	}
	switch status {
	case "completed":
		if s.turn != nil {
			s.turn.completed++
		}
		s.endTool(t, protocol.EventItemCompleted, endOf(u, text))
	case "failed":
		s.endTool(t, protocol.EventItemFailed, endOf(u, text))
	}
	return t
}

func (s *State) openTool(id string, u object) *tool {
	t := &tool{title: u["title"].text()}
	_, t.changes = contentOf(u["content"])
	t.classify(u["kind"].text())
	t.item = s.newItem(t.kind)
	if s.book.tools == nil {
		s.book.tools = map[string]*tool{}
	}
	s.book.tools[id] = t
	s.book.order = append(s.book.order, id)
	f := s.item(t.kind).Short("title", t.title).Short("toolKind", t.toolKind).Short("toolCallId", id).
		Short("command", commandOf(u["rawInput"].object())).
		Raw("locations", u["locations"], maxRaw).Raw("input", u["rawInput"], maxRaw)
	s.event(protocol.EventItemStarted, s.turnID(), t.item, f)
	return t
}

// classify maps the agent's kind of a tool, or a change that it shows.
func (t *tool) classify(toolKind string) {
	if toolKind != "" {
		t.toolKind = toolKind
	}
	switch {
	case t.toolKind == "execute":
		t.kind = kindCommand
	case t.toolKind == "edit", t.toolKind == "delete", t.toolKind == "move", len(t.changes) > 0:
		t.kind = kindFile
	default:
		t.kind = kindTool
	}
}

// commandOf is the command line in the input of a tool.
func commandOf(input object) string {
	if c := input["command"]; c.kind() == '[' {
		var words []string
		for _, w := range c.list() {
			words = append(words, w.text())
		}
		return strings.Join(words, " ")
	}
	return input["command"].text()
}

// contentOf splits the content of a tool call into its text and its changes.
func contentOf(content value) (output string, changes [][]byte) {
	var b strings.Builder
	for _, c := range content.list() {
		o := c.object()
		switch o["type"].text() {
		case "content":
			inner := o["content"].object()
			if inner["type"].text() == "text" {
				b.WriteString(inner["text"].text())
			} else {
				b.WriteString("[" + inner["type"].text() + "]\n")
			}
		case "diff":
			f := fields.New().Short("path", o["path"].text()).Number("newBytes", int64(len(o["newText"].text())))
			if old := o["oldText"]; !old.isNull() {
				f.Number("oldBytes", int64(len(old.text())))
			}
			changes = append(changes, f.Object())
		}
	}
	return b.String(), changes
}

// outputOf prefers what a command wrote to what the agent made of it to show.
func outputOf(t *tool, u object, content string) string {
	raw := u["rawOutput"]
	if t.kind == kindCommand || content == "" {
		if s := raw.text(); s != "" {
			return s
		}
		o := raw.object()
		for _, name := range []string{"aggregated_output", "output"} {
			if s := o[name].text(); s != "" {
				return s
			}
		}
	}
	return content
}

// showOutput passes on what is new of an output. Updates repeat the whole
// output; one that is another text is shown only when it is the last word.
func (s *State) showOutput(t *tool, out string, final bool) {
	fresh := ""
	switch {
	case len(out) >= t.shown && sumOf(out[:t.shown]) == t.sumOr():
		fresh = out[t.shown:]
	case final:
		fresh, t.shown = "\n"+out, 0
	}
	if fresh == "" {
		return
	}
	head, cut := text.Head(fresh, max(0, maxToolOutput-t.shown))
	if t.shown >= maxToolOutput {
		head, cut = "", len(fresh)
	}
	t.cut = int64(cut)
	if head == "" {
		return
	}
	s.deltas(t.item, t.kind, head)
	t.shown = len(out) - cut
	t.sum = sumOf(out[:t.shown])
}

func (t *tool) sumOr() uint64 {
	if t.shown == 0 {
		return sumOf("")
	}
	return t.sum
}

func sumOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never an error
	return h.Sum64()
}

// endOf tells the end of a tool call.
func endOf(u object, content string) *fields.Fields {
	f := fields.New()
	raw := u["rawOutput"].object()
	for _, v := range []value{raw["exit_code"], raw["exitCode"], raw["metadata"].object()["exit"]} {
		if n, ok := v.integer(); ok {
			f.Number("exitCode", n)
			break
		}
	}
	if content == "" && raw["aggregated_output"] == nil && raw["output"] == nil && u["rawOutput"].kind() == '{' {
		f.Raw("output", u["rawOutput"], maxRaw)
	}
	return f
}

func (s *State) endTool(t *tool, e protocol.EventType, more *fields.Fields) {
	t.ended = true
	f := s.item(t.kind).Short("title", t.title).Short("toolKind", t.toolKind).Number("outputBytes", int64(t.shown))
	if t.cut > 0 {
		f.Number("truncatedBytes", t.cut)
	}
	if len(t.changes) > 0 {
		kept := fitting(t.changes)
		f.Own("changes", array(kept))
		if left := len(t.changes) - len(kept); left > 0 {
			f.Number("changesLeftOut", int64(left))
		}
	}
	s.event(e, s.turnID(), t.item, f.With(more))
}
