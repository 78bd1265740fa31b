package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"prp/protocol"
	"prp/protocol/jsonl"
)

// asFakeRunner, as the first argument, makes the test binary a fake runner.
const asFakeRunner = "fake-runner"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asFakeRunner {
		os.Exit(fakeRunnerMain(os.Args[2:]))
	}
	// Built with -race, a child would sleep a second before it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// orders are what a command's payload tells the fake runner to do; a command
// without them is accepted.
type orders struct {
	Reject   protocol.Code // answer with this code
	Keep     bool          // with Reject: do not consume the number
	Events   int           // write so many item.delta events before the receipt
	Raw      []string      // write these lines before the receipt
	Silent   bool          // give no receipt
	Stderr   string        // write this to stderr
	Exit     *int          // exit with this status, after the receipt
	Deaf     bool          // close stdin and stay
	Hang     bool          // from now on ignore the end of stdin
	Stubborn bool          // ignore SIGTERM as well
	Env      bool          // write the environment to stderr
}

// fakeRunner is a runner as the contract sees it, without a harness.
type fakeRunner struct {
	event protocol.Event
	next  int64
	hang  bool
}

func fakeRunnerMain(args []string) int {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	f := &fakeRunner{next: 1, event: protocol.Event{
		SourceInstanceID: flags["--runner-id"], RunID: flags["--run-id"], NormalizedSessionID: flags["--session-id"],
	}}
	in := jsonl.NewReader(os.Stdin, protocol.DefaultCommandLine)
	decoder := protocol.NewDecoder()
	for {
		line, _, err := in.Next()
		if err != nil {
			break
		}
		command, fault := decoder.Command(line)
		if fault != nil {
			fmt.Fprintln(os.Stderr, "fake runner:", fault)
			return 90
		}
		if status := f.obey(command); status != nil {
			return *status
		}
	}
	for f.hang {
		time.Sleep(time.Hour)
	}
	f.end()
	return 0
}

// obey carries out a command; a status is one to exit with.
func (f *fakeRunner) obey(c protocol.Command) *int {
	var o orders
	json.Unmarshal(c.Payload, &o)
	if o.Env {
		fmt.Fprintln(os.Stderr, os.Environ())
	}
	fmt.Fprint(os.Stderr, o.Stderr)
	for i := range o.Events {
		f.write(protocol.EventItemDelta, fmt.Sprintf(`{"delta":"%d\n"}`, i))
	}
	for _, raw := range o.Raw {
		os.Stdout.WriteString(raw + "\n")
	}
	f.hang = f.hang || o.Hang || o.Stubborn
	if o.Stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	if !o.Silent {
		f.answer(c, o)
	}
	if o.Deaf {
		os.Stdin.Close()
		time.Sleep(time.Hour)
	}
	return o.Exit
}

func (f *fakeRunner) answer(c protocol.Command, o orders) {
	r := protocol.Receipt{CommandID: c.CommandID, ControllerSeq: c.ControllerSeq, Status: protocol.ReceiptAccepted, Detail: "accepted"}
	switch {
	case c.ControllerSeq != f.next:
		r.Status, r.Code = protocol.ReceiptRejected, protocol.CodeSequenceGap
		r.Detail = fmt.Sprintf("expected %d", f.next)
	case o.Reject != "":
		r.Status, r.Code, r.Detail = protocol.ReceiptRejected, o.Reject, "as ordered"
		if !o.Keep {
			f.next++
		}
	default:
		f.next++
	}
	os.Stdout.Write(protocol.AppendReceipt(nil, &r))
}

func (f *fakeRunner) write(t protocol.EventType, payload string) {
	f.event.SourceSeq++
	e := f.event
	e.SourceEventID = fmt.Sprintf("event_%s_%03d", e.RunID, e.SourceSeq)
	e.EventType = t
	e.Priority = t.Priority()
	e.EmittedAt = "2026-01-01T00:00:00.000Z"
	if t == protocol.EventItemDelta {
		e.ItemID = "item_1"
	}
	e.Payload = json.RawMessage(payload)
	os.Stdout.Write(protocol.AppendEvent(nil, &e))
}

func (f *fakeRunner) end() {
	f.write(protocol.EventRunTerminal, `{"schema":"paperclip.prp.terminal.v1","turnTerminalState":"cancelled",`+
		`"runTerminalState":"cancelled","reportedWorkDisposition":"yielded","harnessTerminalProposal":null,`+
		`"reconciliation":{"authority":"runner","reason":"controller_closed","proposalValid":false,`+
		`"proposalContradicted":false,"processExit":null,"semanticResultObserved":false}}`)
}
