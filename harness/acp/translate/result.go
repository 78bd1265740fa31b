package translate

import (
	"prp/harness/text"
	"prp/protocol"
)

// provenance says who claims a result: the adapter, from what the agent did.
const provenance = "adapter:acp"

// outcome is what became of a turn.
type outcome struct {
	set                 bool
	turnID              string
	stop                string
	done, failed, usage bool
	messages, completed int
	summary             string
}

// summaryOf cuts a text to what a result may have, in characters and in the
// bytes of its JSON form.
func summaryOf(s string) string {
	s = text.HeadRunes(s, maxSummary)
	for len(protocol.AppendString(nil, s)) > maxSummaryJSON {
		s, _ = text.Head(s, len(s)*3/4)
	}
	return s
}

// sendResult says the result of the last turn, once.
func (s *State) sendResult() {
	if s.resultOut || !s.last.set {
		return
	}
	s.resultOut = true
	o := s.last
	disposition := protocol.DispositionYielded
	if o.done {
		disposition = protocol.DispositionDone
	}
	summary := summaryOf(o.summary)
	claim := members().text("contractRevision", "1").truth("objectiveSatisfied", o.done).
		own("criteria", []byte("[]")).own("remainingWork", []byte("[]")).done()
	// A model's error can look like an answer: who reads the result sees
	// whether a model was paid for it.
	evidence := members().text("kind", "agent_turn").text("provenance", provenance).short("turnId", o.turnID).
		short("stopReason", o.stop).number("messages", int64(o.messages)).number("completedItems", int64(o.completed)).
		truth("usageReported", o.usage).done()
	f := members().text("schema", protocol.SchemaResult).text("reportedWorkDisposition", string(disposition)).
		text("summary", summary).own("completionClaim", claim).own("evidence", array([][]byte{evidence})).
		own("verification", []byte("[]")).own("attentionRequests", []byte("[]")).own("artifacts", []byte("[]")).
		text("provenance", provenance)
	if !o.done {
		key := o.turnID
		if key == "" {
			key = "session"
		}
		f.own("continuation", members().text("kind", "continue_session").
			text("summary", text.HeadRunes(summary, maxShort)).text("idempotencyKey", key).done())
	}
	s.say(protocol.MessageResult, members().own("result", f.done()).done())
}
