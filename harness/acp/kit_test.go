//go:build unix

package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/harness/acp/translate"
	"prp/harness/child"
	"prp/protocol"
	"prp/protocol/jsonl"
)

// role in the environment makes the test binary an adapter, or with the value
// agent the agent that the adapter starts. The other two are for the adapter.
const (
	role      = "PRP_TEST_ACP_ROLE"
	roleLimit = "PRP_TEST_ACP_LIMIT"
	roleArgv  = "PRP_TEST_ACP_ARGV"
)

// hang is far longer than anything here takes; it only ends a test that hangs.
const hang = 90 * time.Second

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "adapter":
		os.Exit(child.Mirror(adapterMain()))
	case "agent":
		agentMain()
	case "home":
		homeMain(os.Args[1])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func adapterMain() child.Exit {
	cwd, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	limit, _ := strconv.Atoi(os.Getenv(roleLimit))
	argv := []string{os.Args[0]}
	if other := os.Getenv(roleArgv); other != "" {
		argv = strings.Fields(other)
	}
	return Run(Options{
		Argv: argv, Env: append(os.Environ(), role+"=agent"), MaxLine: limit,
		Conversation: translate.Config{Cwd: cwd, Version: "1"},
		Stdin:        os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})
}

// agentMain is an agent without a model: the text of a prompt says what it does.
func agentMain() {
	in := bufio.NewReader(os.Stdin)
	reply := func(id json.RawMessage, result string) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			os.Exit(0)
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Prompt []struct{ Text string }
			}
		}
		if json.Unmarshal([]byte(line), &m) != nil {
			os.Exit(90)
		}
		switch m.Method {
		case "initialize":
			reply(m.ID, `{"protocolVersion":1,"agentInfo":{"name":"test","version":"1"},"agentCapabilities":{"sessionCapabilities":{}}}`)
		case "session/new":
			reply(m.ID, `{"sessionId":"s1"}`)
		case "session/prompt":
			word, rest, _ := strings.Cut(m.Params.Prompt[0].Text, " ")
			agentActs(word, rest)
			reply(m.ID, `{"stopReason":"end_turn"}`)
		}
	}
}

func tell(text string) {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	fmt.Printf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}`+"\n", quoted)
}

func agentActs(word, rest string) {
	n, _ := strconv.Atoi(rest)
	switch word {
	case "say":
		tell(rest)
	case "big":
		tell(strings.Repeat("b", n))
	case "noise":
		fmt.Println("not a message")
		fmt.Println(strings.Repeat("z", n))
		tell("after")
	case "exit":
		os.Exit(n)
	case "kill":
		os.Exit(child.Mirror(child.Exit{Signal: n}))
	case "hang":
		tell("hanging")
		time.Sleep(hang)
	case "stubborn": // neither the end of stdin nor SIGTERM ends it
		signal.Ignore(syscall.SIGTERM)
		tell("stubborn")
		time.Sleep(hang)
	case "mute":
		tell("mute")
		os.Stdout.Close()
		time.Sleep(hang)
	case "flood":
		for {
			tell(strings.Repeat("f", 1000))
		}
	case "questions":
		for i := range n {
			fmt.Printf(`{"jsonrpc":"2.0","id":%d,"method":"_ask","params":{}}`+"\n", i)
		}
		tell("asked")
	}
}

// played is an adapter under a test that plays the runner.
type played struct {
	t       *testing.T
	cmd     *exec.Cmd
	stdin   *os.File
	stdout  *os.File // our end
	lines   *jsonl.Reader
	decoder *protocol.Decoder
	notes   bytes.Buffer
	seq     int64
	events  []protocol.HarnessEvent
	results []protocol.Result
	text    strings.Builder // of all deltas
}

// play starts an adapter in a session of its own, as a runner does.
func play(t *testing.T, env ...string) *played {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, stdin: in, stdout: out, decoder: protocol.NewDecoder(), lines: jsonl.NewReader(out, protocol.DefaultHarnessLine)}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(append(os.Environ(), role+"=adapter", "GORACE=atexit_sleep_ms=0"), env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirIn, theirOut, &p.notes
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.cmd.WaitDelay = time.Second // the agent's stderr is ours
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	kill := func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	watchdog := time.AfterFunc(hang, kill)
	t.Cleanup(func() {
		watchdog.Stop()
		kill()
		in.Close()
		out.Close()
	})
	return p
}

func (p *played) say(t protocol.CommandType, payload string) {
	p.t.Helper()
	line := protocol.AppendHarnessCommand(nil, protocol.FamilyHarness, "c", t, []byte(payload))
	if _, err := p.stdin.Write(line); err != nil {
		p.t.Fatal(err)
	}
}

// turn starts a turn without waiting for what is before it.
func (p *played) turn(id, text string) {
	p.t.Helper()
	p.say(protocol.TurnStart, `{"turnId":"`+id+`","text":"`+text+`"}`)
}

// next reads one message, strictly as a runner does; false at the end.
func (p *played) next() bool {
	p.t.Helper()
	line, flags, err := p.lines.Next()
	if err == io.EOF {
		return false
	}
	if err != nil || flags != 0 {
		p.t.Fatalf("after %d messages: flags %d, %v", p.seq, flags, err)
	}
	var m protocol.HarnessMessage
	if fault := p.decoder.HarnessMessage(line, &m); fault != nil {
		p.t.Fatalf("message %d: %v: %.300s", p.seq+1, fault, line)
	}
	if p.seq++; m.Seq != p.seq {
		p.t.Fatalf("message %d has number %d", p.seq, m.Seq)
	}
	switch m.Type {
	case protocol.MessageEvent:
		e := m.Event
		e.Payload = bytes.Clone(e.Payload)
		if e.EventType == protocol.EventItemDelta {
			var d struct{ Delta string }
			if err := json.Unmarshal(e.Payload, &d); err != nil {
				p.t.Fatal(err)
			}
			p.text.WriteString(d.Delta)
			return true
		}
		p.events = append(p.events, e)
	case protocol.MessageResult:
		r, err := protocol.DecodeResult(bytes.Clone(m.Raw))
		if err != nil {
			p.t.Fatal(err)
		}
		p.results = append(p.results, r)
	}
	return true
}

// count is how many events of a type there are so far.
func (p *played) count(t protocol.EventType) int {
	n := 0
	for _, e := range p.events {
		if e.EventType == t {
			n++
		}
	}
	return n
}

// until reads until something holds.
func (p *played) until(what string, holds func() bool) {
	p.t.Helper()
	for !holds() {
		if !p.next() {
			p.t.Fatalf("ended before %s: %s", what, p.types())
		}
	}
}

func (p *played) untilEvent(t protocol.EventType) {
	p.t.Helper()
	n := p.count(t)
	p.until(string(t), func() bool { return p.count(t) > n })
}

func (p *played) untilText(word string) {
	p.t.Helper()
	p.until(word, func() bool { return strings.Contains(p.text.String(), word) })
}

func (p *played) types() string {
	var types []string
	for _, e := range p.events {
		types = append(types, string(e.EventType))
	}
	return strings.Join(types, " ")
}

// payload is the payload of the last event of a type, as text.
func (p *played) payload(t protocol.EventType) string {
	for i := len(p.events) - 1; i >= 0; i-- {
		if p.events[i].EventType == t {
			return string(p.events[i].Payload)
		}
	}
	return ""
}

// exit waits for the adapter's end.
func (p *played) exit() child.Exit {
	_ = p.cmd.Wait()
	w := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if w.Signaled() {
		return child.Exit{Signal: int(w.Signal())}
	}
	return child.Exit{Status: w.ExitStatus()}
}

// end reads to the end and checks the exit and the result.
func (p *played) end(exit child.Exit, disposition protocol.Disposition) {
	p.t.Helper()
	for p.next() {
	}
	if got := p.exit(); got != exit {
		p.t.Errorf("the adapter ended with %v, want %v; stderr %q", got, exit, p.notes.String())
	}
	switch {
	case disposition == "" && len(p.results) > 0, disposition != "" && len(p.results) != 1:
		p.t.Errorf("%d results, want %q; events %s", len(p.results), disposition, p.types())
	case disposition != "" && p.results[0].ReportedWorkDisposition != disposition:
		p.t.Errorf("the result says %s, want %s", p.results[0].ReportedWorkDisposition, disposition)
	}
}
