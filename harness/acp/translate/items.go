package translate

import (
	"strconv"

	"prp/harness/fields"
	"prp/harness/text"
	"prp/protocol"
)

// Kinds of items.
const (
	kindMessage   = "assistant_message"
	kindReasoning = "reasoning"
	kindUser      = "user_message"
	kindCommand   = "command"
	kindFile      = "file_change"
	kindTool      = "tool"
	kindPlan      = "plan"
)

// itemBook holds the open items. Messages and reasoning come one at a time.
type itemBook struct {
	count int
	text  *textItem
	tools map[string]*tool // by toolCallId; ended ones stay until the turn ends
	order []string         // of the tools
	plan  string           // id of the plan's item
}

type textItem struct {
	id, kind, messageID string
	bytes               int64
}

func (s *State) newItem(kind string) string {
	s.book.count++
	return "item_" + strconv.Itoa(s.book.count) + "_" + kind
}

// item begins the payload of an event of an item.
func (s *State) item(kind string) *fields.Fields {
	f := fields.New().Text("kind", kind)
	if s.replaying {
		f.Truth("replay", true)
	}
	return f
}

// chunk is a piece of a message or of reasoning. A new message id, another
// kind, or anything between begins a new item.
func (s *State) chunk(kind string, u object) {
	content := u["content"].object()
	messageID := u["messageId"].text()
	open := s.book.text
	if open != nil && (open.kind != kind || messageID != "" && messageID != open.messageID) {
		s.closeText()
		open = nil
	}
	delta, isText := content["text"].text(), content["type"].text() == "text"
	if isText && delta == "" {
		return
	}
	if open == nil {
		open = &textItem{id: s.newItem(kind), kind: kind, messageID: messageID}
		s.book.text = open
		s.event(protocol.EventItemStarted, s.turnID(), open.id, s.item(kind))
		if kind == kindMessage && s.turn != nil {
			s.turn.answer = s.turn.answer[:0]
		}
	}
	if !isText {
		s.event(protocol.EventItemDelta, s.turnID(), open.id, s.item(kind).Own("content", attachment(content)))
		return
	}
	if kind == kindMessage && s.turn != nil {
		if open.bytes == 0 {
			s.turn.messages++
		}
		head, _ := text.Head(delta, max(0, maxSummary*4-len(s.turn.answer)))
		if len(s.turn.answer)+len(head) <= maxSummary*4 {
			s.turn.answer = append(s.turn.answer, head...)
		}
	}
	open.bytes += int64(len(delta))
	s.deltas(open.id, kind, delta)
}

// deltas passes a text on in pieces.
func (s *State) deltas(id, kind, delta string) {
	for piece := range text.Pieces(delta) {
		s.event(protocol.EventItemDelta, s.turnID(), id, s.item(kind).Text("delta", piece))
	}
}

// attachment describes content that is no text: its type and size, not itself.
func attachment(content object) []byte {
	uri := content["uri"].text()
	if uri == "" {
		uri = content["resource"].object()["uri"].text()
	}
	f := fields.New().Short("type", content["type"].text()).Short("mimeType", content["mimeType"].text()).
		Short("uri", uri).Short("name", content["name"].text())
	if left := len(content["data"]) + len(content["resource"]); left > 0 {
		f.Number("truncatedBytes", int64(left))
	}
	return f.Object()
}

func (s *State) closeText() {
	open := s.book.text
	if open == nil {
		return
	}
	s.book.text = nil
	s.event(protocol.EventItemCompleted, s.turnID(), open.id, s.item(open.kind).Number("textBytes", open.bytes))
}

// planned is a plan, which replaces the one before.
func (s *State) planned(u object) {
	s.closeText()
	t := protocol.EventItemDelta
	if s.book.plan == "" {
		s.book.plan, t = s.newItem(kindPlan), protocol.EventItemStarted
	}
	s.event(t, s.turnID(), s.book.plan, s.item(kindPlan).Text("title", "Plan").Raw("entries", u["entries"], 2*maxRaw))
}

// closeItems ends what is open: a tool call that never said how it ended has
// failed.
func (s *State) closeItems(why string) {
	s.closeText()
	for _, id := range s.book.order {
		if t := s.book.tools[id]; !t.ended {
			s.endTool(t, protocol.EventItemFailed, fields.New().Text("reason", why))
		}
	}
	if s.book.plan != "" {
		s.event(protocol.EventItemCompleted, s.turnID(), s.book.plan, s.item(kindPlan))
	}
	s.book = itemBook{count: s.book.count}
}

// endReplay closes the items of the past.
func (s *State) endReplay() {
	if s.replaying {
		s.closeItems("the replay ended")
		s.replaying = false
	}
}
