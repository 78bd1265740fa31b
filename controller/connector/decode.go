package connector

import (
	"encoding/json"
	"errors"

	"prp/controller/bridge"
)

// inbound is a frame of the server. Exactly what belongs to its type is set.
type inbound struct {
	kind        string
	id, replyTo string
	runID       string
	create      *createRun
	ack         *registerAck
	seq         int64 // of event_ack
	answer      serverAnswer
	err         *Error
	// bad is a frame that cannot be handled, and why.
	bad *Error
}

// serverAnswer has the members of the answers to our requests.
type serverAnswer struct {
	RequestID       string `json:"request_id"`
	ApprovalID      string `json:"approval_id"`
	ApprovedBy      string `json:"approved_by"`
	ArgumentsDigest string `json:"arguments_digest"`
	Reason          string `json:"reason"`
	HandoffID       string `json:"handoff_id"`
	Status          string `json:"status"`
	NewRunID        string `json:"new_run_id"`
	ArtifactID      string `json:"artifact_id"`
	UploadURL       string `json:"upload_url"`
	DownloadURL     string `json:"download_url"`
	SHA256          string `json:"sha256"`
	SizeBytes       int64  `json:"size_bytes"`
}

type members = bridge.Members

// decodeFrame reads a frame of the server. It never fails: a frame that cannot
// be read is one whose bad is set.
func decodeFrame(frame []byte) inbound {
	m, err := bridge.OpenFrame(frame)
	if err != nil {
		return inbound{bad: fault(CodeInvalid, "expected a JSON object: %s", err)}
	}
	var in inbound
	for _, member := range []struct {
		name string
		at   *string
	}{{"id", &in.id}, {"reply_to", &in.replyTo}, {"run_id", &in.runID}, {"type", &in.kind}} {
		var bad *Error
		if *member.at, bad = text(m, member.name, maxID); bad != nil && in.bad == nil {
			in.bad = bad
		}
	}
	if in.bad == nil {
		in.decode(m, frame)
	}
	return in
}

// decode reads what belongs to the type.
func (in *inbound) decode(m members, frame []byte) {
	switch in.kind {
	case "":
		in.untyped(m, frame)
	case typeRegisterAck:
		in.ack = new(registerAck)
		in.into(frame, in.ack)
	case typeHeartbeatAck:
	case typeCreateRun:
		in.create, in.bad = decodeCreate(m)
	case typeCancelRun:
		if in.runID == "" {
			in.bad = badField("run_id", "expected a run, got none")
		}
	case typeEventAck:
		var ack struct {
			Seq int64 `json:"seq"`
		}
		if in.into(frame, &ack); in.bad == nil && (ack.Seq < 0 || in.runID == "") {
			in.bad = badField("seq", "expected a run and a number of at least 0")
		}
		in.seq = ack.Seq
	case typeApprovalGranted, typeApprovalDenied, typeHandoffAck, typeUploadURL, typeDownloadURL:
		in.into(frame, &in.answer)
	case typeError:
		in.err = new(Error)
		in.into(frame, in.err)
	default:
		in.bad = fault(CodeUnknownType, "expected a type that a server sends, got %q", in.kind)
	}
}

// untyped takes the answers that the seed shows without a type.
func (in *inbound) untyped(m members, frame []byte) {
	switch {
	case m["upload_url"] != nil:
		in.kind = typeUploadURL
	case m["download_url"] != nil:
		in.kind = typeDownloadURL
	default:
		in.bad = badField("type", "expected a type, got none")
		return
	}
	in.into(frame, &in.answer)
}

func (in *inbound) into(frame []byte, v any) {
	err := bridge.Decode(frame, v)
	if err == nil {
		return
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		in.bad = badField(wrong.Field, "expected a %s, got a %s", wrong.Type, wrong.Value)
		return
	}
	in.bad = fault(CodeInvalid, "expected the members of %s: %s", in.kind, err)
}

// text reads a member that is a string of at most so many characters; empty
// where it is absent.
func text(m members, name string, most int) (string, *Error) {
	s, err := m.Text(name, most)
	if err != nil {
		return "", badField(name, "%s", err)
	}
	return s, nil
}

// decodeCreate checks the form of a create_run; whether it can be done is
// decided elsewhere.
func decodeCreate(m members) (*createRun, *Error) {
	c := &createRun{Context: m["context_bundle"], Handoff: m["handoff"]}
	for _, member := range []struct {
		name string
		at   *string
		most int
	}{{"run_id", &c.RunID, maxID}, {"agent_id", &c.AgentID, maxID}, {"goal", &c.Goal, maxGoal}} {
		value, bad := text(m, member.name, member.most)
		if bad != nil {
			return nil, bad
		}
		if value == "" {
			return nil, badField(member.name, "expected a string that is not empty")
		}
		*member.at = value
	}
	if bad := c.decodeContext(); bad != nil {
		return nil, bad
	}
	if raw := m["constraints"]; raw != nil {
		if bad := c.decodeConstraints(raw); bad != nil {
			return nil, bad
		}
	}
	c.digest = digestOf(m)
	return c, nil
}

// decodeContext checks the bundle, which goes to the harness as it is.
func (c *createRun) decodeContext() *Error {
	if c.Context == nil {
		return nil
	}
	if n := len(c.Context); n > maxContext {
		return badField("context_bundle", "expected at most %d bytes, got %d", maxContext, n)
	}
	var bundle struct {
		Artifacts []string `json:"artifacts"`
	}
	if c.Context[0] != '{' || bridge.Decode(c.Context, &bundle) != nil {
		return badField("context_bundle", "expected an object with artifacts as a list of strings")
	}
	const maxArtifacts = 100 // each is a request of its own
	if len(bundle.Artifacts) > maxArtifacts {
		return badField("context_bundle.artifacts", "expected at most %d, got %d", maxArtifacts, len(bundle.Artifacts))
	}
	c.Artifacts = bundle.Artifacts
	return nil
}

func (c *createRun) decodeConstraints(raw json.RawMessage) *Error {
	if raw[0] != '{' || bridge.Decode(raw, &c.Constraints) != nil {
		return badField("constraints", "expected an object with max_tokens, timeout_seconds and tools")
	}
	k := &c.Constraints
	switch {
	case k.MaxTokens < 0:
		return badField("constraints.max_tokens", "expected a number of at least 0, got %d", k.MaxTokens)
	case k.TimeoutSeconds < 0 || k.TimeoutSeconds > maxTimeout.Seconds():
		return badField("constraints.timeout_seconds", "expected from 0 to %v, got %v", maxTimeout.Seconds(), k.TimeoutSeconds)
	}
	return nil
}

// digestOf is the digest of the content of a request, without what belongs to
// one try of it.
func digestOf(m members) string {
	content := members{}
	for name, value := range m {
		if name != "id" {
			content[name] = value
		}
	}
	return content.Digest()
}
