package translate

import (
	"maps"
	"slices"

	"prp/harness/fields"
	"prp/protocol"
)

// metadata is what the agent tells about itself, kept as its last value.
type metadata struct {
	updates int
	bytes   int
	last    value // nil where it is too large to be repeated
}

// update takes a session/update.
func (s *State) update(params object, bytes int) {
	if id := params["sessionId"].text(); s.sessionID != "" && id != s.sessionID {
		s.diagnose("agent_foreign_session", "session/update", "an update of another session", size(bytes))
		return
	}
	u := params["update"].object()
	name := u["sessionUpdate"].text()
	switch name {
	case "usage_update":
		s.usage(params["update"], u)
		return
	case "available_commands_update", "current_mode_update", "config_option_update", "session_info_update":
		s.keep(name, params["update"])
		return
	}
	take := s.taker(name)
	switch {
	case take == nil:
		s.diagnose("agent_unknown_update", name, "an update of a kind that this client does not know", size(bytes))
	case s.turn == nil && !s.replaying:
		s.diagnose("agent_late_update", name, "an update that belongs to no turn", size(bytes))
	default:
		take(u)
	}
}

// taker is what takes an update that belongs to a turn.
func (s *State) taker(name string) func(object) {
	switch name {
	case "agent_message_chunk":
		return func(u object) { s.chunk(kindMessage, u) }
	case "agent_thought_chunk":
		return func(u object) { s.chunk(kindReasoning, u) }
	case "user_message_chunk":
		return func(u object) { s.chunk(kindUser, u) }
	case "tool_call", "tool_call_update":
		return func(u object) { s.toolUpdated(u) }
	case "plan":
		return s.planned
	}
	return nil
}

func (s *State) usage(whole value, u object) {
	if s.turn != nil {
		s.turn.usage = true
	}
	f := fields.New()
	for _, name := range []string{"used", "size", "cost"} {
		f.Raw(name, u[name], maxRaw)
	}
	if !f.Any() {
		f.Raw("usage", whole, maxRaw)
	}
	s.event(protocol.EventUsageReported, s.turnID(), "", f)
}

// keep remembers the last value of a kind of metadata.
func (s *State) keep(name string, v value) {
	m := s.metadata[name]
	if m == nil {
		m = &metadata{}
		s.metadata[name] = m
	}
	m.updates++
	m.bytes, m.last = len(v), nil
	if len(v) <= maxMetadata && protocol.CheckJSON(v) == nil {
		m.last = append(value{}, v...)
	}
}

// metadataFields tells what is known of each kind of metadata.
func (s *State) metadataFields() []byte {
	f := fields.New()
	for _, name := range slices.Sorted(maps.Keys(s.metadata)) {
		m := s.metadata[name]
		one := fields.New().Number("updates", int64(m.updates)).Number("bytes", int64(m.bytes))
		if m.last != nil {
			one.Own("last", m.last)
		} else {
			one.Number("truncatedBytes", int64(m.bytes))
		}
		f.Own(name, one.Object())
	}
	return f.Object()
}
