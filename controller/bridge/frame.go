package bridge

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"prp/protocol"
)

// Members are the members of a JSON object of a server, by their exact names.
type Members map[string]json.RawMessage

// OpenFrame opens a frame of a server. It is as strict as the lines of the
// protocol are (no name twice, no lone surrogate, a bounded depth), and a frame
// is one object. An error quotes nothing of the frame.
func OpenFrame(frame []byte) (Members, error) {
	if err := protocol.CheckJSON(frame); err != nil {
		return nil, err
	}
	var m Members
	if json.Unmarshal(frame, &m) != nil || m == nil {
		return nil, errors.New("got another value")
	}
	return m, nil
}

// Text is a member that is a string of at most most characters; empty where it
// is absent. Null is no string. An error does not name the member.
func (m Members) Text(name string, most int) (string, error) {
	raw, ok := m[name]
	if !ok {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || string(raw) == "null" {
		return "", errors.New("expected a string")
	}
	if n := utf8.RuneCountInString(s); n > most {
		return "", fmt.Errorf("expected at most %d characters, got %d", most, n)
	}
	return s, nil
}

// Digest is the SHA-256 of the object in canonical JSON, in hexadecimal digits:
// space and the order of members do not count (remote.md rule 3). The values
// are valid JSON, as those of [OpenFrame] are; of others there is none, and it
// is empty.
func (m Members) Digest() string {
	whole, err := json.Marshal(map[string]json.RawMessage(m))
	if err != nil {
		return ""
	}
	canonical, err := protocol.AppendCanonical(nil, whole)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(canonical))
}
