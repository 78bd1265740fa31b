package fake

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"prp/protocol"
)

func TestStepsThatSpeak(t *testing.T) {
	p := play(t, scriptOf(
		`{"kind":"log","stream":"stderr","text":"a \"b\" \u0000\u2028"}`,
		`{"kind":"event","event_type":"item.started","item_id":"i","payload":{"n":9007199254740993}}`,
		`{"kind":"event","event_type":"item.delta","turn_id":"other","payload":{}}`,
		`{"kind":"event","event_type":"no.such.type","payload":{"a":[1, {"b":null}]}}`,
		`{"kind":"request","request":{"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":"r","type":"input","status":"pending","prompt":"?"}}`,
		`{"kind":"result","payload":{"schema":"nonsense"}}`,
		`{"kind":"terminal","payload":{}}`,
		`{"kind":"ready"}`,
		`{"kind":"event","event_type":"turn.completed","payload":{}}`,
		`{"kind":"event","event_type":"item.failed","payload":{}}`,
		`{"kind":"event","event_type":"session.closed","payload":{}}`,
		`{"kind":"exit","code":42}`,
		`{"kind":"log","stream":"stdout","text":"never"}`,
	))
	p.start()
	p.expect(
		"log stderr: a \"b\" \x00\u2028",
		`event item.started turn_1 i {"n":9007199254740993}`,
		`event item.delta other  {}`,
		`event no.such.type turn_1  {"a":[1,{"b":null}]}`,
	)
	if got := p.hear(); !strings.HasPrefix(got, `request {"schema":"paperclip.runtime_request.v1"`) {
		t.Errorf("request: %s", got)
	}
	p.expect(
		`result {"schema":"nonsense"}`,
		`terminal {}`,
		"ready fake "+Version,
		"event turn.completed turn_1  {}",
		"event item.failed turn_1  {}",
		"event session.closed   {}",
	)
	p.end(42)
	if notes := p.notes(); notes != "" {
		t.Errorf("stderr: %q", notes)
	}
}

func TestReadySaysSteer(t *testing.T) {
	line := protocol.AppendMessage(nil, protocol.FamilyFake, 1, protocol.MessageReady, []byte(readyPayload))
	var m protocol.HarnessMessage
	if fault := protocol.NewDecoder().HarnessMessage(bytes.TrimSpace(line), &m); fault != nil {
		t.Fatal(fault)
	}
	if !protocol.HasCapability(m.Ready.Capabilities, "steer") {
		t.Errorf("capabilities are %s", m.Ready.Capabilities)
	}
}

func TestEndsWithZeroAfterTheLastStep(t *testing.T) {
	p := play(t, scriptOf())
	p.start()
	p.end(0)
}

func TestNoHandshake(t *testing.T) {
	script := strings.Replace(scriptOf(
		`{"kind":"event","event_type":"item.started","payload":{}}`,
		`{"kind":"ready"}`,
		`{"kind":"await_command","command_type":"session.open"}`,
		`{"kind":"await_command","command_type":"turn.start"}`,
		`{"kind":"event","event_type":"turn.started","payload":{}}`,
	), `"steps"`, `"no_handshake":true,"steps"`, 1)
	p := play(t, script)
	p.expect("event item.started   {}", "ready fake "+Version)
	p.say(protocol.SessionOpen, "{}")
	p.say(protocol.TurnStart, `{"turnId":"turn_9","text":"x"}`)
	p.expect("event turn.started turn_9  {}")
	p.end(0)
}

func TestAwaitResolution(t *testing.T) {
	p := play(t, scriptOf(
		`{"kind":"await_resolution","request_id":"first"}`,
		`{"kind":"await_resolution","request_id":"second"}`,
		`{"kind":"await_resolution","request_id":"third"}`,
	))
	p.start()
	p.say(protocol.RequestResolve, `{"requestId":"second","response":{"n":9007199254740993, "s":"\u0061"}}`)
	p.say(protocol.RequestResolve, `{"requestId":"unknown","response":1}`)
	p.say(protocol.RunCancel, `{}`)
	p.say(protocol.RequestResolve, `{"requestId":"first","response":null}`)
	p.expect(
		`event runtime_request.resolved turn_1  {"requestId":"first","response":null}`,
		`event runtime_request.resolved turn_1  {"requestId":"second","response":{"n":9007199254740993, "s":"\u0061"}}`,
	)
	p.say(protocol.RequestResolve, `{"response":"x","requestId":"third"}`)
	p.expect(`event runtime_request.resolved turn_1  {"requestId":"third","response":"x"}`)
	p.end(0)
}

func TestAwaitInterrupt(t *testing.T) {
	p := play(t, scriptOf(`{"kind":"await_interrupt"}`, `{"kind":"await_interrupt"}`, `{"kind":"await_command","command_type":"run.cancel"}`))
	p.start()
	p.say(protocol.RunCancel, `{}`)
	p.say(protocol.SessionClose, `{}`)
	p.say(protocol.TurnInterrupt, `{"reason":"enough \"now\""}`)
	p.expect(`event turn.interrupted turn_1  {"reason":"enough \"now\""}`)
	p.say(protocol.TurnStop, `{}`)
	p.expect(`event turn.interrupted turn_1  {"reason":"interrupted"}`)
	// run.cancel was kept for the step that wants it.
	p.end(0)
}

func TestAwaitCommandStartsAnotherTurn(t *testing.T) {
	p := play(t, scriptOf(
		`{"kind":"await_command","command_type":"turn.steer"}`,
		`{"kind":"event","event_type":"turn.completed","payload":{}}`,
		`{"kind":"await_command","command_type":"turn.start"}`,
		`{"kind":"event","event_type":"turn.started","payload":{}}`,
		`{"kind":"await_command","command_type":"session.close"}`,
	))
	p.start()
	p.say(protocol.TurnSteer, `{"text":"left"}`)
	p.expect("event turn.completed turn_1  {}")
	p.say(protocol.TurnStart, `{"turnId":"turn_2","text":"y"}`)
	p.expect("event turn.started turn_2  {}")
	p.say(protocol.SessionClose, `{}`)
	p.end(0)
}

func TestCommandsWrittenAhead(t *testing.T) {
	p := play(t, scriptOf(`{"kind":"await_interrupt"}`))
	p.say(protocol.TurnInterrupt, `{"reason":"early"}`)
	p.say(protocol.TurnStart, `{"turnId":"turn_1","text":"x"}`)
	p.say(protocol.SessionOpen, `{}`)
	p.stdin.Close()
	p.expect(
		"ready fake "+Version,
		"event session.started   {}", `event runtime.phase.changed   {"phase":"executing"}`,
		"event turn.started turn_1  {}",
		`event turn.interrupted turn_1  {"reason":"early"}`,
	)
	p.end(0)
}

func TestEndOfStdinWhileWaiting(t *testing.T) {
	tests := []struct{ name, step, want string }{
		{"resolution", `{"kind":"await_resolution","request_id":"r"}`, `the answer to "r"`},
		{"interrupt", `{"kind":"await_interrupt"}`, "turn.interrupt or turn.stop"},
		{"command", `{"kind":"await_command","command_type":"turn.steer"}`, "turn.steer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := play(t, scriptOf(tt.step))
			p.start()
			p.stdin.Close()
			p.end(1)
			if want, got := "fake harness: script \"test\": stdin ended while waiting for "+tt.want, p.notes(); !strings.HasPrefix(got, want) {
				t.Errorf("stderr is %q, want %q", got, want)
			}
		})
	}
	t.Run("handshake", func(t *testing.T) {
		p := play(t, scriptOf())
		p.stdin.Close()
		p.expect("ready fake " + Version)
		p.end(1)
	})
}

func TestEndOfStdinElsewhere(t *testing.T) {
	// A script that waits for nothing does not notice the end of stdin.
	p := play(t, scriptOf(`{"kind":"delay","milliseconds":20}`, `{"kind":"log","stream":"stdout","text":"still here"}`))
	p.start()
	p.stdin.Close()
	p.expect("log stdout: still here")
	p.end(0)
}

func TestBrokenCommand(t *testing.T) {
	for name, line := range map[string]string{
		"garbage": "garbage\n",
		"family":  `{"schema":"paperclip.harness.command.v1","commandId":"c","type":"session.open","payload":{}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, scriptOf())
			p.expect("ready fake " + Version)
			if _, err := io.WriteString(p.stdin, line); err != nil {
				t.Fatal(err)
			}
			p.end(1)
			if notes := p.notes(); !strings.Contains(notes, "expected a command") {
				t.Errorf("stderr is %q", notes)
			}
		})
	}
}

func TestRaw(t *testing.T) {
	message := `{\"schema\":\"paperclip.fake_harness.message.v1\",\"messageSeq\":5,\"type\":\"log\",\"payload\":{\"stream\":\"stdout\",\"text\":\"raw\"}}`
	p := play(t, scriptOf(
		`{"kind":"raw","text":"`+message+`\r\n","messages":1}`,
		`{"kind":"log","stream":"stdout","text":"counted"}`,
		`{"kind":"raw","text":"","messages":2}`,
		`{"kind":"log","stream":"stdout","text":"gap"}`,
		`{"kind":"raw","base64":"AP8K"}`,
	))
	p.start()
	p.expect("log stdout: raw", "log stdout: counted")
	p.seq += 2
	p.expect("log stdout: gap")
	line, _, err := p.lines.Next()
	if err != nil || string(line) != "\x00\xff" {
		t.Errorf("raw bytes came as %q, %v", line, err)
	}
	p.end(0)
}

func TestStderr(t *testing.T) {
	p := play(t, scriptOf(`{"kind":"stderr","text":"line {n}\n","times":3}`, `{"kind":"stderr","text":"no end"}`))
	p.start()
	p.end(0)
	if got, want := p.notes(), "line 1\nline 2\nline 3\nno end"; got != want {
		t.Errorf("stderr is %q, want %q", got, want)
	}
}

func TestFlood(t *testing.T) {
	const size = 200_050 // more than a pipe and a chunk, and no whole line at the end
	for _, newline := range []bool{true, false} {
		for _, stream := range []string{"stdout", "stderr"} {
			t.Run(stream+" newline "+strconv.FormatBool(newline), func(t *testing.T) {
				p := play(t, scriptOf(`{"kind":"await_command","command_type":"turn.steer"}`, `{"kind":"flood","stream":"`+stream+`","bytes":`+strconv.Itoa(size)+`,"newline":`+strconv.FormatBool(newline)+`}`))
				p.start()
				p.say(protocol.TurnSteer, `{"text":"go"}`)
				in := p.stdout
				if stream == "stderr" {
					in = p.stderr
				}
				data, err := io.ReadAll(in)
				if err != nil || len(data) != size {
					t.Fatalf("%d bytes, %v", len(data), err)
				}
				want := 0
				if newline {
					want = (size + FloodLine - 1) / FloodLine
				}
				if lines := bytes.Count(data, []byte("\n")); lines != want {
					t.Errorf("%d newlines, want %d", lines, want)
				}
				if newline && data[size-1] != '\n' {
					t.Error("the last line has no newline")
				}
				p.exit(0)
			})
		}
	}
}

func TestRepeat(t *testing.T) {
	p := play(t, scriptOf(`{"kind":"repeat","times":3,"steps":[
		{"kind":"log","stream":"stdout","text":"outer"},
		{"kind":"repeat","times":2,"steps":[{"kind":"log","stream":"stdout","text":"inner"}]},
		{"kind":"repeat","times":0,"steps":[{"kind":"exit","code":1}]}]}`,
		`{"kind":"repeat","times":5,"steps":[{"kind":"exit","code":3}]}`))
	p.start()
	for range 3 {
		p.expect("log stdout: outer", "log stdout: inner", "log stdout: inner")
	}
	p.end(3)
}

func TestDelay(t *testing.T) {
	t.Run("as written", func(t *testing.T) {
		p := play(t, scriptOf(`{"kind":"delay","milliseconds":300}`))
		begin := time.Now()
		p.start()
		p.end(0)
		if took := time.Since(begin); took < 300*time.Millisecond {
			t.Errorf("a start and a delay of 300 ms took %v", took)
		}
	})
	t.Run("replaced", func(t *testing.T) {
		p := play(t, scriptOf(`{"kind":"delay","milliseconds":86400000}`), "no-delay")
		p.start()
		p.end(0)
	})
}

func TestCloseStdin(t *testing.T) {
	p := play(t, scriptOf(
		`{"kind":"close_stdin"}`,
		`{"kind":"log","stream":"stdout","text":"closed"}`,
		`{"kind":"delay","milliseconds":86400000}`))
	p.start()
	p.expect("log stdout: closed")
	line := protocol.AppendHarnessCommand(nil, protocol.FamilyFake, "c", protocol.RunCancel, nil)
	if _, err := p.stdin.Write(line); err == nil {
		t.Error("a command could be written to a closed stdin")
	}
}

func TestCloseStdout(t *testing.T) {
	p := play(t, scriptOf(`{"kind":"close_stdout"}`, `{"kind":"await_command","command_type":"session.close"}`))
	p.start()
	if line, _, err := p.lines.Next(); err != io.EOF {
		t.Fatalf("expected the end of stdout, got %q, %v", line, err)
	}
	p.say(protocol.SessionClose, "{}")
	p.exit(0)

	p = play(t, scriptOf(`{"kind":"close_stdout"}`, `{"kind":"log","stream":"stdout","text":"x"}`))
	p.start()
	p.end(1)
}

func TestLostStdout(t *testing.T) {
	p := play(t, scriptOf(`{"kind":"await_command","command_type":"turn.steer"}`, `{"kind":"log","stream":"stdout","text":"x"}`, `{"kind":"hang"}`))
	p.start()
	p.stdout.Close()
	p.say(protocol.TurnSteer, `{"text":"x"}`)
	p.exit(1)
	if notes := p.notes(); !strings.Contains(notes, "message 5 (log) was not written") {
		t.Errorf("stderr is %q", notes)
	}
}
