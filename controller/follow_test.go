package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"prp/controller/awaittest"
	"prp/protocol"
)

// A reader that is slow, or does not read at all, never delays a receipt, and
// reads everything later.
func TestSlowReaderDelaysNothing(t *testing.T) {
	c := startFake(t, Config{})
	const events, commands = 2000, 10
	reading, release := make(chan struct{}), make(chan struct{})
	counted := make(chan int, 1)
	go func() {
		n := 0
		for _, err := range c.Events(context.Background()) {
			if err != nil {
				t.Error(err)
				break
			}
			if n++; n == 1 {
				close(reading)
				<-release
			}
		}
		counted <- n
	}()
	for range commands {
		if err := order(t, c, orders{Events: events}); err != nil {
			t.Fatal(err)
		}
	}
	awaittest.Came(t, "the first event", reading)
	close(release)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := awaittest.Came(t, "the last event", counted); got != events*commands+1 {
		t.Errorf("the slow reader got %d events, want %d", got, events*commands+1)
	}
}

func TestLaggingReader(t *testing.T) {
	c := startFake(t, Config{MaxRetainedBytes: 64 << 10})
	if err := order(t, c, orders{Events: 2000}); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Events(testContext(t)) {
		if !errors.Is(err, ErrLagged) {
			t.Fatalf("got %v, want ErrLagged", err)
		}
	}
	c.Close()
	trace, err := c.Wait(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if all := trace.Dropped + int64(len(trace.Messages)); trace.Dropped == 0 || all != 2002 {
		t.Errorf("dropped %d and kept %d, want 2002 together", trace.Dropped, len(trace.Messages))
	}
}

func TestBindings(t *testing.T) {
	good := protocol.Event{
		SourceEventID: "event_run_001", SourceSeq: 1, SourceInstanceID: "runner", RunID: "run",
		NormalizedSessionID: "session", EventType: protocol.EventItemDelta, Priority: 2, EmittedAt: "2026-01-01T00:00:00.000Z",
	}
	line := func(change func(e *protocol.Event)) string {
		e := good
		change(&e)
		return strings.TrimSuffix(string(protocol.AppendEvent(nil, &e)), "\n")
	}
	tests := map[string]struct{ raw, path string }{
		"another run":        {line(func(e *protocol.Event) { e.RunID = "other"; e.SourceEventID = "event_other_001" }), "message.event.runId"},
		"another session":    {line(func(e *protocol.Event) { e.NormalizedSessionID = "other" }), "message.event.normalizedSessionId"},
		"another source":     {line(func(e *protocol.Event) { e.SourceInstanceID = "other" }), "message.event.sourceInstanceId"},
		"a gap":              {line(func(e *protocol.Event) { e.SourceSeq = 2; e.SourceEventID = "event_run_002" }), "message.event.sourceSeq"},
		"another event id":   {line(func(e *protocol.Event) { e.SourceEventID = "event_run_1" }), "message.event.sourceEventId"},
		"no message":         {`{"schema":"paperclip.runner.stream.v1","message":{"kind":"news"}}`, "message.kind"},
		"no JSON":            {"hello", ""},
		"a line of 64 KiB":   {`"` + strings.Repeat("x", 64<<10) + `"`, ""},
		"a second of it too": {line(func(*protocol.Event) {}) + "\n" + line(func(*protocol.Event) {}), "message.event.sourceSeq"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := startFake(t, Config{RunID: "run", SessionID: "session", RunnerID: "runner", MaxLineBytes: 32 << 10})
			if err := order(t, c, orders{Raw: []string{tt.raw}}); !errors.Is(err, ErrRunnerGone) {
				t.Errorf("Send: got %v, want ErrRunnerGone", err)
			}
			trace, err := c.Wait(testContext(t))
			var fault *BindingError
			if !errors.As(err, &fault) || fault.Path != tt.path || fault.Detail == "" {
				t.Fatalf("got %v, want a BindingError at %q", err, tt.path)
			}
			if trace.Terminal != nil {
				t.Errorf("a terminal was taken after the fault")
			}
			var last error
			for _, err := range c.Messages(testContext(t)) {
				last = err
			}
			if last != err {
				t.Errorf("a reader ends with %v, want %v", last, err)
			}
		})
	}
}

func TestNothingAfterTheTerminal(t *testing.T) {
	b := binding{}
	e := protocol.Event{SourceEventID: "event_r_001", SourceSeq: 1, SourceKind: "runner", RunID: "r", EventType: protocol.EventRunTerminal}
	if _, detail := b.check(&e); detail != "" {
		t.Fatal(detail)
	}
	e.SourceSeq, e.SourceEventID = 2, "event_r_002"
	if path, _ := b.check(&e); path != "message.event" {
		t.Errorf("an event after the terminal: got path %q, want message.event", path)
	}
}
