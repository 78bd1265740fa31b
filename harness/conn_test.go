package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"prp/protocol"
)

// writes keeps each write apart.
type writes struct {
	mu    sync.Mutex
	calls [][]byte
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, bytes.Clone(p))
	return len(p), nil
}

func TestSendFromManyGoroutines(t *testing.T) {
	const senders, messages = 8, 200
	var out writes
	c := New(strings.NewReader(""), &out, protocol.FamilyHarness)
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range messages {
				payload := fmt.Appendf(nil, `{"stream":"stdout","text":"%d %d"}`, s, i)
				if err := c.Send(protocol.MessageLog, payload); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(out.calls) != senders*messages || c.Sent() != senders*messages {
		t.Fatalf("%d writes, %d sent, want %d", len(out.calls), c.Sent(), senders*messages)
	}
	decoder := protocol.NewDecoder()
	next := make(map[string]int) // by sender
	for i, call := range out.calls {
		line, whole := bytes.CutSuffix(call, []byte("\n"))
		var m protocol.HarnessMessage
		fault := decoder.HarnessMessage(line, &m)
		if !whole || fault != nil || m.Seq != int64(i+1) || m.Family != protocol.FamilyHarness {
			t.Fatalf("write %d is %q: %v", i, call, fault)
		}
		sender, number, _ := strings.Cut(m.Log.Text, " ")
		if number != fmt.Sprint(next[sender]) {
			t.Fatalf("sender %s: message %s after %d", sender, number, next[sender]-1)
		}
		next[sender]++
	}
}

func TestSkip(t *testing.T) {
	var out writes
	c := New(strings.NewReader(""), &out, protocol.FamilyFake)
	c.Skip(4)
	if err := c.Send(protocol.MessageDiagnostic, []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	const want = `{"schema":"paperclip.fake_harness.message.v1","messageSeq":5,"type":"diagnostic","payload":{"a":1}}` + "\n"
	if got := string(out.calls[0]); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// TestQueue: what was queued goes out in one write with what is sent next, each
// with its number.
func TestQueue(t *testing.T) {
	var out writes
	c := New(strings.NewReader(""), &out, protocol.FamilyFake)
	for i := range 2 {
		c.Queue(protocol.MessageDiagnostic, []byte(`{"a":1}`))
		c.Queue(protocol.MessageLog, []byte(`{"b":2}`))
		if len(out.calls) != i || c.Sent() != int64(3*i) {
			t.Fatalf("%d writes, %d sent after a Queue", len(out.calls), c.Sent())
		}
		if err := c.Send(protocol.MessageDiagnostic, nil); err != nil {
			t.Fatal(err)
		}
	}
	var want []byte
	for i, m := range []struct {
		t       protocol.MessageType
		payload string
	}{{protocol.MessageDiagnostic, `{"a":1}`}, {protocol.MessageLog, `{"b":2}`}, {protocol.MessageDiagnostic, ``}} {
		want = protocol.AppendMessage(want, protocol.FamilyFake, int64(i+4), m.t, []byte(m.payload))
	}
	if got := out.calls[1]; c.Sent() != 6 || !bytes.Equal(got, want) {
		t.Errorf("sent %d messages, at last %s, want %s", c.Sent(), got, want)
	}
}

func TestSendErrorIsFinal(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	c := New(strings.NewReader(""), write, protocol.FamilyFake)
	read.Close()
	first := c.Send(protocol.MessageDiagnostic, nil)
	if first == nil || !strings.Contains(first.Error(), "message 1 (diagnostic) was not written") {
		t.Fatalf("the error is %v", first)
	}
	if second := c.Send(protocol.MessageDiagnostic, nil); !errors.Is(second, first) {
		t.Errorf("the second error is %v", second)
	}
	if c.Sent() != 0 {
		t.Errorf("%d messages count as sent", c.Sent())
	}
}

type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) / 2, nil }

func TestShortWriteIsAnError(t *testing.T) {
	c := New(strings.NewReader(""), shortWriter{}, protocol.FamilyFake)
	if err := c.Send(protocol.MessageDiagnostic, nil); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("the error is %v", err)
	}
}

func command(id string, payload string) []byte {
	return protocol.AppendHarnessCommand(nil, protocol.FamilyFake, id, protocol.TurnSteer, []byte(payload))
}

func TestReceive(t *testing.T) {
	var in bytes.Buffer
	in.Write(command("a", `{"n":9007199254740993}`))
	in.WriteString("\r\n\n")
	in.Write(bytes.TrimSuffix(command("b", ""), []byte("\n"))) // a last line counts without its end
	c := New(&in, io.Discard, protocol.FamilyFake)
	for _, want := range []struct{ id, payload string }{{"a", `{"n":9007199254740993}`}, {"b", "{}"}} {
		got, err := c.Receive()
		if err != nil || got.CommandID != want.id || got.Type != protocol.TurnSteer || string(got.Payload) != want.payload {
			t.Errorf("received %+v, %v, want %v", got, err, want)
		}
	}
	for range 2 {
		if got, err := c.Receive(); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %+v, %v", got, err)
		}
	}
}

func TestReceiveErrors(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"no JSON", "hello\n", "expected a command"},
		{"other family", string(protocol.AppendHarnessCommand(nil, protocol.FamilyHarness, "a", protocol.RunCancel, nil)), `expected a command of schema "paperclip.fake_harness.command.v1", got "paperclip.harness.command.v1"`},
		{"too long", strings.Repeat("x", MaxCommandLine+1) + "\n", "expected a command of at most 1052672 bytes, got more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := New(strings.NewReader(tt.line), io.Discard, protocol.FamilyFake)
			if got, err := c.Receive(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("received %+v, %v, want the error %q", got, err, tt.want)
			}
		})
	}
}

func TestLargestCommandFits(t *testing.T) {
	// A controller's line may have DefaultCommandLine bytes; what is passed
	// on is at most a schema name longer.
	line := command("a", `{"text":"`+strings.Repeat("x", protocol.DefaultCommandLine)+`"}`)
	if len(line) > MaxCommandLine {
		t.Fatalf("the line has %d bytes", len(line))
	}
	c := New(bytes.NewReader(line), io.Discard, protocol.FamilyFake)
	if _, err := c.Receive(); err != nil {
		t.Error(err)
	}
}

func TestCommands(t *testing.T) {
	read, write := io.Pipe()
	c := New(read, io.Discard, protocol.FamilyFake)
	commands := c.Commands(1)
	go func() {
		for i := range 5 {
			// An error shows as a command that does not come.
			_, _ = write.Write(command(fmt.Sprint(i), ""))
		}
		write.Close()
	}()
	n := 0
	for got := range commands {
		if got.CommandID != fmt.Sprint(n) {
			t.Errorf("command %d is %q", n, got.CommandID)
		}
		n++
	}
	if n != 5 || c.Err() != nil {
		t.Errorf("%d commands, %v", n, c.Err())
	}
}

func TestCommandsEndWithAnError(t *testing.T) {
	c := New(strings.NewReader("garbage\n"+string(command("a", ""))), io.Discard, protocol.FamilyFake)
	for got := range c.Commands(4) {
		t.Errorf("received %+v", got)
	}
	if c.Err() == nil {
		t.Error("no error")
	}
}

func BenchmarkSend(b *testing.B) {
	c := New(strings.NewReader(""), io.Discard, protocol.FamilyFake)
	payload := []byte(`{"eventType":"item.delta","payload":{"delta":"word"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Send(protocol.MessageEvent, payload); err != nil {
			b.Fatal(err)
		}
	}
}
