package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if _, err := c.Send(ctx, Command{Type: protocol.RunnerDrain}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: got %v", err)
	}
}

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
	<-reading
	close(release)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-counted; got != events*commands+1 {
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

func TestManyGoroutinesAndNoneLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	c := startFake(t, Config{})
	var wg, senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for range 25 {
				if err := order(t, c, orders{Events: 5}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			var last int64
			for e, err := range c.Events(t.Context()) {
				if err != nil || e.SourceSeq != last+1 {
					t.Errorf("got event %d after %d, %v", e.SourceSeq, last, err)
				}
				last = e.SourceSeq
			}
			if last != 8*25*5+1 {
				t.Errorf("got %d events", last)
			}
		})
	}
	senders.Wait()
	c.Close()
	wg.Wait()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}
