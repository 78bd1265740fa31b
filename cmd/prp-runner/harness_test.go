//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The objects that harnesses of the tests send.
const (
	doneResult = `{"schema":"paperclip.run_result.v1","reportedWorkDisposition":"done","summary":"done","completionClaim":{"contractRevision":"1","objectiveSatisfied":true,"criteria":[],"remainingWork":[]},"evidence":[],"verification":[],"attentionRequests":[],"artifacts":[]}`
	proposal   = `{"schema":"paperclip.prp.terminal.v1","turnTerminalState":"completed","runTerminalState":"succeeded","reportedWorkDisposition":"done"}`

	result   = `{"kind":"result","payload":` + doneResult + `}`
	terminal = `{"kind":"terminal","payload":` + proposal + `}`
	hang     = `{"kind":"hang"}`
	delta    = `{"kind":"event","event_type":"item.delta","item_id":"item_1","payload":{"delta":"x"}}`
	turnDone = `{"kind":"event","event_type":"turn.completed","payload":{}}`
	turnOver = `{"kind":"event","event_type":"turn.interrupted","payload":{}}`
)

func exit(code int) string { return fmt.Sprintf(`{"kind":"exit","code":%d}`, code) }

func request(id string) string {
	return fmt.Sprintf(`{"kind":"request","request":%s}`, requestObject(id))
}

func requestObject(id string) string {
	return fmt.Sprintf(`{"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":%q,"type":"input","status":"pending","prompt":"?"}`, id)
}

// script is the command line of a fake harness that plays steps.
func script(t *testing.T, steps ...string) string {
	return fakeLine(scriptFile(t, false, steps...))
}

// bare is a script without the handshake: it sends nothing by itself.
func bare(t *testing.T, steps ...string) string {
	return fakeLine(scriptFile(t, true, steps...))
}

func fakeLine(file string) string { return harnessBin + " fake --script " + file }

func scriptFile(t *testing.T, noHandshake bool, steps ...string) string {
	return file(t, "script.json", fmt.Sprintf(`{"schema":"paperclip.fake_harness.script.v1","name":"case","no_handshake":%t,"steps":[%s]}`,
		noHandshake, strings.Join(steps, ",\n")))
}

// file writes a file that lives as long as the test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shell is the command line of a shell harness.
func shell(t *testing.T, text string) string { return "sh " + file(t, "harness.sh", text+"\n") }

// message is one line of a harness without its newline.
func message(seq int, typ, payload string) string {
	return fmt.Sprintf(`{"schema":"paperclip.fake_harness.message.v1","messageSeq":%d,"type":%q,"payload":%s}`, seq, typ, payload)
}

// said numbers the messages of a harness.
type said struct {
	seq  int
	text strings.Builder
}

// ready is what a harness says that has said ready.
func ready() *said {
	s := &said{}
	return s.say("ready", `{"version":"1","capabilities":["steer"]}`)
}

func (s *said) say(typ, payload string) *said {
	s.seq++
	s.text.WriteString(message(s.seq, typ, payload) + "\n")
	return s
}

func (s *said) event(typ, payload string) *said {
	return s.say("event", fmt.Sprintf(`{"eventType":%q,"payload":%s}`, typ, payload))
}

func (s *said) result() *said   { return s.say("result", `{"result":`+doneResult+`}`) }
func (s *said) terminal() *said { return s.say("terminal", `{"terminal":`+proposal+`}`) }

// raw adds bytes that are no message.
func (s *said) raw(text string) *said {
	s.text.WriteString(text)
	return s
}

// cat is the command line of a harness that writes all of it in as few writes
// as can be and exits with 0.
func (s *said) cat(t *testing.T) string { return "cat " + file(t, "said", s.text.String()) }

// then is a shell harness that writes all of it and goes on.
func (s *said) then(t *testing.T, text string) string {
	return shell(t, "cat "+file(t, "said", s.text.String())+"\n"+text)
}

// echo is a harness that says ready, then sends every command that it reads as
// an item.delta with the command as its payload, and exits with 0 at the end
// of its stdin. What it is given to say comes before the first command.
func echo(t *testing.T, s *said) string {
	return s.then(t, fmt.Sprintf(`n=%d
while IFS= read -r line; do
	n=$((n+1))
	printf '{"schema":"paperclip.fake_harness.message.v1","messageSeq":%%d,"type":"event","payload":{"eventType":"item.delta","payload":%%s}}\n' "$n" "$line"
done`, s.seq))
}
