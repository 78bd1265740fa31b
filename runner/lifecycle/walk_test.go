package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"prp/protocol"
	"prp/runner/lifecycle"
)

// world is a shell with a random order of everything that has no order: it
// performs effects as the real one does and remembers what it was told.
type world struct {
	t     *testing.T
	rnd   *rand.Rand
	state *lifecycle.State
	at    time.Time

	seq       int64 // last event
	terminals int
	finished  bool
	owed      map[string]int // commands that want a receipt, by id
	nextSeq   int64
	lines     []string // of all commands so far, to repeat some

	started, stopping      bool
	exited, out, err, gone bool
	settling               bool
	eof                    bool
	said                   int64
	timers                 [lifecycle.Timers]int // armed generation, 0 is none
	queued                 []lifecycle.Effect
	inputClosed            bool
}

func newWorld(t *testing.T, seed uint64) *world {
	rnd := rand.New(rand.NewPCG(seed, 1))
	cfg := testConfig()
	cfg.FinishOnEOF = rnd.IntN(2) == 0
	cfg.CommandHistory = 8
	if rnd.IntN(4) == 0 {
		cfg.MaxEvents = int64(rnd.IntN(10) + 1)
	}
	if rnd.IntN(4) == 0 {
		cfg.RunTimeout = time.Minute
	}
	return &world{t: t, rnd: rnd, state: lifecycle.New(cfg), at: base, owed: map[string]int{}, nextSeq: 1}
}

func (w *world) step(in lifecycle.Input) {
	w.t.Helper()
	w.at = w.at.Add(time.Duration(w.rnd.IntN(5)) * time.Millisecond)
	effects := w.state.Step(w.at, in)
	if w.finished && len(effects) > 0 {
		w.t.Fatalf("%d effects after Finish, first %s", len(effects), show(effects[0]))
	}
	var answers []lifecycle.Input
	for _, fx := range effects {
		if a := w.perform(fx); a != nil {
			answers = append(answers, a)
		}
	}
	for _, a := range answers {
		w.step(a)
	}
}

func (w *world) perform(fx lifecycle.Effect) lifecycle.Input {
	w.t.Helper()
	if w.finished {
		w.t.Fatalf("%s after Finish", show(fx))
	}
	switch fx.Kind {
	case lifecycle.Emit:
		w.event(fx.Event)
	case lifecycle.Answer:
		if w.owed[fx.Receipt.CommandID]--; w.owed[fx.Receipt.CommandID] < 0 {
			w.t.Fatalf("a receipt for %q that nobody waits for", fx.Receipt.CommandID)
		}
	case lifecycle.CheckWorkspace:
		return lifecycle.WorkspaceChecked{Detail: pick(w.rnd, "", "", "", "no such directory")}
	case lifecycle.StartHarness:
		if w.rnd.IntN(8) == 0 {
			return lifecycle.HarnessStartFailed{Detail: "missing"}
		}
		w.started = true
		return lifecycle.HarnessStarted{}
	case lifecycle.SendHarness:
		if w.inputClosed {
			w.t.Fatalf("%s after CloseHarnessInput", show(fx))
		}
		w.queued = append(w.queued, fx)
	case lifecycle.CloseHarnessInput:
		w.inputClosed = true
	case lifecycle.StopTree:
		if w.stopping || !w.started {
			w.t.Fatalf("StopTree twice or without a harness")
		}
		w.stopping = true
	case lifecycle.CloseHarness:
		if !w.exited || !w.out || !w.err || !w.gone {
			w.t.Fatal("CloseHarness before everything is known")
		}
		return lifecycle.HarnessClosed{}
	case lifecycle.Settle:
		w.settling = true
	case lifecycle.SetTimer:
		w.timers[fx.Timer] = fx.Gen
	case lifecycle.ClearTimer:
		w.timers[fx.Timer] = 0
	case lifecycle.Finish:
		w.finished = true
	}
	return nil
}

func (w *world) event(e *protocol.Event) {
	w.t.Helper()
	if w.terminals > 0 {
		w.t.Fatalf("event %s after run.terminal", e.EventType)
	}
	if w.seq++; e.SourceSeq != w.seq {
		w.t.Fatalf("sourceSeq %d, want %d", e.SourceSeq, w.seq)
	}
	if e.EventType != protocol.EventRunTerminal {
		return
	}
	w.terminals++
	if w.started && (!w.exited || !w.gone) {
		w.t.Fatal("run.terminal before the harness is gone")
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// command makes a random command: mostly the next one, sometimes a repeat,
// a gap or a reused id.
func (w *world) command() {
	w.t.Helper()
	var line string
	if len(w.lines) > 0 && w.rnd.IntN(6) == 0 {
		line = pick(w.rnd, w.lines...)
	} else {
		kind := pick(w.rnd, append(protocol.CommandTypes(), protocol.RunPrepare, protocol.SessionOpen, protocol.TurnStart, "no.such.type")...)
		seq := w.nextSeq
		if w.rnd.IntN(10) == 0 {
			seq += int64(w.rnd.IntN(3))
		}
		payload := map[protocol.CommandType]string{
			protocol.TurnStart:      fmt.Sprintf(`{"turnId":"t%d","text":"x"}`, w.rnd.IntN(3)),
			protocol.TurnSteer:      `{"text":"x"}`,
			protocol.RequestResolve: fmt.Sprintf(`{"requestId":"r%d","response":1}`, w.rnd.IntN(4)),
		}[kind]
		if payload == "" {
			payload = "{}"
		}
		line = fmt.Sprintf(`{"schema":"prp.command.v1","commandId":"c%d","controllerSeq":%d,"type":%q,"issuedAt":"2026-03-01T12:00:00Z","payload":%s}`,
			w.rnd.IntN(40), seq, kind, payload)
		w.lines = append(w.lines, line)
	}
	c, fault := protocol.NewDecoder().Command([]byte(line))
	if fault != nil {
		w.t.Fatal(fault)
	}
	w.owed[c.CommandID]++
	w.step(lifecycle.CommandReceived{Command: &c})
	w.nextSeq = w.probeNext()
}

// probeNext asks for the next sequence number by a command that has none.
func (w *world) probeNext() int64 {
	w.t.Helper()
	if w.finished {
		return w.nextSeq
	}
	c := protocol.Command{CommandID: "probe", ControllerSeq: 1 << 40, Type: protocol.RunnerDrain}
	var next int64
	for _, fx := range w.state.Step(w.at, lifecycle.CommandReceived{Command: &c}) {
		if _, err := fmt.Sscanf(fx.Receipt.Detail, "expected controllerSeq %d,", &next); err != nil {
			w.t.Fatalf("a gap is answered with %q", fx.Receipt.Detail)
		}
	}
	return next
}

// say makes a random message of the harness.
func (w *world) say() {
	w.t.Helper()
	kind, payload := "ready", `{"version":"1","capabilities":["steer"]}`
	if w.said > 0 || w.rnd.IntN(20) == 0 {
		kind = pick(w.rnd, "event", "event", "event", "request", "result", "terminal", "log", "diagnostic")
		payload = map[string]string{
			"event": fmt.Sprintf(`{"eventType":%q,"turnId":"t%d","payload":{"requestId":"r%d"}}`,
				pick(w.rnd, "item.started", "turn.started", "turn.completed", "turn.interrupted", "session.started", "session.closed",
					"run.terminal", "x.y", "runtime_request.resolved", "item.delta"), w.rnd.IntN(3), w.rnd.IntN(4)),
			"request": fmt.Sprintf(`{"request":{"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":"r%d","type":"input","status":"pending","prompt":"?"}}`, w.rnd.IntN(4)),
			"result": pick(w.rnd, `{"result":{}}`, `{"result":{"schema":"paperclip.run_result.v1","reportedWorkDisposition":"done","summary":"s",`+
				`"completionClaim":{"contractRevision":"1","objectiveSatisfied":true,"criteria":[],"remainingWork":[]},"evidence":[],"verification":[],"attentionRequests":[],"artifacts":[]}}`),
			"terminal":   `{"terminal":{"schema":"paperclip.prp.terminal.v1","turnTerminalState":"completed","runTerminalState":"succeeded","reportedWorkDisposition":"done"}}`,
			"log":        `{"stream":"stdout","text":"x"}`,
			"diagnostic": `{"a":1}`,
		}[kind]
	}
	w.said++
	seq := w.said
	if w.rnd.IntN(100) == 0 {
		seq++
	}
	line := fmt.Sprintf(`{"schema":"paperclip.harness.message.v1","messageSeq":%d,"type":%q,"payload":%s}`, seq, kind, payload)
	var m protocol.HarnessMessage
	if fault := protocol.NewDecoder().HarnessMessage([]byte(line), &m); fault != nil {
		w.t.Fatal(fault)
	}
	w.step(&lifecycle.HarnessSaid{Message: &m, Bytes: len(line)})
}

// act does one random thing that can happen now; false where nothing can.
func (w *world) act() bool {
	w.t.Helper()
	var can []func()
	add := func(ok bool, weight int, do func()) {
		for range weight {
			if ok {
				can = append(can, do)
			}
		}
	}
	add(!w.eof, 6, w.command)
	add(!w.eof, 1, func() { w.eof = true; w.step(lifecycle.ControllerClosed{}) })
	add(w.started && !w.out, 8, w.say)
	add(w.started && !w.out && w.rnd.IntN(10) == 0, 1, func() {
		w.step(lifecycle.HarnessBroke{Torn: w.rnd.IntN(2) == 0, Fault: protocol.MessageFault{Code: protocol.CodeHarnessInvalidJSON}})
	})
	add(w.started && !w.exited && w.rnd.IntN(4) == 0, 1, func() {
		w.exited = true
		w.step(lifecycle.LeaderExited{Exit: exitFact(w.t, pick(w.rnd, "0", "7", "signal 9"))})
	})
	add(w.started && !w.out && (w.exited || w.rnd.IntN(20) == 0), 1, func() { w.out = true; w.step(lifecycle.HarnessOutputEnded{}) })
	add(w.started && !w.err && w.exited, 1, func() { w.err = true; w.step(lifecycle.HarnessErrorsEnded{}) })
	add(w.stopping && !w.gone && w.exited, 1, func() { w.gone = true; w.step(lifecycle.TreeGone{}) })
	add(w.rnd.IntN(30) == 0, 1, func() { w.step(lifecycle.RunnerSignalled{Signal: "SIGTERM"}) })
	add(len(w.queued) > 0, 2, func() {
		fx := w.queued[0]
		w.queued = w.queued[1:]
		w.step(lifecycle.HarnessInputWritten{Commands: 1, Size: fx.Size})
	})
	for t := range lifecycle.Timers {
		add(w.timers[t] > 0 && w.rnd.IntN(6) == 0, 1, func() {
			gen := w.timers[t]
			w.timers[t] = 0
			w.step(lifecycle.TimerFired{Timer: t, Gen: gen})
		})
	}
	add(w.settling, 3, func() { w.settling = false; w.step(lifecycle.Settled{}) })
	if len(can) == 0 {
		return false
	}
	pick(w.rnd, can...)()
	return true
}

// TestRandomWalks: whatever happens in whatever order, a run has one terminal,
// contiguous numbers, nothing after its end, and a receipt for every command.
func TestRandomWalks(t *testing.T) {
	walks := 3000
	if testing.Short() {
		walks = 300
	}
	ended := 0
	for seed := range walks {
		w := newWorld(t, uint64(seed))
		for range 400 {
			if w.finished {
				break
			}
			w.act()
		}
		w.finish()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		ended++
	}
	if ended != walks {
		t.Fatalf("%d of %d walks ended", ended, walks)
	}
}

// finish lets a walk come to its end: SIGTERM, and then what must follow.
func (w *world) finish() {
	w.t.Helper()
	if !w.finished {
		w.step(lifecycle.RunnerSignalled{Signal: "SIGTERM"})
	}
	for range 40 {
		switch {
		case w.finished:
		case w.started && !w.exited:
			w.exited = true
			w.step(lifecycle.LeaderExited{Exit: exitFact(w.t, "signal 15")})
		case w.started && !w.out:
			w.out = true
			w.step(lifecycle.HarnessOutputEnded{})
		case w.started && !w.err:
			w.err = true
			w.step(lifecycle.HarnessErrorsEnded{})
		case w.stopping && !w.gone:
			w.gone = true
			w.step(lifecycle.TreeGone{})
		case w.settling:
			w.settling = false
			w.step(lifecycle.Settled{})
		}
	}
	if !w.finished || w.terminals != 1 {
		w.t.Fatalf("finished %t with %d terminals", w.finished, w.terminals)
	}
	for id, n := range w.owed {
		if n != 0 {
			w.t.Fatalf("command %q: %d receipts are missing", id, n)
		}
	}
}
