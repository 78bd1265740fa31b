package controller

import (
	"fmt"

	"prp/protocol"
)

// binding is what the events of one run have in common, and how far they are.
// Where an id is empty, the first event decides it (a replay).
type binding struct {
	runID, sessionID, runnerID string
	// last is the sequence number of the last event that was taken.
	last int64
	// ended is true once run.terminal was taken.
	ended bool
}

// check says why e cannot be the next event of the run, as the path of the
// member and a detail; an empty detail is none. A good event is taken.
func (b *binding) check(e *protocol.Event) (path, detail string) {
	if path, detail = b.checkSource(e); detail != "" {
		return path, detail
	}
	switch {
	case b.ended:
		return "message.event", fmt.Sprintf("expected nothing after run.terminal, got %q", e.EventType)
	case e.SourceSeq != b.last+1:
		return "message.event.sourceSeq", fmt.Sprintf("expected %d, got %d", b.last+1, e.SourceSeq)
	}
	b.last = e.SourceSeq
	b.ended = e.EventType == protocol.EventRunTerminal
	return "", ""
}

// checkSource checks everything but the order.
func (b *binding) checkSource(e *protocol.Event) (path, detail string) {
	bound := []struct {
		path string
		want *string
		got  string
	}{
		{"message.event.runId", &b.runID, e.RunID},
		{"message.event.normalizedSessionId", &b.sessionID, e.NormalizedSessionID},
		{"message.event.sourceInstanceId", &b.runnerID, e.SourceInstanceID},
	}
	for _, m := range bound {
		if *m.want == "" {
			*m.want = m.got
		}
		if *m.want != m.got {
			return m.path, fmt.Sprintf("expected %q, got %q", *m.want, m.got)
		}
	}
	if e.SourceKind != protocol.SourceKindRunner {
		return "message.event.sourceKind", fmt.Sprintf("expected %q, got %q", protocol.SourceKindRunner, e.SourceKind)
	}
	if want := protocol.EventID(e.RunID, e.SourceSeq); e.SourceEventID != want {
		return "message.event.sourceEventId", fmt.Sprintf("expected %q, got %q", want, e.SourceEventID)
	}
	return "", ""
}
