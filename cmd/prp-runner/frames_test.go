//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"prp/protocol"
)

// Lines and their content: F7, F8, F12, F13, F22 to F24 on the harness's side.

// paddedEvent is an event message of exactly n bytes.
func paddedEvent(seq, n int) string {
	line := func(pad int) string {
		return message(seq, "event", `{"eventType":"item.delta","payload":{"delta":"`+strings.Repeat("x", pad)+`"}}`)
	}
	return line(n - len(line(0)))
}

func TestF07EdgeOfALine(t *testing.T) {
	t.Parallel()
	for _, bound := range []int{4096, 64 << 10} {
		for over := range 2 {
			for name, ending := range map[string]string{"lf": "\n", "crlf": "\r\n", "none": ""} {
				for _, how := range []string{"cat", "dd bs=1000 status=none if="} {
					each(t, fmt.Sprintf("%d+%d %s %s", bound, over, name, how), func(t *testing.T) {
						s := ready().result().raw(paddedEvent(3, bound+over) + ending)
						command := s.cat(t)
						if how != "cat" {
							command = how + strings.TrimPrefix(command, "cat ")
						}
						r := start(t, setup{harness: command, flags: []string{"--harness-max-line-bytes", fmt.Sprint(bound)}})
						r.send(protocol.RunPrepare, "")
						e := r.end()
						want := 1 - over
						if n := len(e.of(protocol.EventItemDelta)); n != want {
							t.Errorf("%d events, want %d", n, want)
						}
						if over == 0 {
							e.reason(protocol.ReasonSuccess)
						} else {
							e.violated(protocol.CodeHarnessLineTooLong)
						}
					})
				}
			}
		}
	}
}

func TestF07EdgeOfACommand(t *testing.T) {
	t.Parallel()
	padded := func(n int) string {
		line := func(pad int) string {
			return commandLine("padded", 1, protocol.RunnerDrain, `{"pad":"`+strings.Repeat("x", pad)+`"}`, "")
		}
		return line(n - len(line(0)))
	}
	for _, bound := range []int{4096, 1 << 20} {
		for over := range 2 {
			for name, ending := range map[string]string{"lf": "\n", "crlf": "\r\n", "none": ""} {
				for _, piece := range []int{1 << 30, 1000} {
					each(t, fmt.Sprintf("%d+%d %s %d", bound, over, name, piece), func(t *testing.T) {
						r := start(t, setup{harness: "true", flags: []string{"--command-max-line-bytes", fmt.Sprint(bound)}})
						text := padded(bound+over) + ending
						for len(text) > 0 {
							n := min(piece, len(text))
							r.write(text[:n])
							text = text[n:]
						}
						r.hangUp()
						e := r.end().reason(protocol.ReasonControllerClosed)
						got := e.receipts()["padded"]
						_, tooLong := e.diagnosed(protocol.CodeLineTooLong)
						if over == 0 && (len(got) != 1 || got[0].Status != protocol.ReceiptAccepted || tooLong) {
							t.Errorf("receipts %+v, too long %v; want accepted", got, tooLong)
						}
						if over == 1 && (len(got) != 0 || !tooLong) {
							t.Errorf("receipts %+v, too long %v; want a diagnostic", got, tooLong)
						}
					})
				}
			}
		}
	}
}

func TestF08TailOfAnOverlongLine(t *testing.T) {
	t.Parallel()
	forged := message(3, "result", `{"result":`+doneResult+`}`) + message(4, "terminal", `{"terminal":`+proposal+`}`)
	for _, size := range []int{65_536, 70_000, 1 << 20, 3<<20 + 1} {
		for _, wait := range []string{"", "sleep 600"} {
			each(t, fmt.Sprint(size, wait), func(t *testing.T) {
				s := ready().event("item.delta", `{"delta":"good"}`).raw(strings.Repeat("x", size) + forged + "\n")
				r := start(t, setup{harness: s.result().terminal().then(t, wait), watch: true})
				r.send(protocol.RunPrepare, "")
				e := r.end()
				e.violated(protocol.CodeHarnessLineTooLong)
				if len(e.of(protocol.EventItemDelta)) != 1 || len(e.of(protocol.EventResultProposed)) != 0 {
					t.Errorf("events %v, want the good one and no result", e.types())
				}
				if p := string(e.terminal.HarnessTerminalProposal); p != "null" {
					t.Errorf("proposal %s, want null", p)
				}
				r.checkPeak()
			})
		}
	}
}

func TestF12Numbers(t *testing.T) {
	t.Parallel()
	payload := `{"a":9007199254740993,"b":18446744073709551615,"c":1234567890123456789012345678901234567890,"d":1.10,"e":1E+2,"f":-0,"g":0.1000000000000000055511151231257827}`
	r := start(t, setup{harness: ready().event("item.delta", payload).result().cat(t)})
	r.send(protocol.RunPrepare, "")
	e := r.end().reason(protocol.ReasonSuccess)
	if line := e.raw(e.of(protocol.EventItemDelta)[0]); !strings.Contains(line, payload) {
		t.Errorf("got %s, want the payload %s", line, payload)
	}
}

// harnessLine is one line after ready, between two events.
func harnessLine(t *testing.T, line string) ending {
	s := ready().event("item.started", `{}`).raw(line + "\n")
	s.seq++
	r := start(t, setup{harness: s.event("item.completed", `{}`).result().cat(t)})
	r.send(protocol.RunPrepare, "")
	e := r.end()
	if n := len(e.of(protocol.EventItemStarted)); n != 1 {
		t.Errorf("%d events before the line, want 1", n)
	}
	return e
}

func TestF13HarnessKeys(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"schema":"paperclip.fake_harness.message.v1","messageSeq":3,"messageSeq":3,"type":"event","payload":{"eventType":"item.delta","payload":{}}}`,
		message(3, "event", `{"eventType":"item.delta","payload":{"a":1,"a":1}}`),
		message(3, "event", `{"eventType":"item.delta","payload":{"a":[{"b":1,"\u0062":2}]}}`),
	} {
		each(t, line, func(t *testing.T) {
			e := harnessLine(t, line)
			e.violated(protocol.CodeHarnessInvalidJSON)
			if len(e.of(protocol.EventItemDelta))+len(e.of(protocol.EventItemCompleted)) != 0 {
				t.Errorf("events %v", e.types())
			}
		})
	}
	for _, line := range []string{
		`{"schema":"paperclip.fake_harness.message.v1","messageSeq":3,"MessageSeq":9,"messageſeq":8,"type":"event","Type":"terminal","payload":{"eventType":"item.delta","EventType":"run.terminal","payload":{"a":1,"A":2}}}`,
	} {
		each(t, line, func(t *testing.T) {
			e := harnessLine(t, line).reason(protocol.ReasonSuccess)
			if got := e.of(protocol.EventItemDelta); len(got) != 1 || string(got[0].Payload) != `{"a":1,"A":2}` {
				t.Errorf("events %v", e.types())
			}
		})
	}
}

func TestF22LinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	each(t, "warning before ready", func(t *testing.T) {
		s := &said{}
		s.raw("(node:1) Warning: something\n").say("ready", `{"version":"1"}`)
		r := start(t, setup{harness: s.result().cat(t)})
		r.send(protocol.RunPrepare, "")
		e := r.end()
		e.violated(protocol.CodeHarnessInvalidJSON)
		if len(e.of(protocol.EventHarnessReady)) != 0 {
			t.Errorf("events %v", e.types())
		}
		if got := e.receipts()["c1"]; len(got) != 1 || got[0].Status != protocol.ReceiptRejected {
			t.Errorf("run.prepare got %+v, want rejected", got)
		}
	})
	for _, blank := range []string{"", " ", "\t ", "\r", "\n\n"} {
		each(t, fmt.Sprintf("blank %q", blank), func(t *testing.T) {
			s := ready().raw(blank+"\n").event("item.delta", `{}`).raw(blank + "\n").result()
			r := start(t, setup{harness: s.cat(t)})
			r.send(protocol.RunPrepare, "")
			r.end().reason(protocol.ReasonSuccess)
		})
	}
	for _, line := range []string{"undefined", "123", "[]", "null", "{}", `"x"`, "true", "NaN"} {
		each(t, line, func(t *testing.T) {
			e := harnessLine(t, line).reason(protocol.ReasonProtocolViolation)
			if n := len(e.of(protocol.EventItemCompleted)); n != 0 {
				t.Errorf("%d events after the violation", n)
			}
			if n := len(e.of(protocol.EventHarnessDiag)); n != 1 {
				t.Errorf("%d events harness.diagnostic, want 1", n)
			}
		})
	}
}

func TestF23CodePoints(t *testing.T) {
	t.Parallel()
	const escaped = `a\u2028b\u2029c\u0085d<>&e\ufefff\u0000g`
	want := "a\u2028b\u2029c\u0085d<>&e\ufefff\x00g"
	plain := "a\u2028b\u2029c\u0085d<>&e\ufefff" + `\u0000g`
	for name, text := range map[string]string{"escaped": escaped, "plain": plain} {
		each(t, name, func(t *testing.T) {
			r := start(t, setup{harness: echo(t, ready().event("item.started", `{"text":"`+text+`"}`).result())})
			r.accepted(protocol.RunPrepare, "")
			r.accepted(protocol.SessionOpen, "")
			r.accepted(protocol.TurnStart, `{"turnId":"t","text":"`+text+`"}`)
			r.accepted(protocol.SessionClose, "")
			e := r.end().reason(protocol.ReasonSuccess)
			check := func(where string, payload []byte, path ...string) {
				t.Helper()
				var v any
				if err := json.Unmarshal(payload, &v); err != nil {
					t.Fatal(err)
				}
				for _, name := range path {
					v = v.(map[string]any)[name]
				}
				if v != want {
					t.Errorf("%s: got %q, want %q", where, v, want)
				}
			}
			check("event", e.of(protocol.EventItemStarted)[0].Payload, "text")
			check("turn.submitted", e.of(protocol.EventTurnSubmitted)[0].Payload, "text")
			check("the harness", e.of(protocol.EventItemDelta)[1].Payload, "payload", "text")
		})
	}
}

func TestF24BrokenLines(t *testing.T) {
	t.Parallel()
	good := message(3, "event", `{"eventType":"item.delta","payload":{"text":"CONFIDENTIAL"}}`)
	for name, line := range map[string]string{
		"raw newline in a string": strings.Replace(good, "CONFIDENTIAL", "CONFIDENTIAL\nmore", 1),
		"raw NUL in a string":     strings.Replace(good, "CONFIDENTIAL", "CONFIDENTIAL\x00", 1),
		"raw NUL between":         "\x00" + good,
		"two objects":             good + good,
		"object and garbage":      good + " CONFIDENTIAL",
		"object and comma":        good + ",",
		"invalid UTF-8":           strings.Replace(good, "CONFIDENTIAL", "CONFIDENTIAL\xff", 1),
		"lone surrogate":          strings.Replace(good, "CONFIDENTIAL", `CONFIDENTIAL\ud800`, 1),
		"number out of range":     strings.Replace(good, `"CONFIDENTIAL"`, `["CONFIDENTIAL",1e400]`, 1),
		"too deep":                strings.Replace(good, `"CONFIDENTIAL"`, `["CONFIDENTIAL",`+strings.Repeat("[", 600)+strings.Repeat("]", 600)+`]`, 1),
		"byte order mark":         "\ufeff" + good,
	} {
		each(t, name, func(t *testing.T) {
			e := harnessLine(t, line)
			detail := e.violated(protocol.CodeHarnessInvalidJSON)
			first, _, _ := strings.Cut(line, "\n")
			if !strings.Contains(detail, "line 3") || !strings.Contains(detail, fmt.Sprint(len(first))) {
				t.Errorf("%q does not name line 3 and the length %d", detail, len(first))
			}
			for _, l := range e.r.lines {
				if strings.Contains(string(l), "CONFIDENTIAL") {
					t.Errorf("the content of the line was shown: %.300s", l)
				}
			}
		})
	}
}
