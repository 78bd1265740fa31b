package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"prp/controller"
	"prp/protocol"
)

// bench is one run of one case.
type bench struct {
	ctx    context.Context
	cfg    Config
	root   string // of everything that the case writes
	work   string // the agent's workspace
	model  string // address of the fake model
	row    testCase
	client *controller.Client
	detail string

	answer string // the decision about permissions, empty: none is made

	mu      sync.Mutex
	changed chan struct{} // closed and made anew with each event
	events  []protocol.Event
	text    map[protocol.EventType]*strings.Builder // deltas of items of all kinds under item.delta
	over    bool
	tail    []string
	reader  chan struct{} // closed when the reader has ended
}

// newBench starts the processes; nothing is said to the agent yet.
func newBench(ctx context.Context, cfg Config, c testCase, root, model string) (*bench, error) {
	b := &bench{
		ctx: ctx, cfg: cfg, root: root, work: filepath.Join(root, "work"), model: model, row: c, answer: c.answer,
		changed: make(chan struct{}), reader: make(chan struct{}),
		text: map[protocol.EventType]*strings.Builder{protocol.EventItemDelta: {}},
	}
	if err := os.MkdirAll(b.work, 0o700); err != nil {
		return nil, err
	}
	harness := slices.Concat(cfg.Harness, []string{"acp", "--home", filepath.Join(root, "home"), "--permissions", "ask"}, c.flags)
	runner := slices.Concat(cfg.Runner, []string{"--clock", "system", "--cwd", b.work, "--ready-timeout-ms", strconv.FormatInt(2*cfg.Patience.Milliseconds(), 10)})
	if cfg.Agent.Preset != "" {
		harness = append(harness, "--preset", cfg.Agent.Preset)
	}
	if s := setups[cfg.Agent.Preset]; s != nil {
		env, err := s(root, model)
		if err == nil {
			err = write(filepath.Join(root, "env"), strings.Join(env, "\n")+"\n")
		}
		if err != nil {
			return nil, err
		}
		runner = append(runner, "--env-file", filepath.Join(root, "env"))
	}
	for _, name := range cfg.Agent.EnvAllow {
		runner, harness = append(runner, "--env-allow", name), append(harness, "--env-allow", name)
	}
	harness = append(append(harness, "--"), cfg.Agent.argv()...)
	client, err := controller.Start(ctx, controller.Config{
		Argv: append(runner, "--harness", quoted(harness)), EnvAllow: cfg.Agent.EnvAllow, Dir: root,
	})
	if err != nil {
		return nil, err
	}
	b.client = client
	go b.read()
	return b, nil
}

// read keeps the events and answers permissions.
func (b *bench) read() {
	defer close(b.reader)
	for e, err := range b.client.Events(context.Background()) {
		if err != nil {
			break
		}
		var p struct {
			Delta   string
			Request struct{ RequestID string }
			Logs    struct{ Lines []string }
		}
		// What a payload does not have stays empty.
		_ = json.Unmarshal(e.Payload, &p)
		b.mu.Lock()
		b.events = append(b.events, e)
		if all := b.text[e.EventType]; all != nil {
			all.WriteString(p.Delta)
		}
		if e.EventType == protocol.EventHarnessExited {
			b.tail = p.Logs.Lines[max(0, len(p.Logs.Lines)-3):]
		}
		close(b.changed)
		b.changed = make(chan struct{})
		b.mu.Unlock()
		if e.EventType == protocol.EventRequestCreated && b.answer != "" {
			go func() {
				// A rejected answer is a request that was closed meanwhile.
				_ = b.client.Resolve(b.ctx, p.Request.RequestID, controller.PermissionResponse(b.answer))
			}()
		}
	}
	b.mu.Lock()
	b.over = true
	close(b.changed)
	b.mu.Unlock()
}

// begin opens a new session.
func (b *bench) begin() error {
	return b.open(map[string]any{}, protocol.EventSessionStarted)
}

// open opens a session and waits for the event that says so.
func (b *bench) open(payload map[string]any, opened protocol.EventType) error {
	ctx, cancel := context.WithTimeout(b.ctx, 2*b.cfg.Patience)
	defer cancel()
	if err := b.client.Prepare(ctx); err != nil {
		return fmt.Errorf("the agent did not get ready: %w", err)
	}
	if _, err := b.client.Send(ctx, controller.Command{Type: protocol.SessionOpen, Payload: payload}); err != nil {
		return err
	}
	return b.awaitType(opened)
}

// again starts another run in the same folders, after this one is over.
func (b *bench) again() (*bench, error) { return newBench(b.ctx, b.cfg, b.row, b.root, b.model) }

// payload is the payload of the first event of a type.
func (b *bench) payload(t protocol.EventType, into any) error {
	e, err := b.await(string(t), func(e *protocol.Event) bool { return e.EventType == t })
	if err != nil {
		return err
	}
	return json.Unmarshal(e.Payload, into)
}

// turn begins a turn.
func (b *bench) turn(id, text string) error { return b.client.StartTurn(b.ctx, id, text, nil) }

// wait waits until something holds about the events.
func (b *bench) wait(what string, holds func() bool) error {
	timer := time.NewTimer(b.cfg.Patience)
	defer timer.Stop()
	for {
		b.mu.Lock()
		ok, over, changed := holds(), b.over, b.changed
		b.mu.Unlock()
		switch {
		case ok:
			return nil
		case over:
			return fmt.Errorf("the run ended before %s; events: %s", what, b.types())
		}
		select {
		case <-changed:
		case <-timer.C:
			return fmt.Errorf("no %s within %s; events: %s", what, b.cfg.Patience, b.types())
		case <-b.ctx.Done():
			return context.Cause(b.ctx)
		}
	}
}

// await waits for the first event that fits, past ones included.
func (b *bench) await(what string, fits func(*protocol.Event) bool) (*protocol.Event, error) {
	var found *protocol.Event
	err := b.wait(what, func() bool {
		for i := range b.events {
			if fits(&b.events[i]) {
				found = &b.events[i]
				return true
			}
		}
		return false
	})
	return found, err
}

func (b *bench) awaitType(t protocol.EventType) error {
	_, err := b.await(string(t), func(e *protocol.Event) bool { return e.EventType == t })
	return err
}

// turnEnd waits for the end of a turn and returns how it ended.
func (b *bench) turnEnd(id string) (protocol.EventType, error) {
	e, err := b.await("end of "+id, func(e *protocol.Event) bool { return e.TurnID == id && e.EventType.EndsTurn() })
	if err != nil {
		return "", err
	}
	return e.EventType, nil
}

// ends plays a turn to its end, which has to be one of those.
func (b *bench) ends(id, text string, want ...protocol.EventType) (protocol.EventType, error) {
	if err := b.turn(id, text); err != nil {
		return "", err
	}
	got, err := b.turnEnd(id)
	if err == nil && !slices.Contains(want, got) {
		err = fmt.Errorf("%s ended with %s, expected %v", id, got, want)
	}
	return got, err
}

// said is the text of all deltas so far.
func (b *bench) said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text[protocol.EventItemDelta].String()
}

func (b *bench) count(t protocol.EventType) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for i := range b.events {
		if b.events[i].EventType == t {
			n++
		}
	}
	return n
}

// types lists the events, repeated ones once with their number.
func (b *bench) types() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for i, n := 0, 0; i < len(b.events); i += n {
		for n = 1; i+n < len(b.events) && b.events[i+n].EventType == b.events[i].EventType; n++ {
		}
		name := string(b.events[i].EventType)
		if n > 1 {
			name = fmt.Sprintf("%s*%d", name, n)
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// exists waits for a file that a tool makes in the workspace.
func (b *bench) exists(name string) error {
	path := filepath.Join(b.work, name)
	for end := time.Now().Add(b.cfg.Patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		b.mu.Lock()
		over := b.over
		b.mu.Unlock()
		if over || time.Now().After(end) {
			return fmt.Errorf("no file %q came; events: %s", name, b.types())
		}
	}
}

func (b *bench) absent(name string) error {
	if _, err := os.Stat(filepath.Join(b.work, name)); err == nil {
		return fmt.Errorf("the file %q was made", name)
	}
	return nil
}

// finish closes the session and checks the terminal.
func (b *bench) finish(run protocol.RunTerminalState, reason protocol.Reason, disposition protocol.Disposition) error {
	// Rejected is a session that has ended by itself.
	if err := b.client.CloseSession(b.ctx); err != nil && !errors.As(err, new(*controller.RejectedError)) && !errors.Is(err, controller.ErrRunnerGone) {
		return err
	}
	return b.terminal(run, reason, disposition)
}

// terminal waits for the end of the run and checks what it says.
func (b *bench) terminal(run protocol.RunTerminalState, reason protocol.Reason, disposition protocol.Disposition) error {
	if err := b.awaitType(protocol.EventRunTerminal); err != nil {
		return err
	}
	t, err := b.readTerminal()
	if err == nil && (t.RunTerminalState != run || t.Reconciliation.Reason != reason || t.ReportedWorkDisposition != disposition) {
		err = fmt.Errorf("the terminal says %s, %s, %s; expected %s, %s, %s",
			t.RunTerminalState, t.Reconciliation.Reason, t.ReportedWorkDisposition, run, reason, disposition)
	}
	return err
}

func (b *bench) readTerminal() (*protocol.Terminal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := new(protocol.Terminal)
	last := &b.events[len(b.events)-1]
	if last.EventType != protocol.EventRunTerminal {
		return nil, fmt.Errorf("the last event is %s", last.EventType)
	}
	return t, json.Unmarshal(last.Payload, t)
}

// close ends what is not over, and checks what holds in every case.
func (b *bench) close() error {
	err := b.client.Close()
	<-b.reader
	if n := b.count(protocol.EventRunTerminal); n != 1 {
		err = errors.Join(err, fmt.Errorf("%d run.terminal", n))
	} else if _, bad := b.readTerminal(); bad != nil {
		err = errors.Join(err, bad)
	}
	return err
}
