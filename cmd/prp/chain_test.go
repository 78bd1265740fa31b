package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"prp/controller"
	"prp/protocol"
)

// drive plays a script to its end, interrupting or answering as it asks. The
// stream goes to tap as well.
func drive(t *testing.T, script string, tap *bytes.Buffer) *controller.Trace {
	t.Helper()
	c := chain(t, script, func(line []byte) { fmt.Fprintf(tap, "%s\n", line) })
	if script == "interrupted" {
		go func() {
			for e, err := range c.Events(t.Context()) {
				if err == nil && e.EventType == protocol.EventItemStarted {
					if err := c.Interrupt(t.Context(), "test"); err != nil {
						t.Error(err)
					}
					return
				}
			}
		}()
	}
	trace, err := c.Drive(t.Context(), controller.Scenario{
		TurnID: "turn_1", Text: "go on",
		Answer: func(_ context.Context, r protocol.Request) (json.RawMessage, error) {
			if r.Type == protocol.RequestPermission {
				return controller.PermissionResponse(controller.Choices(r)[0].Key), nil
			}
			return controller.InputResponse("a text"), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// TestEveryScript: the counts, ends and reasons of spec section 8, and live
// fold and replay fold are equal.
func TestEveryScript(t *testing.T) {
	tests := []struct {
		script string
		events int
		state  protocol.RunTerminalState
		turn   protocol.TurnTerminalState
		reason protocol.Reason
		exit   int
	}{
		{"happy-path", 19, protocol.RunSucceeded, protocol.TurnCompleted, protocol.ReasonSuccess, 0},
		{"permission-input", 20, protocol.RunSucceeded, protocol.TurnCompleted, protocol.ReasonSuccess, 0},
		{"interrupted", 16, protocol.RunCancelled, protocol.TurnInterrupted, protocol.ReasonTurnInterrupted, 130},
		{"error", 15, protocol.RunFailed, protocol.TurnFailed, protocol.ReasonProcessFailed, 7},
		{"duplicate-terminal", 15, protocol.RunSucceeded, protocol.TurnCompleted, protocol.ReasonSuccess, 0},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			var tap bytes.Buffer
			trace := drive(t, tt.script, &tap)
			var s controller.Snapshot
			for _, e := range trace.Events() {
				s.Apply(e)
			}
			replayed, problems, err := controller.Replay(&tap)
			if err != nil || len(problems) > 0 {
				t.Fatal(problems, err)
			}
			if diff := cmp.Diff(s, replayed.Snapshot, cmpopts.IgnoreUnexported(s)); diff != "" {
				t.Errorf("live fold and replay fold differ (-live +replay):\n%s", diff)
			}
			end := trace.Terminal
			if end.RunTerminalState != tt.state || end.TurnTerminalState != tt.turn || end.Reconciliation.Reason != tt.reason {
				t.Errorf("got %+v, want %s, %s, %s", end, tt.state, tt.turn, tt.reason)
			}
			if n := len(trace.Events()); n != tt.events {
				t.Errorf("got %d events, want %d", n, tt.events)
			}
			if s.Exit == nil || s.Exit.ProcessExit.ExitCode == nil || *s.Exit.ProcessExit.ExitCode != tt.exit {
				t.Errorf("the harness's exit is %+v, want %d", s.Exit, tt.exit)
			}
			if !s.Integrity.Complete {
				t.Errorf("the snapshot is not complete: %+v", s.Integrity)
			}
			if !trace.Exit.Success || trace.Forced != "" {
				t.Errorf("the runner ended with %+v, forced %q", trace.Exit, trace.Forced)
			}
		})
	}
}

// TestLinger: a harness that does not end is ended with the runner's stdin.
func TestLinger(t *testing.T) {
	c := chain(t, "linger", nil)
	setGoing(t, c)
	followUntil(t, c, protocol.EventItemStarted)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	trace, err := c.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(trace.Events()); n != 12 {
		t.Errorf("got %d events, want 12", n)
	}
	if got := trace.Terminal.Reconciliation.Reason; got != protocol.ReasonControllerClosed {
		t.Errorf("got %s, want controller_closed", got)
	}
}

// TestRejectedByTheRunner: a command that the run cannot take comes back as a
// typed error, and the run goes on.
func TestRejectedByTheRunner(t *testing.T) {
	c := chain(t, "linger", nil, "--cancel-grace-ms", "10")
	err := c.OpenSession(t.Context())
	var rejected *controller.RejectedError
	if !errors.As(err, &rejected) || rejected.Code() != protocol.CodeNotPrepared {
		t.Fatalf("got %v, want not_prepared", err)
	}
	setGoing(t, c)
	if err := c.StartTurn(t.Context(), "turn_2", "again", nil); !errors.As(err, &rejected) || rejected.Code() != protocol.CodeTurnActive {
		t.Errorf("got %v, want turn_active", err)
	}
	if err := c.Cancel(t.Context()); err != nil {
		t.Errorf("cancel: %v", err)
	}
	followUntil(t, c, protocol.EventRunTerminal)
}

// TestStartFails: a harness that cannot be started is a failed run with its
// reason, not an error of the controller.
func TestStartFails(t *testing.T) {
	c, err := controller.Start(t.Context(), controller.Config{Argv: []string{"prp-runner", "--harness", "/does/not/exist"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	trace, err := c.Drive(t.Context(), controller.Scenario{TurnID: "turn_1", Text: "go on"})
	if err != nil {
		t.Fatal(err)
	}
	if trace.Terminal.Reconciliation.Reason != protocol.ReasonStartFailed || trace.Terminal.Reconciliation.ProcessExit != nil {
		t.Errorf("got %+v, want harness_start_failed without an exit", trace.Terminal)
	}
}
