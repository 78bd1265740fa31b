package fake

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"prp/protocol"
)

// Load reads and parses a script file. Its errors name the file.
func Load(path string) (*Script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxScriptBytes+1))
	if err != nil {
		return nil, err
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Parse reads a script: one JSON object with unique names, at most
// [MaxScriptBytes] long. It returns a whole script or an error that names the
// path of the first mistake. It does not keep data.
func Parse(data []byte) (*Script, error) {
	if len(data) > MaxScriptBytes {
		return nil, fmt.Errorf("expected at most %d bytes, got more", MaxScriptBytes)
	}
	raw, err := readDocument(data)
	if err != nil {
		return nil, err
	}
	var problem error
	o := newObject(raw, "", "a script", 0, &problem)
	s := &Script{
		Schema:      o.choice("schema", protocol.SchemaScript),
		Name:        o.text("name", 1, protocol.MaxIDLen),
		Description: o.optionalText("description", 0, 0),
		NoHandshake: o.flag("no_handshake"),
		Steps:       o.steps("steps"),
	}
	o.done()
	if problem != nil {
		return nil, problem
	}
	return s, nil
}

// readDocument checks the JSON of a whole file and returns its one value.
func readDocument(data []byte) (jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	raw, err := dec.ReadValue()
	if err == nil {
		raw = bytes.Clone(raw)
		if _, err = dec.ReadToken(); err == nil {
			return nil, errors.New("expected one JSON object, got more after it")
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return nil, locate(data, err)
	}
	// What the wire refuses would only fail later, in the middle of a run.
	if err := protocol.CheckJSON(raw); err != nil {
		return nil, fmt.Errorf("expected valid JSON: %w", err)
	}
	return raw, nil
}

// locate adds the line to a syntax error, counted from 1.
func locate(data []byte, err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("expected a JSON object, got nothing")
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) || syntax.ByteOffset > int64(len(data)) {
		return fmt.Errorf("expected valid JSON: %w", err)
	}
	line := 1 + bytes.Count(data[:syntax.ByteOffset], []byte("\n"))
	return fmt.Errorf("line %d: expected valid JSON: %w", line, syntax.Err)
}

func parseStep(raw jsontext.Value, path string, depth int, problem *error) Step {
	o := newObject(raw, path, "a step", depth, problem)
	value := o.get("kind")
	name, ok := unquote(value)
	if !ok {
		o.wrong("kind", "a kind of step", value)
		return nil
	}
	k, ok := kindNamed(name)
	if !ok {
		o.fail("kind", fmt.Sprintf("unknown kind %s%s", strconv.Quote(shorten(name)), suggest(name, StepKinds())))
		return nil
	}
	o.what = fmt.Sprintf("a %q step", name)
	step := k.parse(o)
	o.done()
	return step
}

func parseDelay(o *object) Step {
	return &Delay{Kind: "delay", Milliseconds: o.integer("milliseconds", 0, MaxMilliseconds)}
}

func parseLog(o *object) Step {
	return &Log{Kind: "log", Stream: o.choice("stream", "stdout", "stderr"), Text: o.text("text", 0, 0)}
}

func parseEvent(o *object) Step {
	return &Event{
		Kind:      "event",
		EventType: o.text("event_type", 1, protocol.MaxIDLen),
		TurnID:    o.optionalText("turn_id", 1, protocol.MaxIDLen),
		ItemID:    o.optionalText("item_id", 1, protocol.MaxIDLen),
		Payload:   o.object("payload"),
	}
}

func parseRequest(o *object) Step {
	return &Request{Kind: "request", Request: o.object("request")}
}

func parseAwaitResolution(o *object) Step {
	return &AwaitResolution{Kind: "await_resolution", RequestID: o.text("request_id", 1, protocol.MaxIDLen)}
}

func parseAwaitInterrupt(o *object) Step {
	return &AwaitInterrupt{Kind: "await_interrupt", HangAtEnd: o.flag("hang_at_end")}
}

func parseAwaitCommand(o *object) Step {
	return &AwaitCommand{Kind: "await_command", CommandType: o.choice("command_type", harnessCommands...)}
}

// harnessCommands are the commands that a runner passes on to a harness.
var harnessCommands = []string{
	string(protocol.SessionOpen), string(protocol.TurnStart), string(protocol.TurnSteer),
	string(protocol.TurnInterrupt), string(protocol.TurnStop), string(protocol.RequestResolve),
	string(protocol.SessionClose), string(protocol.RunCancel),
}

func parseResult(o *object) Step { return &Result{Kind: "result", Payload: o.object("payload")} }

func parseTerminal(o *object) Step { return &Terminal{Kind: "terminal", Payload: o.object("payload")} }

func parseExit(o *object) Step {
	return &Exit{Kind: "exit", Code: o.integer("code", 0, MaxExitCode)}
}

func parseReady(*object) Step { return &Ready{Kind: "ready"} }

func parseRaw(o *object) Step {
	step := &Raw{Kind: "raw", Messages: o.optionalInteger("messages", 0, MaxRepeatTimes)}
	if o.has("text") == o.has("base64") {
		o.fail("", `expected exactly one of "text" and "base64"`)
	}
	if o.has("text") {
		text := o.text("text", 0, 0)
		step.Text = &text
		return step
	}
	encoded := o.text("base64", 0, 0)
	data, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		o.fail("base64", fmt.Sprintf("expected standard base64, got %s", strconv.Quote(shorten(encoded))))
	}
	step.Base64 = data
	return step
}

func parseStderr(o *object) Step {
	return &Stderr{Kind: "stderr", Text: o.text("text", 0, 0), Times: o.optionalInteger("times", 1, MaxRepeatTimes)}
}

func parseFlood(o *object) Step {
	return &Flood{
		Kind:    "flood",
		Stream:  o.choice("stream", "stdout", "stderr"),
		Bytes:   o.integer("bytes", 0, MaxFloodBytes),
		Newline: o.flag("newline"),
	}
}

func parseRepeat(o *object) Step {
	return &Repeat{Kind: "repeat", Times: o.integer("times", 0, MaxRepeatTimes), Steps: o.steps("steps")}
}

func parseCloseStdin(*object) Step { return &CloseStdin{Kind: "close_stdin"} }

func parseCloseStdout(*object) Step { return &CloseStdout{Kind: "close_stdout"} }

func parseIgnoreSigterm(*object) Step { return &IgnoreSigterm{Kind: "ignore_sigterm"} }

func parseOnSigterm(o *object) Step {
	return &OnSigterm{Kind: "on_sigterm", Steps: o.steps("steps")}
}

func parseStopSelf(*object) Step { return &StopSelf{Kind: "stop_self"} }

func parseHang(*object) Step { return &Hang{Kind: "hang"} }

func parseCrash(o *object) Step {
	return &Crash{Kind: "crash", Signal: o.integer("signal", 1, MaxSignal)}
}

func parseSpawnWorker(o *object) Step {
	w := &SpawnWorker{
		Kind:          "spawn_worker",
		Escape:        EscapeNone,
		IgnoreSigterm: o.flag("ignore_sigterm"),
		HoldStdout:    o.flag("hold_stdout"),
		HoldStderr:    o.flag("hold_stderr"),
		ClearEnv:      o.flag("clear_env"),
		Stopped:       o.flag("stopped"),
		TermForks:     o.flag("term_forks"),
		ForkChain:     o.flag("fork_chain"),
		WritesEveryMS: o.optionalInteger("writes_every_ms", 1, MaxMilliseconds),
		WritesFromSeq: o.optionalInteger("writes_from_seq", 1, MaxRepeatTimes),
		LifetimeMS:    o.optionalInteger("lifetime_ms", 1, MaxMilliseconds),
	}
	if o.has("escape") {
		w.Escape = o.choice("escape", EscapeNone, EscapeSetpgid, EscapeSetsid, EscapeDoubleFork)
	} else {
		o.known = append(o.known, "escape")
	}
	if w.WritesEveryMS > 0 && (!w.HoldStdout || w.Escape == EscapeDoubleFork || w.ForkChain) {
		o.fail("writes_every_ms", "expected hold_stdout, no fork_chain and an escape other than double_fork beside it")
	}
	if w.WritesFromSeq > 0 && w.WritesEveryMS == 0 {
		o.fail("writes_from_seq", "expected writes_every_ms beside it")
	}
	return w
}
