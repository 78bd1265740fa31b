package controller

import (
	"encoding/json"
	"maps"
	"slices"

	"prp/protocol"
)

// Snapshot is the state of a run as its events tell it. Only [Snapshot.Apply]
// changes it; the same events in the same order always give the same snapshot.
// The zero value is a run without events.
type Snapshot struct {
	RunID     string `json:"runId"`
	SessionID string `json:"sessionId"`
	// Phase is the last phase of runtime.phase.changed, then "exited" and
	// "ended".
	Phase   string                `json:"phase"`
	Session protocol.SessionState `json:"session"`
	Turns   []Turn                `json:"turns"`
	Items   []Item                `json:"items"`
	// Requests are the questions of the harness, oldest first.
	Requests []RequestState `json:"requests"`
	// Result is the semantic result that was proposed, as it was written.
	Result json.RawMessage `json:"result"`
	// Exit is how the harness ended, nil until then.
	Exit *protocol.HarnessExited `json:"exit"`
	// Terminal is the one end of the run, nil until then.
	Terminal *protocol.Terminal `json:"terminal"`
	Timeline []TimelineEntry    `json:"timeline"`
	// Cursors has for each source the highest sequence number that was applied.
	Cursors   map[string]int64 `json:"cursors"`
	Integrity Integrity        `json:"integrity"`

	places map[itemKey]int // of Items, by what tells them apart
}

// Turn is one turn of the session.
type Turn struct {
	ID string `json:"id"`
	// State is submitted, accepted, started, completed, failed, interrupted
	// or cancelled.
	State string `json:"state"`
	Text  string `json:"text"`
}

// Item is one piece of work inside a turn.
type Item struct {
	ID     string `json:"id"`
	TurnID string `json:"turnId"`
	Kind   string `json:"kind"`
	Title  string `json:"title"`
	// Status is started, completed or failed.
	Status string `json:"status"`
	// Text is every delta, one after the other; without a delta it is the
	// text that the item itself came with.
	Text Text `json:"text"`
}

// Text is a text that grows; it is a string in JSON.
type Text []byte

// String is the text.
func (t Text) String() string { return string(t) }

// MarshalText implements encoding.TextMarshaler.
func (t Text) MarshalText() ([]byte, error) { return t, nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Text) UnmarshalText(b []byte) error {
	*t = append(Text{}, b...)
	return nil
}

// RequestState is a question of the harness and what became of it.
type RequestState struct {
	ID     string               `json:"id"`
	Type   protocol.RequestType `json:"type"`
	Prompt string               `json:"prompt"`
	// Status is pending, resolved, expired or cancelled.
	Status   string          `json:"status"`
	Response json.RawMessage `json:"response"`
}

// TimelineEntry is one applied event as a person reads it.
type TimelineEntry struct {
	Source    string             `json:"source"`
	Seq       int64              `json:"seq"`
	At        string             `json:"at"`
	EventType protocol.EventType `json:"eventType"`
	Summary   string             `json:"summary"`
}

// Gap is a range of sequence numbers of a source that were missing when a
// higher one came. It stays, whatever comes later.
type Gap struct {
	Source string `json:"source"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
}

// Integrity says how far the events can be relied on.
type Integrity struct {
	// Complete is true where nothing is missing, doubled or out of order,
	// and run.terminal is the last event.
	Complete bool `json:"complete"`
	// Duplicates are the ids of events that came again, once each.
	Duplicates []string `json:"duplicates"`
	// OutOfOrder are the ids of events that came after a higher one; they
	// are not applied, since the state has gone on without them.
	OutOfOrder []string `json:"outOfOrder"`
	Gaps       []Gap    `json:"gaps"`
	// Foreign are the ids of events of another run or session.
	Foreign []string `json:"foreign"`
	// Unreadable are the ids of events whose payload has not the shape that
	// their type asks for; they stand in the timeline and change nothing else.
	Unreadable []string `json:"unreadable"`
	// AfterTerminal are the ids of events that came after run.terminal.
	AfterTerminal []string `json:"afterTerminal"`
}

// Apply adds one event. An event that was applied before changes nothing but
// the list of duplicates, and that once; one that comes too late is listed and
// not applied; one that comes early is applied, and the gap before it is
// recorded and never filled. The snapshot keeps slices of e.Payload.
func (s *Snapshot) Apply(e protocol.Event) {
	s.init(&e)
	if e.RunID != s.RunID || e.NormalizedSessionID != s.SessionID {
		addOnce(&s.Integrity.Foreign, e.SourceEventID)
	} else if s.place(&e) {
		if s.Terminal != nil {
			addOnce(&s.Integrity.AfterTerminal, e.SourceEventID)
		} else {
			s.fold(&e)
		}
	}
	s.Integrity.Complete = s.Terminal != nil && s.Integrity.clean()
}

// Clone is a copy that further events of either do not change.
func (s *Snapshot) Clone() *Snapshot {
	c := *s
	c.places = nil // made anew when it is needed
	c.Turns = slices.Clone(s.Turns)
	c.Items = slices.Clone(s.Items)
	for i := range c.Items {
		c.Items[i].Text = slices.Clone(c.Items[i].Text)
	}
	c.Requests = slices.Clone(s.Requests)
	c.Timeline = slices.Clone(s.Timeline)
	c.Cursors = maps.Clone(s.Cursors)
	lists := []*[]string{
		&c.Integrity.Duplicates, &c.Integrity.OutOfOrder, &c.Integrity.Foreign,
		&c.Integrity.Unreadable, &c.Integrity.AfterTerminal,
	}
	for _, list := range lists {
		*list = slices.Clone(*list)
	}
	c.Integrity.Gaps = slices.Clone(s.Integrity.Gaps)
	return &c
}

// clean tells whether nothing was wrong so far.
func (i *Integrity) clean() bool {
	return len(i.Duplicates)+len(i.OutOfOrder)+len(i.Gaps)+len(i.Foreign)+
		len(i.Unreadable)+len(i.AfterTerminal) == 0
}

func (s *Snapshot) init(e *protocol.Event) {
	if s.Cursors != nil {
		return
	}
	s.Cursors = map[string]int64{}
	s.RunID, s.SessionID = e.RunID, e.NormalizedSessionID
	s.Session = protocol.SessionNotStarted
	s.Turns, s.Items, s.Requests, s.Timeline = []Turn{}, []Item{}, []RequestState{}, []TimelineEntry{}
	s.Integrity = Integrity{
		Duplicates: []string{}, OutOfOrder: []string{}, Gaps: []Gap{},
		Foreign: []string{}, Unreadable: []string{}, AfterTerminal: []string{},
	}
}

// place decides by the event's number whether it is to be applied.
func (s *Snapshot) place(e *protocol.Event) bool {
	source := e.SourceInstanceID
	cursor := s.Cursors[source]
	switch {
	case e.SourceSeq == cursor+1:
	case e.SourceSeq > cursor:
		s.Integrity.Gaps = append(s.Integrity.Gaps, Gap{Source: source, From: cursor + 1, To: e.SourceSeq - 1})
	case s.missing(source, e.SourceSeq):
		addOnce(&s.Integrity.OutOfOrder, e.SourceEventID)
		return false
	default:
		addOnce(&s.Integrity.Duplicates, e.SourceEventID)
		return false
	}
	s.Cursors[source] = e.SourceSeq
	return true
}

// missing tells whether a number lies in a gap.
func (s *Snapshot) missing(source string, seq int64) bool {
	return slices.ContainsFunc(s.Integrity.Gaps, func(g Gap) bool {
		return g.Source == source && g.From <= seq && seq <= g.To
	})
}

func addOnce(list *[]string, id string) {
	if !slices.Contains(*list, id) {
		*list = append(*list, id)
	}
}

// fold applies an event that is in its place.
func (s *Snapshot) fold(e *protocol.Event) {
	p, ok := parsePayload(e.Payload)
	ok = s.foldPayload(e, p) && ok
	if !ok {
		addOnce(&s.Integrity.Unreadable, e.SourceEventID)
	}
	s.Timeline = append(s.Timeline, TimelineEntry{
		Source: e.SourceInstanceID, Seq: e.SourceSeq, At: e.EmittedAt,
		EventType: e.EventType, Summary: Summarize(e),
	})
}

// foldPayload is the table of the event types that change the state; false is
// a payload of the wrong shape.
func (s *Snapshot) foldPayload(e *protocol.Event, p payload) bool {
	switch e.EventType {
	case protocol.EventPhaseChanged:
		s.Phase = p.text("phase")
		return s.Phase != ""
	case protocol.EventSessionStarting:
		s.Session = protocol.SessionStarting
	case protocol.EventSessionStarted, protocol.EventSessionResumed:
		s.Session = protocol.SessionRunning
	case protocol.EventSessionClosed:
		s.Session = protocol.SessionClosed
	case protocol.EventSessionFailed:
		s.Session = protocol.SessionFailed
	case protocol.EventTurnSubmitted, protocol.EventTurnAccepted, protocol.EventTurnStarted,
		protocol.EventTurnCompleted, protocol.EventTurnFailed, protocol.EventTurnInterrupted,
		protocol.EventTurnCancelled:
		s.foldTurn(e, p)
	case protocol.EventItemStarted, protocol.EventItemDelta, protocol.EventItemCompleted, protocol.EventItemFailed:
		s.foldItem(e, p)
	case protocol.EventRequestCreated:
		return s.foldRequest(p)
	case protocol.EventRequestResolved, protocol.EventRequestExpired, protocol.EventRequestCancelled:
		return s.endRequest(e, p)
	case protocol.EventResultProposed:
		s.Result = p.raw("result")
		return s.Result != nil
	case protocol.EventHarnessExited:
		s.Phase = "exited"
		x, ok := readExited(e.Payload)
		s.Exit = x
		return ok
	case protocol.EventRunTerminal:
		s.Phase = "ended"
		t, ok := readTerminal(e.Payload)
		s.Terminal = t
		return ok
	}
	return true
}

func (s *Snapshot) foldTurn(e *protocol.Event, p payload) {
	i := slices.IndexFunc(s.Turns, func(t Turn) bool { return t.ID == e.TurnID })
	if i < 0 {
		s.Turns = append(s.Turns, Turn{ID: e.TurnID})
		i = len(s.Turns) - 1
	}
	s.Turns[i].State = lastWord(e.EventType)
	if e.EventType == protocol.EventTurnSubmitted {
		s.Turns[i].Text = p.text("text")
	}
}

func (s *Snapshot) foldItem(e *protocol.Event, p payload) {
	item := s.item(e.TurnID, e.ItemID)
	if kind := p.itemKind(); kind != "" {
		item.Kind = kind
	}
	if title := p.title(); title != "" && item.Title == "" {
		item.Title = title
	}
	if e.EventType == protocol.EventItemDelta {
		item.Text = append(item.Text, p.delta()...)
		return
	}
	item.Status = lastWord(e.EventType)
	if len(item.Text) == 0 {
		item.Text = append(item.Text, p.text("text")...)
	}
}

// item finds an item, or adds it. Most events belong to the last one; the
// others are found by a map, since a run may have very many.
func (s *Snapshot) item(turn, id string) *Item {
	key := itemKey{turn, id}
	if last := len(s.Items) - 1; last >= 0 && s.Items[last].key() == key {
		return &s.Items[last]
	}
	if s.places == nil || len(s.places) != len(s.Items) {
		s.places = make(map[itemKey]int, len(s.Items)+1)
		for i := range s.Items {
			s.places[s.Items[i].key()] = i
		}
	}
	if i, ok := s.places[key]; ok {
		return &s.Items[i]
	}
	s.places[key] = len(s.Items)
	s.Items = append(s.Items, Item{ID: id, TurnID: turn, Status: "started"})
	return &s.Items[len(s.Items)-1]
}

// itemKey is what tells items apart.
type itemKey struct{ turn, id string }

func (i *Item) key() itemKey { return itemKey{i.TurnID, i.ID} }

func (s *Snapshot) foldRequest(p payload) bool {
	q, ok := readQuestion(p["request"])
	if ok && s.request(q.ID) == nil {
		s.Requests = append(s.Requests, q)
	}
	return ok
}

func (s *Snapshot) endRequest(e *protocol.Event, p payload) bool {
	r := s.request(p.text("requestId"))
	if r == nil {
		return false
	}
	r.Status = lastWord(e.EventType)
	r.Response = p.raw("response")
	return true
}

func (s *Snapshot) request(id string) *RequestState {
	for i := range s.Requests {
		if s.Requests[i].ID == id {
			return &s.Requests[i]
		}
	}
	return nil
}

// Pending are the requests that nobody has answered.
func (s *Snapshot) Pending() []RequestState {
	var list []RequestState
	for _, r := range s.Requests {
		if r.Status == protocol.RequestStatusPending {
			list = append(list, r)
		}
	}
	return list
}
