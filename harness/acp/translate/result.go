package translate

import (
	"prp/harness/fields"
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
	claim := fields.New().Text("contractRevision", "1").Truth("objectiveSatisfied", o.done).
		Own("criteria", []byte("[]")).Own("remainingWork", []byte("[]")).Object()
	// A model's error can look like an answer: who reads the result sees
	// whether a model was paid for it.
	evidence := fields.New().Text("kind", "agent_turn").Text("provenance", provenance).Short("turnId", o.turnID).
		Short("stopReason", o.stop).Number("messages", int64(o.messages)).Number("completedItems", int64(o.completed)).
		Truth("usageReported", o.usage).Object()
	f := fields.New().Text("schema", protocol.SchemaResult).Text("reportedWorkDisposition", string(disposition)).
		Text("summary", summary).Own("completionClaim", claim).Own("evidence", array([][]byte{evidence})).
		Own("verification", []byte("[]")).Own("attentionRequests", []byte("[]")).Own("artifacts", []byte("[]")).
		Text("provenance", provenance)
	if !o.done {
		key := o.turnID
		if key == "" {
			key = "session"
		}
		f.Own("continuation", fields.New().Text("kind", "continue_session").
			Text("summary", text.HeadRunes(summary, maxShort)).Text("idempotencyKey", key).Object())
	}
	s.say(protocol.MessageResult, fields.New().Own("result", f.Object()).Object())
}
