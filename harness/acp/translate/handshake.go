package translate

import (
	"strings"

	"prp/harness/fields"
	"prp/harness/text"
	"prp/protocol"
)

// protocolVersion is the version of the Agent Client Protocol that is spoken.
const protocolVersion = 1

// agent is what initialize told.
type agent struct {
	name, version       string
	load, resume, close bool
	methods             []string // ids of ways to authenticate
}

// opening is what session.open asked for.
type opening struct {
	sessionID     string // of the agent, to be restored; else a new one
	authenticated bool   // authenticate was tried
}

// initialize offers the agent nothing: neither files nor terminals, which it
// then does itself, inside what the runner contains.
func (s *State) initialize() {
	info := fields.New().Text("name", "prp-harness").Text("title", "prp").Text("version", s.cfg.Version).Object()
	s.call(callInitialize, "initialize", fields.New().Number("protocolVersion", protocolVersion).
		Own("clientCapabilities", []byte("{}")).Own("clientInfo", info).Object())
}

func (s *State) initialized(result object, fault *rpcError) {
	if s.phase != phaseStarting {
		return // the run ended before
	}
	version, _ := result["protocolVersion"].integer()
	switch {
	case fault != nil:
		s.giveUp("the agent refused initialize: " + fault.message)
		return
	case version != protocolVersion:
		s.giveUp("the agent speaks version " + string(short(result["protocolVersion"])) + " of the protocol, expected 1")
		return
	}
	info, can := result["agentInfo"].object(), result["agentCapabilities"].object()
	session := can["sessionCapabilities"].object()
	s.agent = agent{
		name: info["name"].text(), version: info["version"].text(),
		load:   can["loadSession"].kind() == 't',
		resume: session["resume"].kind() == '{',
		close:  session["close"].kind() == '{',
	}
	for _, m := range result["authMethods"].list() {
		s.agent.methods = append(s.agent.methods, m.object()["id"].text())
	}
	s.phase = phaseReady
	s.ready(result)
	s.runQueue()
}

func (s *State) ready(result object) {
	capabilities := fields.New().Truth("interrupt", true).Truth("requests", true).
		Truth("load", s.agent.load).Truth("resume", s.agent.resume).
		Number("protocolVersion", protocolVersion).
		Raw("agentInfo", result["agentInfo"], maxRaw).
		Raw("agentCapabilities", result["agentCapabilities"], maxRaw)
	version := s.agent.version
	if version == "" {
		version = "unknown"
	}
	s.say(protocol.MessageReady, fields.New().Short("version", version).Text("driverKind", "acp").
		Own("capabilities", capabilities.Object()).Object())
}

// short is the start of a value, for a message.
func short(v value) string {
	if v == nil {
		return "nothing"
	}
	head, _ := text.Head(string(v), 64)
	return head
}

// openSession asks for a session. The payload may name one of the agent's that
// goes on: agentSessionId.
func (s *State) openSession(c protocol.HarnessCommand) {
	switch s.phase {
	case phaseStarting:
		s.enqueue(c)
		return
	case phaseReady:
	default:
		s.diagnose("command_ignored", string(c.Type), "there is a session already", nil)
		return
	}
	s.phase = phaseOpening
	payload, _ := parse(c.Payload)
	s.open = opening{sessionID: payload["agentSessionId"].text()}
	s.askForSession()
}

// askForSession restores without a replay where the agent can, since what is
// replayed is known already.
func (s *State) askForSession() {
	where := fields.New().Text("cwd", s.cfg.Cwd).Own("mcpServers", []byte("[]"))
	switch {
	case s.open.sessionID == "":
		s.call(callNew, "session/new", where.Object())
	case s.agent.resume:
		s.sessionID = s.open.sessionID
		s.call(callResume, "session/resume", where.Text("sessionId", s.open.sessionID).Object())
	case s.agent.load:
		s.sessionID, s.replaying = s.open.sessionID, true
		s.call(callLoad, "session/load", where.Text("sessionId", s.open.sessionID).Object())
	default:
		s.sessionFailed(fields.New().Text("code", "restore_unsupported").
			Text("message", "the agent can neither resume nor load a session"))
	}
}

func (s *State) sessionAnswered(kind callKind, result object, fault *rpcError) {
	s.endReplay()
	switch {
	case s.phase != phaseOpening:
		return
	case fault != nil && fault.code == codeAuthRequired && !s.open.authenticated:
		s.authenticate(fault)
		return
	case fault != nil:
		s.sessionFailed(fault.fields("session_refused"))
		return
	}
	t, how := protocol.EventSessionResumed, "resume"
	switch kind {
	case callNew:
		t, how = protocol.EventSessionStarted, ""
		if s.sessionID = result["sessionId"].text(); s.sessionID == "" {
			s.sessionFailed(fields.New().Text("code", "session_refused").Text("message", "the agent named no session"))
			return
		}
	case callLoad:
		how = "load"
	}
	s.phase = phaseOpen
	f := fields.New().Short("agentSessionId", s.sessionID).Text("restoredBy", how).Short("agent", s.agent.name)
	if s.cfg.PID > 0 {
		f.Number("agentPid", int64(s.cfg.PID))
	}
	s.event(t, "", "", f)
	s.event(protocol.EventPhaseChanged, "", "", fields.New().Text("phase", protocol.PhaseExecuting))
	for _, name := range []string{"modes", "models", "configOptions"} {
		if v := result[name]; !v.isNull() {
			s.keep(name, v)
		}
	}
	s.runQueue()
}

// authenticate uses the one method that was configured: others can open a
// browser, or spend another account's money.
func (s *State) authenticate(fault *rpcError) {
	s.open.authenticated = true
	if s.cfg.AuthMethod == "" {
		s.sessionFailed(fault.fields("agent_auth_required").Short("methods", strings.Join(s.agent.methods, " ")))
		return
	}
	s.call(callAuthenticate, "authenticate", fields.New().Text("methodId", s.cfg.AuthMethod).Object())
}

func (s *State) authenticated(fault *rpcError) {
	switch {
	case s.phase != phaseOpening:
	case fault != nil:
		s.sessionFailed(fault.fields("agent_auth_failed"))
	default:
		s.askForSession()
	}
}

// enqueue keeps a command until the session is there.
func (s *State) enqueue(c protocol.HarnessCommand) {
	if len(s.queue) >= maxQueued {
		s.diagnose("command_ignored", string(c.Type), "too many commands wait for the session", nil)
		return
	}
	s.queue = append(s.queue, c)
}

// runQueue takes the commands that waited, as far as they can be taken now.
func (s *State) runQueue() {
	queue := s.queue
	s.queue = nil
	for _, c := range queue {
		s.Command(c)
	}
}
