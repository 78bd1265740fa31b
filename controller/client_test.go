package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"prp/controller/awaittest"
	"prp/protocol"
)

// patience bounds what should take no time at all, on a loaded machine.
const patience = 30 * time.Second

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// startFake starts the fake runner; the test ends with its end.
func startFake(t *testing.T, cfg Config) *Client {
	t.Helper()
	cfg.Argv = []string{os.Args[0], asFakeRunner}
	cfg.EnvAllow = append(cfg.EnvAllow, "GORACE")
	c, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kill() })
	return c
}

// order sends a command that the fake runner obeys.
func order(t *testing.T, c *Client, o orders) error {
	_, err := c.Send(testContext(t), Command{Type: protocol.RunnerDrain, Payload: o})
	return err
}

func TestSendReturnsTheReceipt(t *testing.T) {
	c := startFake(t, Config{})
	for want := int64(1); want <= 3; want++ {
		r, err := c.Send(testContext(t), Command{Type: protocol.RunnerDrain})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != protocol.ReceiptAccepted || r.ControllerSeq != want {
			t.Errorf("got %+v, want accepted with sequence %d", r, want)
		}
	}
}

// Submitted commands have their order before anybody waits for them, and can
// be waited for in any order, or not at all.
func TestSubmitKeepsTheOrder(t *testing.T) {
	c := startFake(t, Config{})
	type waiter = func(context.Context) (protocol.Receipt, error)
	var waits []waiter
	for range 20 {
		wait, err := c.Submit(testContext(t), Command{Type: protocol.RunnerDrain})
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, wait)
	}
	for i := len(waits) - 1; i >= 0; i -= 2 {
		r, err := waits[i](testContext(t))
		if err != nil || r.ControllerSeq != int64(i+1) {
			t.Errorf("command %d: got %+v, %v", i+1, r, err)
		}
	}
}

func TestSendRejected(t *testing.T) {
	c := startFake(t, Config{})
	err := order(t, c, orders{Reject: protocol.CodeTurnActive})
	var rejected *RejectedError
	if !errors.As(err, &rejected) || rejected.Code() != protocol.CodeTurnActive || rejected.Type != protocol.RunnerDrain {
		t.Fatalf("got %v, want a RejectedError turn_active", err)
	}
	if err := order(t, c, orders{}); err != nil {
		t.Errorf("after a rejection that consumed its number: %v", err)
	}
}

// A rejection by the checks 1 to 3 consumes nothing: the number is used again,
// also where other commands were on the way behind it.
func TestNumberIsGivenAgain(t *testing.T) {
	c := startFake(t, Config{})
	var wg sync.WaitGroup
	for i := range 20 {
		o := orders{Reject: protocol.CodeTurnActive}
		if i%3 == 0 {
			o = orders{Reject: protocol.CodeInvalidCommand, Keep: true}
		}
		wg.Go(func() { order(t, c, o) })
	}
	wg.Wait()
	if err := order(t, c, orders{}); err != nil {
		t.Errorf("the numbering is out of step: %v", err)
	}
}

func TestCommandIsCheckedBeforeItIsSent(t *testing.T) {
	c := startFake(t, Config{MaxCommandBytes: 4096})
	for name, command := range map[string]Command{
		"a payload that is no object": {Type: protocol.RunnerDrain, Payload: []int{1}},
		"a turn without a text":       {Type: protocol.TurnStart, Payload: map[string]any{"turnId": "t"}},
		"too long":                    {Type: protocol.RunnerDrain, Payload: map[string]string{"x": strings.Repeat("x", 5000)}},
		"a payload that is no JSON":   {Type: protocol.RunnerDrain, Payload: []byte{}},
	} {
		if _, err := c.Send(testContext(t), command); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	r, err := c.Send(testContext(t), Command{Type: protocol.RunnerDrain, ID: "mine"})
	if err != nil || r.ControllerSeq != 1 || r.CommandID != "mine" {
		t.Errorf("got %+v, %v; want the first number: what was not sent consumes none", r, err)
	}
	if _, err := c.Send(testContext(t), Command{Type: protocol.RunnerDrain, ID: "mine"}); !errors.Is(err, ErrCommandIDUsed) {
		t.Errorf("the same id again: got %v, want ErrCommandIDUsed", err)
	}
}

// A scenario whose text is no command ends, and says why.
func TestDriveOfWhatCannotBeSent(t *testing.T) {
	c := startFake(t, Config{MaxCommandBytes: 4096})
	ctx := testContext(t)
	_, err := c.Drive(ctx, Scenario{TurnID: "t", Text: strings.Repeat("x", 5000)})
	if ctx.Err() != nil || !errors.Is(err, ErrNotSent) || !strings.Contains(err.Error(), "at most 4096 bytes") {
		t.Errorf("got %v, want ErrNotSent with the reason", err)
	}
}

// awaitReceipt follows the stream until a receipt for the id comes.
func awaitReceipt(t *testing.T, c *Client, id string) protocol.Receipt {
	t.Helper()
	for m, err := range c.Messages(testContext(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == protocol.KindReceipt && m.Receipt.CommandID == id {
			return *m.Receipt
		}
	}
	t.Fatalf("the run ended without a receipt for %q", id)
	return protocol.Receipt{}
}

// A line that is sent as it is has its receipt in the stream, and the numbers
// of the commands after it go on behind what the runner took.
func TestSendLine(t *testing.T) {
	c := startFake(t, Config{})
	line := func(id string, payload string) func(int64) []byte {
		return func(next int64) []byte {
			return fmt.Appendf(nil, `{"schema":"prp.command.v1","commandId":%q,"controllerSeq":%d,"type":"runner.drain",`+
				`"issuedAt":"2026-01-01T00:00:00Z","payload":%s}`, id, next, payload)
		}
	}
	if err := order(t, c, orders{}); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		id, payload string
		seq         int64
	}{
		{"taken", `{}`, 2},
		{"refused", `{"Reject":"turn_active"}`, 3},                       // uses its number up
		{"not even read", `{"Reject":"invalid_command","Keep":true}`, 4}, // does not
	} {
		if err := c.SendLine(testContext(t), line(tt.id, tt.payload)); err != nil {
			t.Fatal(err)
		}
		if r := awaitReceipt(t, c, tt.id); r.ControllerSeq != tt.seq {
			t.Errorf("line %d: got %+v, want the number %d", i, r, tt.seq)
		}
	}
	if r, err := c.Send(testContext(t), Command{Type: protocol.RunnerDrain}); err != nil || r.ControllerSeq != 4 {
		t.Errorf("a command after the lines: got %+v, %v; want the number 4", r, err)
	}
	if err := c.SendLine(testContext(t), func(int64) []byte { return []byte("{}\n{}") }); err == nil {
		t.Error("two lines were taken for one")
	}
	c.Close()
	if err := c.SendLine(testContext(t), line("late", "{}")); !errors.Is(err, ErrClosed) && !errors.Is(err, ErrRunnerGone) {
		t.Errorf("a line after Close: got %v", err)
	}
}

func TestRunnerGone(t *testing.T) {
	c := startFake(t, Config{})
	status := 3
	if err := order(t, c, orders{Silent: true, Exit: &status, Stderr: "first\nlast words\n"}); !errors.Is(err, ErrRunnerGone) {
		t.Errorf("a command without an answer: got %v, want ErrRunnerGone", err)
	}
	trace, err := c.Wait(testContext(t))
	if !errors.Is(err, ErrNoTerminal) {
		t.Errorf("Wait: got %v, want ErrNoTerminal", err)
	}
	if trace.Exit.ExitCode == nil || *trace.Exit.ExitCode != status || trace.Exit.Success || trace.Terminal != nil {
		t.Errorf("got %+v, want exit status 3 and no terminal", trace)
	}
	if trace.Stderr != "first\nlast words\n" {
		t.Errorf("stderr: got %q", trace.Stderr)
	}
	if err := order(t, c, orders{}); !errors.Is(err, ErrRunnerGone) {
		t.Errorf("a command after the end: got %v, want ErrRunnerGone", err)
	}
}

func TestSendContext(t *testing.T) {
	c := startFake(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		_, err := c.Send(ctx, Command{Type: protocol.RunnerDrain, Payload: orders{Silent: true, Stderr: "x"}})
		sent <- err
	}()
	order(t, c, orders{})
	cancel()
	if err := awaittest.Came(t, "the end of Send", sent); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if _, err := c.Send(ctx, Command{Type: protocol.RunnerDrain}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: got %v", err)
	}
}

func TestCloseLadder(t *testing.T) {
	short := Config{CloseGrace: 300 * time.Millisecond, TermGrace: 300 * time.Millisecond}
	tests := []struct {
		name   string
		orders orders
		config Config
		forced string
	}{
		{"the end of stdin is enough", orders{}, Config{}, ""},
		{"SIGTERM is needed", orders{Hang: true}, short, "terminate"},
		{"SIGKILL is needed", orders{Stubborn: true}, short, "kill"},
		{"stdin is closed at the other end", orders{Deaf: true}, short, "terminate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := startFake(t, tt.config)
			if err := order(t, c, tt.orders); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := c.Close(); (err != nil) != (tt.forced != "") {
						t.Errorf("Close: got %v", err)
					}
				})
			}
			wg.Wait()
			trace, _ := c.Wait(testContext(t))
			if trace.Forced != tt.forced {
				t.Errorf("forced: got %q, want %q", trace.Forced, tt.forced)
			}
			if err := order(t, c, orders{}); err == nil {
				t.Error("a command after Close was taken")
			}
			if p, err := os.FindProcess(c.PID()); err == nil && p.Signal(syscall.Signal(0)) == nil {
				t.Error("the runner is still there")
			}
		})
	}
}

// Commands that were queued before Close are still written, in order.
func TestCloseWritesWhatIsQueued(t *testing.T) {
	c := startFake(t, Config{})
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	for range cap(errs) {
		wg.Go(func() { errs <- order(t, c, orders{}) })
	}
	c.Close()
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrRunnerGone) {
			t.Errorf("got %v", err)
		}
	}
	trace, err := c.Wait(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range trace.Messages {
		if m.Kind == protocol.KindReceipt && m.Receipt.ControllerSeq != int64(i+1) {
			t.Errorf("receipt %d has the number %d", i, m.Receipt.ControllerSeq)
		}
	}
}

func TestContextCloses(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Start(ctx, Config{Argv: []string{os.Args[0], asFakeRunner}, EnvAllow: []string{"GORACE"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := order(t, c, orders{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	trace, err := c.Wait(testContext(t))
	if err != nil || trace.Terminal == nil || trace.Forced != "" {
		t.Errorf("got %+v, %v; want a run that ended with its stdin", trace, err)
	}
}

func TestStartFails(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no command line": {},
		"no such program": {Argv: []string{"/does/not/exist"}},
		"a long id":       {Argv: []string{os.Args[0]}, RunID: strings.Repeat("x", 141)},
	} {
		if _, err := Start(t.Context(), cfg); err == nil {
			t.Errorf("%s: started", name)
		}
	}
}

// The runner's environment is small: a token has to be named to be passed on.
func TestEnvironment(t *testing.T) {
	t.Setenv("PRP_TEST_TOKEN", "secret-one")
	t.Setenv("PRP_TEST_ALLOWED", "allowed-one")
	c := startFake(t, Config{EnvAllow: []string{"PRP_TEST_ALLOWED"}})
	if err := order(t, c, orders{Env: true}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	trace, err := c.Wait(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(trace.Stderr, "secret-one") || !strings.Contains(trace.Stderr, "allowed-one") ||
		!strings.Contains(trace.Stderr, "PATH=") {
		t.Errorf("got the environment %s", trace.Stderr)
	}
}

// TestOnEvent: each event that is kept is told, in order, before Done; of an event
// that is not this run's, and of what follows it, nothing.
func TestOnEvent(t *testing.T) {
	foreign := protocol.AppendEvent(nil, &protocol.Event{
		SourceSeq: 1, RunID: "another", EventType: protocol.EventItemDelta, EmittedAt: "2026-01-01T00:00:00.000Z",
	})
	for _, tt := range []struct {
		orders orders
		want   int
	}{{orders{Events: 3}, 4}, {orders{Raw: []string{strings.TrimSpace(string(foreign))}}, 0}} {
		var seen []int64
		c := startFake(t, Config{OnEvent: func(e *protocol.Event) { seen = append(seen, e.SourceSeq) }})
		if err := order(t, c, tt.orders); err != nil && tt.want > 0 {
			t.Fatal(err)
		}
		c.Close()
		awaittest.Came(t, "the end of the run", c.Done())
		for i, seq := range seen {
			if seq != int64(i+1) {
				t.Errorf("the events are %v", seen)
			}
		}
		if len(seen) != tt.want {
			t.Errorf("with %+v there were %d events, want %d", tt.orders, len(seen), tt.want)
		}
	}
}

func TestTapSeesEveryLine(t *testing.T) {
	var buf bytes.Buffer
	c := startFake(t, Config{Tap: func(line []byte) { fmt.Fprintf(&buf, "%s\n", line) }})
	if err := order(t, c, orders{Events: 3}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	r, problems, err := Replay(&buf)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if r.Events != 4 || r.Receipts != 1 {
		t.Errorf("got %d events and %d receipts, want 4 and 1", r.Events, r.Receipts)
	}
}
