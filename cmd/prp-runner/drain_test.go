//go:build linux

package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"prp/protocol"
)

// What was written before the exit, and who holds the pipes after it: F2 to F4.

func TestF02PipeHeld(t *testing.T) {
	t.Parallel()
	for _, holds := range []string{
		`"hold_stdout":true`,
		`"hold_stderr":true`,
		`"hold_stdout":true,"hold_stderr":true`,
		// What it writes comes in the order of the messages, as number 8: whether
		// it is read before the sweep decides nothing.
		`"hold_stdout":true,"writes_every_ms":1,"writes_from_seq":8`,
	} {
		for _, escape := range []string{"none", "setsid"} {
			each(t, escape+" "+holds, func(t *testing.T) {
				r := start(t, setup{
					harness: script(t, fmt.Sprintf(`{"kind":"spawn_worker","escape":%q,"ignore_sigterm":true,%s}`, escape, holds), result, terminal, exit(0)),
					flags:   []string{"--shutdown-grace-ms", longGrace},
				})
				r.begin()
				e := r.end().reason(protocol.ReasonSuccess).code(0)
				if e.exited.Containment.Swept == 0 {
					t.Errorf("containment %s, want something swept", show(e.exited.Containment))
				}
			})
		}
	}
}

func TestF03ChildLeft(t *testing.T) {
	t.Parallel()
	r := start(t, setup{
		harness: script(t, `{"kind":"spawn_worker"}`, result, exit(0)),
		flags:   []string{"--shutdown-grace-ms", longGrace, "--drain-grace-ms", longGrace},
	})
	r.begin()
	r.end().reason(protocol.ReasonSuccess).code(0)
}

func TestF04NothingLost(t *testing.T) {
	s := ready()
	for i := range 200 {
		s.event("item.delta", fmt.Sprintf(`{"n":%d}`, i))
	}
	harness := s.result().terminal().cat(t)
	once := func(t *testing.T, env ...string) {
		r := start(t, setup{harness: harness, env: env, flags: []string{"--env-allow", "GOMAXPROCS"}})
		r.accepted(protocol.RunPrepare, "")
		e := r.end().reason(protocol.ReasonSuccess).code(0)
		deltas := e.of(protocol.EventItemDelta)
		if len(deltas) != 200 {
			t.Fatalf("%d events of 200 arrived", len(deltas))
		}
		for i, ev := range deltas {
			if want := fmt.Sprintf(`{"n":%d}`, i); string(ev.Payload) != want {
				t.Fatalf("event %d has payload %s, want %s", i, ev.Payload, want)
			}
		}
		if !e.terminal.Reconciliation.ProposalValid {
			t.Error("the proposal was lost")
		}
	}
	const workers = 4
	repeat := func(t *testing.T, n int, env ...string) {
		for w := range workers {
			each(t, fmt.Sprint(w), func(t *testing.T) {
				for range (n + workers - 1) / workers {
					once(t, env...)
				}
			})
		}
	}
	t.Run("plain", func(t *testing.T) { repeat(t, times(40, 500)) })
	t.Run("one processor", func(t *testing.T) { repeat(t, times(24, 500), "GOMAXPROCS=1") })
	t.Run("loaded", func(t *testing.T) {
		load(t, 4)
		repeat(t, times(24, 500))
	})
	t.Run("loaded, one processor", func(t *testing.T) {
		load(t, 4)
		repeat(t, times(24, 500), "GOMAXPROCS=1")
	})
}

// load keeps n processors busy until the test and its subtests end.
func load(t *testing.T, n int) {
	var stop atomic.Bool
	t.Cleanup(func() { stop.Store(true) })
	for range n {
		go func() {
			for !stop.Load() {
			}
		}()
	}
}

// A process that is none of the harness's holds the pipe and writes half a
// line: it is cut after the drain grace, and no violation of the harness.
func TestF02HeldByAStranger(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"silent": "", "half a line": `{"schema":`, "a line": message(7, "event", `{"eventType":"item.delta"}`) + "\n"} {
		each(t, name, func(t *testing.T) {
			r := start(t, setup{
				harness: script(t, result, delta, `{"kind":"await_command","command_type":"session.close"}`, exit(0)),
				flags:   []string{"--drain-grace-ms", "1500"},
			})
			r.begin()
			r.event(protocol.EventItemDelta)
			pid := r.leader(harnessBin)
			held, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", pid), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			r.accepted(protocol.SessionClose, "")
			for limit := time.Now().Add(patience); runs(pid) && time.Now().Before(limit); {
				time.Sleep(time.Millisecond)
			}
			if _, err := held.WriteString(text); err != nil {
				t.Fatal(err)
			}
			e := r.end().reason(protocol.ReasonSuccess).code(0)
			if _, noted := e.diagnosed(protocol.CodeTornLine); noted != (name == "half a line") {
				t.Errorf("torn line noted: %v", noted)
			}
		})
	}
}
