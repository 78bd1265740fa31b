package protocol

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const sampleCommand = `{"schema":"paperclip.prp.command.v1","commandId":"c1","controllerSeq":3,"type":"turn.start",` +
	`"issuedAt":"2026-01-02T03:04:05Z","deadlineAt":"2026-01-02T03:04:06.5+01:00",` +
	`"precondition":{"runnerState":["ready"],"runState":[],"activeTurnId":null},` +
	`"payload":{"turnId":"turn_1","text":"do it","model":{"x":[1,2]}}}`

func decodeCommand(t *testing.T, line string) Command {
	t.Helper()
	c, fault := NewDecoder().Command([]byte(line))
	if fault != nil {
		t.Fatalf("%.200s: %v", line, fault)
	}
	return c
}

func TestCommand(t *testing.T) {
	c := decodeCommand(t, sampleCommand)
	if c.Schema != SchemaCommand || c.CommandID != "c1" || c.ControllerSeq != 3 || c.Type != TurnStart {
		t.Errorf("got %+v", c)
	}
	if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); !c.IssuedAt.Equal(want) {
		t.Errorf("issuedAt is %v, want %v", c.IssuedAt, want)
	}
	if want := time.Date(2026, 1, 2, 2, 4, 6, 5e8, time.UTC); c.DeadlineAt == nil || !c.DeadlineAt.Equal(want) {
		t.Errorf("deadlineAt is %v, want %v", c.DeadlineAt, want)
	}
	p := c.Precondition
	if p == nil || len(p.RunnerState) != 1 || p.RunnerState[0] != RunnerReady || p.SessionState != nil {
		t.Fatalf("precondition is %+v", p)
	}
	if p.RunState == nil || len(p.RunState) != 0 {
		t.Errorf("an empty list, which nothing satisfies, was read as %v", p.RunState)
	}
	if p.ActiveTurnID == nil || *p.ActiveTurnID != "" {
		t.Errorf("activeTurnId null was read as %v", p.ActiveTurnID)
	}
	if want := (CommandArgs{TurnID: "turn_1", Text: "do it"}); c.Args != want {
		t.Errorf("args are %+v, want %+v", c.Args, want)
	}
	if got, want := string(c.Payload), `{"turnId":"turn_1","text":"do it","model":{"x":[1,2]}}`; got != want {
		t.Errorf("payload is %s, want %s", got, want)
	}
	if text, err := AppendCanonical(nil, []byte(sampleCommand)); err != nil || c.Digest != digestOfText(text) {
		t.Errorf("the digest is not that of the line (%v)", err)
	}
}

func TestCommandForms(t *testing.T) {
	const head = `{"schema":"prp.command.v1","commandId":"c","controllerSeq":1,"issuedAt":"2026-01-02T03:04:05Z","type":`
	for _, c := range []struct {
		line string
		args CommandArgs
	}{
		{`"run.prepare"}`, CommandArgs{}},
		{`"run.prepare","payload":{},"extra":{"a":null},"CommandID":7}`, CommandArgs{}},
		{`"turn.steer","payload":{"text":""}}`, CommandArgs{}},
		{`"turn.steer","payload":{"text":"x","turnId":"t"}}`, CommandArgs{Text: "x", TurnID: "t"}},
		{`"turn.stop"}`, CommandArgs{}},
		{`"turn.interrupt","payload":{"reason":"r\u0000","turnId":"t"}}`, CommandArgs{Reason: "r\x00", TurnID: "t"}},
		{`"request.resolve","payload":{"requestId":"r","response":null}}`, CommandArgs{RequestID: "r"}},
		{`"something.else","payload":{"turnId":5}}`, CommandArgs{}},
	} {
		got := decodeCommand(t, head+c.line)
		if got.Args != c.args {
			t.Errorf("%s: args are %+v, want %+v", c.line, got.Args, c.args)
		}
		if len(got.Payload) == 0 {
			t.Errorf("%s: no payload, want {} where it is absent", c.line)
		}
	}
}

// edit changes one member of the sample command.
func edit(t *testing.T, old, with string) string {
	t.Helper()
	if !strings.Contains(sampleCommand, old) {
		t.Fatalf("the sample has no %s", old)
	}
	return strings.Replace(sampleCommand, old, with, 1)
}

func TestCommandFaults(t *testing.T) {
	long := strings.Repeat("é", MaxIDLen)
	decodeCommand(t, edit(t, `"c1"`, `"`+long+`"`))
	for _, c := range []struct {
		old, with  string
		code       Code
		answerable bool
	}{
		{`"paperclip.prp.command.v1"`, `"paperclip.prp.command.v2"`, CodeUnsupportedSchema, true},
		{`"paperclip.prp.command.v1"`, `"PRP.command.v1"`, CodeUnsupportedSchema, true},
		{`"paperclip.prp.command.v1"`, `null`, CodeUnsupportedSchema, true},
		{`"schema"`, `"Schema"`, CodeUnsupportedSchema, true},
		{`"c1"`, `""`, CodeInvalidCommand, false},
		{`"c1"`, `"` + long + `x"`, CodeInvalidCommand, false},
		{`"c1"`, `7`, CodeInvalidCommand, false},
		{`"commandId"`, `"commandid"`, CodeInvalidCommand, false},
		{`:3,`, `:0,`, CodeInvalidCommand, false},
		{`:3,`, `:-1,`, CodeInvalidCommand, false},
		{`:3,`, `:3.5,`, CodeInvalidCommand, false},
		{`:3,`, `:"3",`, CodeInvalidCommand, false},
		{`:3,`, `:9007199254740992,`, CodeInvalidCommand, false},
		{`"turn.start"`, `null`, CodeInvalidCommand, true},
		{`"turn.start"`, `""`, CodeInvalidCommand, true},
		{`"2026-01-02T03:04:05Z"`, `"yesterday"`, CodeInvalidCommand, true},
		{`"issuedAt"`, `"issued"`, CodeInvalidCommand, true},
		{`"2026-01-02T03:04:06.5+01:00"`, `null`, CodeInvalidCommand, true},
		{`{"runnerState":["ready"],"runState":[],"activeTurnId":null}`, `null`, CodeInvalidCommand, true},
		{`["ready"]`, `"ready"`, CodeInvalidCommand, true},
		{`["ready"]`, `[null]`, CodeInvalidCommand, true},
		{`"activeTurnId":null`, `"activeTurnId":""`, CodeInvalidCommand, true},
		{`"activeTurnId":null`, `"activeTurnId":1`, CodeInvalidCommand, true},
		{`"turn_1"`, `""`, CodeInvalidCommand, true},
		{`"turnId"`, `"turnid"`, CodeInvalidCommand, true},
		{`"do it"`, `["do it"]`, CodeInvalidCommand, true},
		{`"payload":{`, `"payload":null,"x":{`, CodeInvalidCommand, true},
		{`"payload":{`, `"payload":[],"x":{`, CodeInvalidCommand, true},
		{`"payload"`, `"commandId"`, CodeInvalidJSON, false},
		{`"do it"`, `"do it`, CodeInvalidJSON, false},
		{`[1,2]`, `[1,2,1e999]`, CodeInvalidJSON, false},
	} {
		line := edit(t, c.old, c.with)
		got, fault := NewDecoder().Command([]byte(line))
		if fault == nil {
			t.Errorf("%s instead of %s was taken", c.with, c.old)
			continue
		}
		if fault.Code != c.code || fault.Answerable != c.answerable || fault.Detail == "" {
			t.Errorf("%s instead of %s: got %+v, want %s, answerable %v", c.with, c.old, fault, c.code, c.answerable)
		}
		if c.answerable && (fault.CommandID != "c1" || fault.ControllerSeq != 3) {
			t.Errorf("%s: the fault is addressed to %q, %d", c.with, fault.CommandID, fault.ControllerSeq)
		}
		if !c.answerable && (fault.CommandID != "" || fault.ControllerSeq != 0) {
			t.Errorf("%s: a fault without an address has %q, %d", c.with, fault.CommandID, fault.ControllerSeq)
		}
		if !reflect.DeepEqual(got, Command{}) {
			t.Errorf("%s: a fault and a command as well: %+v", c.with, got)
		}
	}
}

// One is one however it is written.
func TestCommandSequenceForms(t *testing.T) {
	for _, form := range []string{"3.0", "3e0", "30e-1", "0.3E1"} {
		if c := decodeCommand(t, edit(t, ":3,", ":"+form+",")); c.ControllerSeq != 3 {
			t.Errorf("%s was read as %d", form, c.ControllerSeq)
		}
	}
}

func TestCommandRefusesWhatIsNoObject(t *testing.T) {
	for _, line := range append(invalidJSON(), "null", "[]", "1", `"x"`, "true", "["+sampleCommand+"]") {
		_, fault := NewDecoder().Command([]byte(line))
		if fault == nil || fault.Code != CodeInvalidJSON || fault.Answerable {
			t.Errorf("%.60q: got %v, want %s without an address", line, fault, CodeInvalidJSON)
		}
	}
}

// F10: a command repeated in another spelling is the same command.
func TestF10CommandDigest(t *testing.T) {
	c := decodeCommand(t, sampleCommand)
	again := decodeCommand(t, string(respell(t, []byte(sampleCommand))))
	if c.Digest != again.Digest {
		t.Error("another spelling of the same content has another digest")
	}
	if again.Args != c.Args || again.CommandID != c.CommandID || again.ControllerSeq != c.ControllerSeq {
		t.Errorf("another spelling was read as %+v", again)
	}
}

// F11: other content is another command.
func TestF11CommandDigest(t *testing.T) {
	want := decodeCommand(t, sampleCommand).Digest
	for _, c := range [][2]string{
		{`[1,2]`, `[2,1]`},
		{`[1,2]`, `[1,3]`},
		{`"model"`, `"added":null,"model"`},
		{`"turn.start"`, `"turn.other"`},
		{`"do it"`, `"do It"`},
		{`"paperclip.prp.command.v1"`, `"prp.command.v1"`},
	} {
		if decodeCommand(t, edit(t, c[0], c[1])).Digest == want {
			t.Errorf("%s instead of %s has the same digest", c[1], c[0])
		}
	}
}

// F13: a repeated name is malformed; names that differ in case or by a long s
// are extra members. There are never two readings.
func TestF13Names(t *testing.T) {
	_, fault := NewDecoder().Command([]byte(edit(t, `"type"`, `"controllerSeq":4,"type"`)))
	if fault == nil || fault.Code != CodeInvalidJSON {
		t.Errorf("a repeated name: got %v", fault)
	}
	_, fault = NewDecoder().Command([]byte(edit(t, `"type"`, `"controller\u0053eq":4,"type"`)))
	if fault == nil || fault.Code != CodeInvalidJSON {
		t.Errorf("a repeated name with an escape: got %v", fault)
	}
	for _, name := range []string{"CONTROLLERSEQ", "controllerseq", "controllerſeq", "commandID", "Payload"} {
		c := decodeCommand(t, edit(t, `"type"`, fmt.Sprintf(`%q:99,"type"`, name)))
		if c.ControllerSeq != 3 || c.CommandID != "c1" {
			t.Errorf("%s was taken for a member of the protocol: %+v", name, c)
		}
		_, fault := NewDecoder().Command([]byte(edit(t, `"controllerSeq"`, fmt.Sprintf("%q", name))))
		if fault == nil || fault.Code != CodeInvalidCommand {
			t.Errorf("%s instead of controllerSeq: got %v", name, fault)
		}
	}
	if c := decodeCommand(t, edit(t, `"controllerSeq"`, `"\u0063ontrollerSeq"`)); c.ControllerSeq != 3 {
		t.Errorf("a name with an escape was not recognized: %+v", c)
	}
}

// F36: what follows a command spoils it.
func TestF36Garbage(t *testing.T) {
	for _, garbage := range []string{"x", "{}", sampleCommand, ",", "]", "}", "\x00", "null", " 1", "\u00a0", "\ufeff"} {
		_, fault := NewDecoder().Command([]byte(sampleCommand + garbage))
		if fault == nil || fault.Code != CodeInvalidJSON || fault.Answerable {
			t.Errorf("followed by %.20q: got %v", garbage, fault)
		}
	}
	decodeCommand(t, " \t"+sampleCommand+" \r\t ")
}

// A decoder gives memory back that one large command needed, and a command
// does not depend on the decoder's earlier lines.
func TestDecoderIsReusable(t *testing.T) {
	d := NewDecoder()
	large := edit(t, `"do it"`, `"`+strings.Repeat(`\u0061`, 1<<17)+`"`)
	for range 2 {
		if _, fault := d.Command([]byte(large)); fault != nil {
			t.Fatal(fault)
		}
		if _, fault := d.Command([]byte(`{"broken":[`)); fault == nil {
			t.Fatal("half a line was taken")
		}
		c, fault := d.Command([]byte(sampleCommand))
		if fault != nil || c.Digest != decodeCommand(t, sampleCommand).Digest {
			t.Fatalf("got %v", fault)
		}
	}
	if kept := cap(d.text) + cap(d.canon.scratch) + cap(d.canon.keys); kept > 3*keepScratch {
		t.Errorf("%d bytes of scratch are kept", kept)
	}
}

func FuzzCommand(f *testing.F) {
	f.Add([]byte(sampleCommand))
	f.Add([]byte(`{"schema":"prp.command.v1","commandId":"c","controllerSeq":1e0,"type":"turn.stop","issuedAt":"2026-06-30T23:59:60z"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, fault := NewDecoder().Command(line)
		if fault != nil {
			if !reflect.DeepEqual(c, Command{}) {
				t.Fatalf("a fault and a command as well: %+v", c)
			}
			if fault.Answerable != (fault.CommandID != "") || fault.Answerable != (fault.ControllerSeq > 0) {
				t.Fatalf("half an address: %+v", fault)
			}
			return
		}
		printed := AppendCommand(nil, &c)
		again, fault := NewDecoder().Command(printed[:len(printed)-1])
		if fault != nil {
			t.Fatalf("%q is printed as %q: %v", line, printed, fault)
		}
		if !again.IssuedAt.Equal(c.IssuedAt) || (c.DeadlineAt == nil) != (again.DeadlineAt == nil) || c.DeadlineAt != nil && !c.DeadlineAt.Equal(*again.DeadlineAt) {
			t.Fatalf("%q is printed as %q, with another time", line, printed)
		}
		if again.Args != c.Args || !reflect.DeepEqual(again.Precondition, c.Precondition) || string(again.Payload) != string(c.Payload) {
			t.Fatalf("%q is printed as %q", line, printed)
		}
		if more := AppendCommand(nil, &again); string(more) != string(printed) {
			t.Fatalf("%q is printed as %q and then as %q", line, printed, more)
		}
	})
}
