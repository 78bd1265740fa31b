package command

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"prp/harness/text"
)

const (
	// maxTitle bounds the title of the item, in bytes: one line on a screen.
	maxTitle = 200
	// maxLine bounds the command in the item, in bytes.
	maxLine = text.MaxPiece / 2
	// maxTimeout bounds timeoutMs: a day.
	maxTimeout = 24 * time.Hour
)

// Members of turn.start that may decide what is run.
const (
	memberArgv    = "argv"
	memberCommand = "command"
	memberStdin   = "stdin"
	memberTimeout = "timeoutMs"
	memberCwd     = "cwd"
	memberEnv     = "env"
)

// memberText is the text of the turn itself, which every turn has. Allowed it is
// the stdin of the program where there is no other.
const memberText = "text"

// Members lists the members of turn.start that [ParseAllow] knows.
func Members() []string { return append(refusable(), memberText) }

// refusable are the members that a turn has only where somebody wants them.
func refusable() []string {
	return []string{memberArgv, memberCommand, memberStdin, memberTimeout, memberCwd, memberEnv}
}

// Allow is a set of members of turn.start that are heeded. The zero value
// allows none.
type Allow struct{ names []string }

// ParseAllow reads names with commas between them. The error names the one that
// is not known.
func ParseAllow(list string) (Allow, error) {
	var a Allow
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(Members(), name) {
			return Allow{}, fmt.Errorf("expected names out of %s with commas between them, got %q", strings.Join(Members(), ", "), name)
		}
		a.names = append(a.names, name)
	}
	return a, nil
}

// Has reports whether a member is allowed.
func (a Allow) Has(name string) bool { return slices.Contains(a.names, name) }

// turn is what a turn.start asks for.
type turn struct {
	id      string
	argv    []string
	stdin   *string
	timeout time.Duration // 0: none
	cwd     string        // empty: the adapter's own
	env     []variable    // changes to the adapter's own
}

// variable is one of the environment.
type variable struct {
	name, value string
	gone        bool // the program does not see it
}

// readTurn reads the payload of turn.start, a checked object. A member that is
// not allowed is an error: whoever gave it would not expect it to be ignored.
func readTurn(payload []byte, o Options) (turn, error) {
	members := membersOf(payload)
	t := turn{argv: o.Argv}
	t.id, _ = stringOf(members["turnId"])
	for _, name := range refusable() {
		if members[name] != nil && !o.Allow.Has(name) {
			return t, fmt.Errorf("turn.start gives %s, which --from-turn does not allow", name)
		}
	}
	if raw := members[memberArgv]; raw != nil {
		argv, ok := stringsOf(raw)
		if !ok || len(argv) == 0 || argv[0] == "" {
			return t, errors.New("argv: expected a list of strings that begins with a program")
		}
		t.argv = argv
	}
	if raw := members[memberCommand]; raw != nil {
		line, ok := stringOf(raw)
		switch {
		case !ok || line == "":
			return t, errors.New("command: expected a string that is not empty")
		case members[memberArgv] != nil:
			return t, errors.New("expected argv or command, got both")
		}
		t.argv = append(slices.Clone(o.Shell), line)
	}
	if o.Allow.Has(memberText) {
		s, _ := stringOf(members[memberText]) // the protocol has checked it
		t.stdin = &s
	}
	if raw := members[memberStdin]; raw != nil {
		s, ok := stringOf(raw)
		if !ok {
			return t, errors.New("stdin: expected a string")
		}
		t.stdin = &s
	}
	if err := t.readPlace(members); err != nil {
		return t, err
	}
	if raw := members[memberTimeout]; raw != nil {
		ms, ok := integerOf(raw)
		if !ok || ms < 1 || ms > maxTimeout.Milliseconds() {
			return t, fmt.Errorf("timeoutMs: expected an integer from 1 to %d", maxTimeout.Milliseconds())
		}
		t.timeout = time.Duration(ms) * time.Millisecond
	}
	if len(t.argv) == 0 {
		return t, errors.New("expected a program, and neither the command line nor the turn names one")
	}
	return t, nil
}

// readPlace reads where the program runs and what it sees.
func (t *turn) readPlace(members map[string]jsontext.Value) error {
	if raw := members[memberCwd]; raw != nil {
		s, ok := stringOf(raw)
		if !ok || s == "" {
			return errors.New("cwd: expected a string that is not empty")
		}
		t.cwd = s
	}
	if raw := members[memberEnv]; raw != nil {
		env := membersOf(raw)
		if env == nil {
			return errors.New("env: expected an object of strings and nulls")
		}
		for _, name := range slices.Sorted(maps.Keys(env)) {
			v := variable{name: name, gone: env[name].Kind() == 'n'}
			ok := v.gone
			if !ok {
				v.value, ok = stringOf(env[name])
			}
			if !ok || name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(v.value, 0) {
				// The value may be a secret.
				return fmt.Errorf("env: expected names without =, and values that are strings without NUL or null, got %q", name)
			}
			t.env = append(t.env, v)
		}
	}
	return nil
}

// enter makes the adapter's own folder and environment those of the turn, so
// that the program is looked up and started as if the runner had given them.
func (t *turn) enter() error {
	for _, v := range t.env {
		var err error
		if v.gone {
			err = os.Unsetenv(v.name)
		} else {
			err = os.Setenv(v.name, v.value)
		}
		if err != nil {
			return err
		}
	}
	if t.cwd == "" {
		return nil
	}
	return os.Chdir(t.cwd)
}

// line is the command as a person reads it, which is not a shell's input.
func (t *turn) line() string {
	s, _ := text.Valid([]byte(strings.Join(t.argv, " ")))
	head, cut := text.Head(s, maxLine)
	if cut > 0 {
		return fmt.Sprintf("%s... (%d more bytes)", head, cut)
	}
	return head
}

func (t *turn) title() string {
	first, _, more := strings.Cut(t.line(), "\n")
	head, cut := text.Head(first, maxTitle)
	if more || cut > 0 {
		return head + "..."
	}
	return head
}

func reasonOf(payload []byte) string {
	s, _ := stringOf(membersOf(payload)["reason"])
	head, _ := text.Head(s, maxLine)
	return head
}

// membersOf opens an object that was checked; nil where raw is none.
func membersOf(raw []byte) map[string]jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if dec.PeekKind() != '{' {
		return nil
	}
	members := map[string]jsontext.Value{}
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err != nil {
			break
		}
		key := name.String()
		var value jsontext.Value
		if value, err = dec.ReadValue(); err == nil {
			members[key] = value.Clone()
		}
	}
	return members
}

func stringOf(raw jsontext.Value) (string, bool) {
	if raw.Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	return string(s), err == nil
}

func stringsOf(raw jsontext.Value) ([]string, bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if dec.PeekKind() != '[' {
		return nil, false
	}
	var list []string
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != ']' {
		var value jsontext.Value
		if value, err = dec.ReadValue(); err != nil {
			break
		}
		s, ok := stringOf(value)
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, err == nil
}

func integerOf(raw jsontext.Value) (int64, bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	token, err := dec.ReadToken()
	if err != nil || token.Kind() != '0' {
		return 0, false
	}
	f, err := token.Float()
	n := int64(f)
	return n, err == nil && float64(n) == f && f >= -1<<53 && f <= 1<<53
}
