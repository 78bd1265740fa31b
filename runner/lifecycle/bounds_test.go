package lifecycle_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"prp/protocol"
	"prp/runner/lifecycle"
)

// opened is a player whose turn is active; the harness has said two messages.
func opened(t *testing.T, cfg lifecycle.Config) *player {
	t.Helper()
	p := newPlayer(t, cfg)
	p.play("> c1 1 run.prepare")
	p.play(`< ready {"version":"1"}`)
	p.play("> c2 2 session.open")
	p.play(`> c3 3 turn.start {"turnId":"t1","text":"go"}`)
	p.play("sent")
	p.play("sent")
	return p
}

// heap is what is alive, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What a run keeps does not grow with what happens in it, however odd: a turn
// that is interrupted again and again, requests that are answered and never
// closed by the harness.
func TestMemoryIsBounded(t *testing.T) {
	const (
		settled = 8_000 // by then every bound is reached
		more    = 16_000
		growth  = 128 << 10 // bytes
	)
	for name, once := range map[string]func(i int) []string{
		"interrupts": func(i int) []string {
			return []string{fmt.Sprintf(`> c%d %d turn.interrupt`, i, i), "sent"}
		},
		"answers": func(i int) []string {
			return []string{
				fmt.Sprintf(`< request {"request":{"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":"r%d","type":"input","status":"pending","prompt":"?"}}`, i),
				fmt.Sprintf(`> c%d %d request.resolve {"requestId":"r%d","response":1}`, i, i, i), "sent",
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := opened(t, testConfig())
			do := func(from, to int) int64 {
				for i := from; i < to; i++ {
					for _, line := range once(i) {
						p.play(line)
					}
					p.out.Reset()
				}
				return heap()
			}
			before := do(4, settled)
			if grown := do(settled, settled+more) - before; grown > growth {
				t.Errorf("the state has grown by %d bytes in %d rounds, want at most %d", grown, more, growth)
			}
			runtime.KeepAlive(p)
		})
	}
}

// An answer that was taken and then not delivered is none, however many were
// answered before it: the request is cancelled when the harness has gone.
func TestUndeliveredAnswerIsTakenBack(t *testing.T) {
	p := opened(t, testConfig())
	const n = 3000
	for i := 4; i < 4+n; i++ {
		p.play(fmt.Sprintf(`< request {"request":{"schema":"paperclip.runtime_request.v1","requestKind":"runtime","requestId":"r%d","type":"input","status":"pending","prompt":"?"}}`, i))
		p.play(fmt.Sprintf(`> c%d %d request.resolve {"requestId":"r%d","response":1}`, i, i, i))
		if i < 3+n {
			p.play("sent")
		}
	}
	p.play(fmt.Sprintf("undelivered c%d", 3+n))
	cancelled := 0
	for _, line := range []lifecycle.Input{
		lifecycle.LeaderExited{Exit: protocol.ExitFact{}},
		lifecycle.HarnessOutputEnded{},
		lifecycle.HarnessErrorsEnded{},
		lifecycle.TreeGone{},
		lifecycle.HarnessClosed{},
		lifecycle.Settled{},
	} {
		for _, fx := range p.state.Step(p.at, line) {
			if fx.Kind == lifecycle.Emit && fx.Event.EventType == protocol.EventRequestCancelled {
				cancelled++
				if want := fmt.Sprintf(`{"requestId":"r%d","reason":"harness_exited"}`, 3+n); string(fx.Event.Payload) != want {
					t.Errorf("cancelled %s, want %s", fx.Event.Payload, want)
				}
			}
		}
	}
	if cancelled != 1 {
		t.Errorf("%d requests were cancelled, want the one whose answer was not delivered", cancelled)
	}
}

// Times follow the wall clock forward, also by hours at once as after a sleep
// of the machine, and never back. What is due is judged by the wall clock.
func TestWallClockJumps(t *testing.T) {
	cfg := testConfig()
	cfg.Deterministic = false
	p := opened(t, cfg)
	stamp := func(at time.Time) string {
		p.seq++
		var m protocol.HarnessMessage
		line := fmt.Sprintf(`{"schema":"paperclip.fake_harness.message.v1","messageSeq":%d,"type":"event","payload":{"eventType":"item.delta"}}`, p.seq)
		if fault := protocol.NewDecoder().HarnessMessage([]byte(line), &m); fault != nil {
			t.Fatal(fault)
		}
		fx := p.state.Step(at, &lifecycle.HarnessSaid{Message: &m, Bytes: len(line)})
		return fx[len(fx)-1].Event.EmittedAt
	}
	for _, c := range []struct{ jump, want time.Duration }{
		{time.Second, time.Second}, {-time.Hour, time.Second}, {8 * time.Hour, 8 * time.Hour}, {7 * time.Hour, 8 * time.Hour},
	} {
		if got, want := stamp(base.Add(c.jump)), base.Add(c.want).Format(protocol.TimeLayout); got != want {
			t.Errorf("at %s: emittedAt %s, want %s", c.jump, got, want)
		}
	}
}
